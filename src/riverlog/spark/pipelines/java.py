"""Is there a Java that Spark can run on? Spark itself would answer with the error of a shell script."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from riverlog.spark.pipelines.failures import PipelineError

OLDEST: Final = 17
_INSTALL: Final = "apt install openjdk-17-jre-headless, or set JAVA_HOME to a Java 17 or newer"
_ANSWER_TIMEOUT_S: Final = 60.0


def check_java() -> None:
    """Raises `PipelineError` that says how to install one."""
    java = _executable()
    if java is None:
        raise PipelineError("Spark needs Java, and there is none", remedy=_INSTALL)
    try:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipelineError(
            f"Spark needs Java, and {java} does not answer: {error}", remedy=_INSTALL
        ) from error
    version = major_version(asked.stderr + asked.stdout)
    if version is None:
        raise PipelineError(f"Spark needs Java, and {java} does not say its version", remedy=_INSTALL)
    if version < OLDEST:
        raise PipelineError(f"Spark needs Java {OLDEST} or newer, and {java} is {version}", remedy=_INSTALL)


def major_version(text: str) -> int | None:
    """Of what `java -version` prints: `"17.0.15"` is 17, and `"1.8.0_392"` is 8."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _executable() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if java.exists() else None
    return shutil.which("java")
