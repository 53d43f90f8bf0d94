"""What is wrong with a project, where, and what to do about it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Place:
    path: str
    line: int

    @property
    def short(self) -> str:
        return f"{Path(self.path).name}:{self.line}"

    def within(self, directory: Path) -> str:
        """As a person in the project's directory would write it."""
        path = Path(self.path)
        shown = path.relative_to(directory) if path.is_relative_to(directory) else path
        return f"{shown}:{self.line}"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    place: Place
    message: str
    remedy: str = ""
