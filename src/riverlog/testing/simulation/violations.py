"""A broken promise: which invariant of docs/guarantees.md, and what was seen."""


class Violation(Exception):  # noqa: N818 - named for what it is
    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(invariant, what)
        self.invariant = invariant
        self.what = what

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"
