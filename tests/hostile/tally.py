"""Counts what was sent, by API, and prints it with the command that sends it again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping

from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import decode_request_header
from tests.differential import codec

SEED = int(os.environ.get("RIVERLOG_HOSTILE_SEED", "20260301"))


class Tally:
    """``past_header``: the header could be read and names an API and version that are served."""

    def __init__(self, offered: Mapping[str, range]) -> None:
        self._offered = {codec.api_key(api): (api, versions) for api, versions in offered.items()}
        self.sent = 0
        self.past_header: Counter[str] = Counter()

    def count(self, payload: bytes) -> None:
        self.sent += 1
        try:
            header, _ = decode_request_header(payload)
        except MalformedMessage:
            return
        api, versions = self._offered.get(header.api_key, ("", range(0)))
        if header.api_version in versions:
            self.past_header[api] += 1

    def report(self, test: str) -> str:
        lines = [f"{self.sent} mutated frames, {self.past_header.total()} past the header:"]
        lines += [f"  {api:<26}{count:>7}" for api, count in sorted(self.past_header.items())]
        again = f"RIVERLOG_HOSTILE_SEED={SEED} .venv/bin/pytest -n0 -s {test}"
        return "\n".join([*lines, f"the same again: {again}"])
