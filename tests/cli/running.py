"""Running the command line in tests: in this process, or as the real executable."""

import json
import os
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from riverlog.cli.application import app

NOTHING: Mapping[str, str] = {}
EXECUTABLE = str(Path(sysconfig.get_path("scripts")) / "riverlog")


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.splitlines()]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The command line, pointed at one cluster."""

    bootstrap: str

    def __call__(self, *arguments: str, stdin: str | bytes = b"", code: int = 0) -> Outcome:
        """Run in this process, and check the exit code."""
        result = CliRunner().invoke(app, arguments, input=stdin, env=self.environment)
        assert result.exit_code == code, f"exit code {result.exit_code}: {result.stderr}{result.exception!r}"
        return Outcome(result.exit_code, result.stdout, result.stderr)

    def execute(self, *arguments: str, stdin: bytes = b"", environ: Mapping[str, str] = NOTHING) -> Outcome:
        """Run the installed executable."""
        done = subprocess.run(
            [EXECUTABLE, *arguments],
            input=stdin,
            capture_output=True,
            env={**os.environ, **self.environment, **environ},
            timeout=60,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def topic(self, *options: str) -> str:
        """A new topic of its own name."""
        name = f"cli-{uuid.uuid4().hex[:12]}"
        self("topic", "create", name, *options)
        return name

    def produce(self, topic: str, *lines: str, options: tuple[str, ...] = ()) -> None:
        self("produce", topic, *options, stdin="".join(f"{line}\n" for line in lines))

    def consume(self, topic: str, *options: str) -> Outcome:
        return self("consume", topic, "--from", "start", "--exit-at-end", *options)

    @property
    def environment(self) -> dict[str, str]:
        return {"RIVERLOG_BOOTSTRAP": self.bootstrap, "NO_COLOR": "1", "COLUMNS": "200"}


def python_imports(*arguments: str) -> set[str]:
    """The modules that are loaded once `riverlog ARGUMENTS` has been parsed and run."""
    program = (
        "import sys, json\n"
        "from riverlog.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))
