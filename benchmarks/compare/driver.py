"""The C program that makes the load (`benchmarks/driver`): built at first use, run once for each measurement.

It stands on the librdkafka inside confluent-kafka's wheel, so what it measures is the client that users have,
without Python in front of it. The binary is kept outside the repository, under a name made from its sources.
"""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka

from benchmarks.compare.failing import CompareError

SOURCES = Path(__file__).parents[1] / "driver"
DEADLINE_S = 180.0


class DriverMissingError(CompareError):
    """The driver cannot be built here; the message says what to install."""


class DriverFailedError(CompareError):
    """A measurement ended with an error; the message is the driver's own."""


@dataclass(frozen=True, slots=True)
class Driver:
    binary: Path

    def run(self, mode: str, properties: dict[str, str], /, **settings: object) -> dict[str, float]:
        """`settings` are the mode's own, `properties` those of librdkafka."""
        command = [str(self.binary), mode]
        command += [f"{name}={value}" for name, value in settings.items()]
        command += [f"set:{name}={value}" for name, value in properties.items()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise DriverFailedError(f"{mode} took longer than {DEADLINE_S:g} s") from error
        if done.returncode != 0:
            why = done.stderr.strip().splitlines()
            raise DriverFailedError(f"{mode}: {why[-1] if why else f'exit status {done.returncode}'}")
        result: dict[str, float] = json.loads(done.stdout)
        return result


def build() -> Driver:
    library, compiler = _librdkafka(), shutil.which("cc")
    sources = sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])
    sum_of_all = hashlib.sha256(str(library).encode())
    for path in sources:
        sum_of_all.update(path.read_bytes())
    binary = _cache() / f"load-{sum_of_all.hexdigest()[:12]}"
    if binary.exists():
        return Driver(binary)
    if compiler is None:
        raise DriverMissingError(
            "the load driver is built with a C compiler and none was found as `cc`: "
            "install one (Debian: apt-get install gcc libc6-dev) or run `scripts/setup cc`"
        )
    _compile(compiler, [str(path) for path in sources if path.suffix == ".c"], library, binary)
    return Driver(binary)


def _compile(compiler: str, sources: list[str], library: Path, binary: Path) -> None:
    binary.parent.mkdir(parents=True, exist_ok=True)
    staging = binary.with_suffix(f".{os.getpid()}")
    command = [compiler, "-O2", "-std=c11", "-D_GNU_SOURCE", "-o", str(staging), *sources, str(library)]
    command += [f"-Wl,-rpath,{library.parent}", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DriverMissingError(f"the load driver could not be built:\n{done.stderr.strip()}")
    staging.replace(binary)


def _librdkafka() -> Path:
    directory = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    found = sorted(directory.glob("librdkafka*.so*"))
    if not found:
        raise DriverMissingError(
            "the installed confluent-kafka has no librdkafka of its own (it was not installed from a wheel); "
            "install the wheel: pip install --only-binary :all: confluent-kafka"
        )
    return found[0]


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "riverlog" / "bench"
