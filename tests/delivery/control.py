"""The worker's end of the line to the test that drives it: one JSON object a line, over stdin and stdout.

A worker tells where it is and, where it is asked to, waits there until it is told to go on; so a kill lands
where the test wants it and not where luck puts it.
"""

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

faulthandler.register(signal.SIGUSR1, all_threads=False)  # A worker that tells nothing is asked where it is.


class Control:
    def tell(self, point: str, **facts: object) -> None:
        line = json.dumps({"at": point, **facts}).encode() + b"\n"
        while line:
            line = line[os.write(sys.stdout.fileno(), line) :]

    def ask(self, point: str, **facts: object) -> Mapping[str, Any]:
        """Tell and wait for the answer. When the test has gone away, so does the worker."""
        self.tell(point, **facts)
        line = sys.stdin.readline()
        if not line:
            raise SystemExit
        answer: Mapping[str, Any] = json.loads(line)
        return answer


def options() -> Mapping[str, Any]:
    """What the test wants of this worker."""
    given: Mapping[str, Any] = json.loads(sys.argv[1])
    return given


def client_settings(bootstrap: str, **more: object) -> dict[str, Any]:
    """For librdkafka: quick to come back after the broker did, and silent about its absence."""
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        # With all brokers gone librdkafka would forget them and start from the bootstrap list again; a
        # transactional producer then waits for ever for the forgotten coordinator of its group
        # (librdkafka's issues 5511 and 5456).
        "metadata.recovery.strategy": "none",
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 20,
        "topic.metadata.refresh.fast.interval.ms": 50,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
