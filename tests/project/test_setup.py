"""`scripts/setup`, which every make target begins with, on machines that lack something."""

import hashlib
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "dirname", "env", "sed", "cat", "sha256sum", "cut")


class Machine:
    """Commands that are there or not; what is said to apt-get and pip is written down instead of done."""

    def __init__(self, directory: Path) -> None:
        self._commands = directory / "bin"
        self._commands.mkdir()
        self._log = directory / "calls"
        self.venv = directory / "venv"
        for name in TOOLS:
            found = shutil.which(name)
            assert found is not None
            (self._commands / name).symlink_to(found)
        (self._commands / "python3").symlink_to(sys.executable)
        self.add("id", "echo 1000")
        self.add("apt-get", f'echo "apt-get $*" >>{self._log}')

    def add(self, name: str, script: str) -> None:
        path = self._commands / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!{shutil.which('sh')}\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def pretend_installed(self) -> None:
        locked = (ROOT / "requirements/dev.txt").read_bytes() + (ROOT / "pyproject.toml").read_bytes()
        self.venv.mkdir()
        (self.venv / ".installed").write_text(hashlib.sha256(locked).hexdigest())

    def set_up(self, *needs: str) -> "subprocess.CompletedProcess[str]":
        environment = {"PATH": str(self._commands), "VENV": str(self.venv), "LC_ALL": "C"}
        return subprocess.run(
            [ROOT / "scripts/setup", *needs], env=environment, capture_output=True, text=True, timeout=60
        )

    @property
    def calls(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.pretend_installed()
    return machine


def test_a_machine_that_has_everything_is_left_alone(machine: Machine) -> None:
    machine.add("kcat", "exit 0")
    done = machine.set_up("kcat")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.calls == []


def test_without_the_right_to_install_it_says_what_to_run(machine: Machine) -> None:
    machine.add("sudo", "exit 1")
    done = machine.set_up("kcat", "java")
    assert done.returncode == 2
    assert "sudo apt-get update && sudo apt-get install" in done.stderr
    assert done.stderr.rstrip().endswith("kcat default-jre-headless")
    assert machine.calls == []


@pytest.mark.parametrize("is_root", [True, False])
def test_what_is_missing_is_installed_by_root_or_sudo(machine: Machine, is_root: bool) -> None:
    if is_root:
        machine.add("id", "echo 0")
    else:
        machine.add("sudo", '[ "$1" = -n ] || exit 1; shift; exec "$@"')
        machine.add("true", "exit 0")
    assert machine.set_up("kcat").returncode == 0
    assert machine.calls == ["apt-get update -qq", "apt-get install -y --no-install-recommends kcat"]


def test_an_old_java_is_a_missing_one(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    assert machine.set_up("java").returncode == 0
    assert machine.calls[-1].endswith("default-jre-headless")


def test_a_python_that_is_too_old_is_named(machine: Machine) -> None:
    machine.add("python3", '[ "$1" = --version ] && echo Python 3.9.2 || exit 1')
    done = machine.set_up()
    assert done.returncode == 2
    assert "3.11" in done.stderr
    assert "Python 3.9.2" in done.stderr
