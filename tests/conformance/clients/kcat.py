"""kcat, the command. It sets headers per run, not per record, and no timestamps."""

import itertools
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.clients.interface import (
    TIMEOUT_S,
    Client,
    Consumed,
    ConsumerOptions,
    Headers,
    Message,
    ProducerOptions,
    Refused,
)

KCAT = "kcat"
_KEY_MARK = "\x1f:"
_REFUSALS = {"Message size too large": 10, "Broker failed to validate record": 87}


class Kcat(Client):
    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        options: ProducerOptions = ProducerOptions(),  # noqa: B008 - frozen
        *,
        partition: int | None = 0,
    ) -> None:
        for headers, group in itertools.groupby(messages, key=lambda message: message.headers):
            self._produce(topic, list(group), headers, options, partition)

    def _produce(
        self,
        topic: str,
        messages: Sequence[Message],
        headers: Headers,
        options: ProducerOptions,
        partition: int | None,
    ) -> None:
        settings = {
            "acks": str(options.acks),
            "enable.idempotence": str(options.idempotent).lower(),
            "message.max.bytes": str(options.max_request_bytes),
            "partitioner": "murmur2_random",
        }
        command = ["-P", "-t", topic, "-z", options.compression, "-Z"]
        command += [] if partition is None else ["-p", str(partition)]
        for key, value in headers:
            command += ["-H", key if value is None else f"{key}={value.decode()}"]
        with tempfile.TemporaryDirectory() as directory:
            for message in messages:
                assert message.timestamp_ms is None, "kcat cannot set timestamps"
            if any(message.key is not None for message in messages):
                command += ["-K", _KEY_MARK, "-D", "\x1e!"]
                lines = [
                    (message.key or b"") + _KEY_MARK.encode() + (message.value or b"") + b"\x1e!"
                    for message in messages
                ]
                self._run([*command, "-l", _file(directory, 0, b"".join(lines))], settings)
            else:
                files = [
                    _file(directory, index, message.value or b"") for index, message in enumerate(messages)
                ]
                self._run(command + files, settings)

    def consume(
        self,
        topic: str,
        count: int,
        options: ConsumerOptions = ConsumerOptions(),  # noqa: B008 - frozen
        *,
        partition: int = 0,
        start: int | None = None,
    ) -> list[Consumed]:
        settings = {
            "isolation.level": "read_committed" if options.read_committed else "read_uncommitted",
            "fetch.wait.max.ms": str(options.max_wait_ms),
            "fetch.min.bytes": str(options.min_bytes),
            "max.partition.fetch.bytes": str(options.max_partition_bytes),
            "check.crcs": "true",
        }
        offset = {None: "beginning", -1: "end"}.get(start, str(start))
        command = ["-C", "-t", topic, "-p", str(partition), "-o", offset, "-c", str(count), "-u", "-q"]
        command += ["-f", "%o %T %K %S %h\\n%k%s\\n"]
        return list(_parse(self._run(command, settings)))

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        return self._offset(topic, partition, -2), self._offset(topic, partition, -1)

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        # kcat answers with the end where there is none.
        offset = self._offset(topic, partition, timestamp_ms)
        return offset if 0 <= offset < self._offset(topic, partition, -1) else None

    def _offset(self, topic: str, partition: int, timestamp: int) -> int:
        answer = self._run(["-Q", "-t", f"{topic}:{partition}:{timestamp}"], {}).decode()
        found = re.search(rf"{re.escape(topic)} \[{partition}\] offset (-?\d+)", answer)
        assert found, answer
        return int(found.group(1))

    def _run(self, command: list[str], settings: dict[str, str]) -> bytes:
        options = [part for item in settings.items() for part in ("-X", "=".join(item))]
        run = subprocess.run(
            [KCAT, "-b", self.bootstrap, *options, *command],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        complaint = run.stderr.decode()
        for text, code in _REFUSALS.items():
            if text in complaint:
                raise Refused(code)
        assert run.returncode == 0, complaint
        return run.stdout


def metadata(bootstrap: str) -> str:
    """What `kcat -L` prints, as JSON."""
    command = [KCAT, "-b", bootstrap, "-L", "-J"]
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True, text=True).stdout


def _file(directory: str, index: int, content: bytes) -> str:
    path = Path(directory) / str(index)
    path.write_bytes(content)
    return str(path)


def _parse(output: bytes) -> list[Consumed]:
    consumed = []
    position = 0
    while position < len(output):
        end_of_line = output.index(b"\n", position)
        offset, timestamp_ms, key_size, value_size, *headers = output[position:end_of_line].split(b" ", 4)
        position = end_of_line + 1
        key, position = _field(output, position, int(key_size))
        value, position = _field(output, position, int(value_size))
        assert output[position : position + 1] == b"\n"
        position += 1
        consumed.append(Consumed(int(offset), int(timestamp_ms), key, value, _headers(headers)))
    return consumed


def _field(output: bytes, position: int, size: int) -> tuple[bytes | None, int]:
    return (None, position) if size < 0 else (output[position : position + size], position + size)


def _headers(texts: list[bytes]) -> Headers:
    pairs = [text.partition(b"=") for text in b"".join(texts).split(b",") if text]
    return tuple((key.decode(), None if value == b"NULL" else value) for key, _, value in pairs)
