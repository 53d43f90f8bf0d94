"""Matching names, of topics above all, against regular expressions, in time proportional to the name.

A member chooses the expression and the coordinator runs it, so it must not be able to take long: Python's own
engine can be made to try exponentially many ways, like any that goes back. This one follows all ways at once
through an automaton, as RE2 does, which Kafka uses. Each step that has been worked out is remembered.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from riverlog.re2.parser import (
    TOPIC_CHARACTERS,
    WORD_CHARACTERS,
    At,
    Either,
    InTurn,
    InvalidRegex,
    Node,
    OneOf,
    Place,
    Repeated,
    parse,
)

STATES_MAX: Final = 2_000
PATTERN_LENGTH_MAX: Final = 4_096
_STEPS_KEPT: Final = 4_096
_MATCHED: Final = 0


class _State(NamedTuple):
    """Goes on by a character, or freely: to all of `then`, if `place` allows."""

    characters: frozenset[str] | None
    then: tuple[int, ...]
    place: Place | None = None


class Regex:
    """Matches whole names. Raises `InvalidRegex`, also for an expression that is too large."""

    def __init__(self, pattern: str, alphabet: frozenset[str] = TOPIC_CHARACTERS) -> None:
        if len(pattern) > PATTERN_LENGTH_MAX:
            raise InvalidRegex(f"longer than {PATTERN_LENGTH_MAX} characters")
        self._states: list[_State] = [_State(None, ())]
        self._start = self._compile(parse(pattern, alphabet), _MATCHED)
        self._steps: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        states, before = frozenset({self._start}), ""
        for character in name:
            states = self._step(states, before, character)
            if not states:
                return False
            before = character
        return _MATCHED in self._step(states, before, "")

    def _step(self, states: frozenset[int], before: str, after: str) -> frozenset[int]:
        """Where one gets with the next character, or at the end of the name without one."""
        key = (states, before, after)
        found = self._steps.get(key)
        if found is None:
            reached = self._reach(states, before, after)
            if after:
                reached = {
                    self._states[each].then[0]
                    for each in reached
                    if (characters := self._states[each].characters) is not None and after in characters
                }
            found = frozenset(reached)
            if len(self._steps) >= _STEPS_KEPT:
                self._steps.clear()
            self._steps[key] = found
        return found

    def _reach(self, states: Iterable[int], before: str, after: str) -> set[int]:
        """All states to which one gets freely."""
        reached: set[int] = set()
        waiting = list(states)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            state = self._states[at]
            if state.characters is None and (state.place is None or _is_at(state.place, before, after)):
                waiting.extend(state.then)
        return reached

    def _add(self, state: _State) -> int:
        if len(self._states) >= STATES_MAX:
            raise InvalidRegex("too large")
        self._states.append(state)
        return len(self._states) - 1

    def _compile(self, node: Node, then: int) -> int:
        """The state where the node begins, if what follows it begins at `then`."""
        match node:
            case OneOf(characters):
                return self._add(_State(characters, (then,)))
            case At(place):
                return self._add(_State(None, (then,), place))
            case InTurn(parts):
                for part in reversed(parts):
                    then = self._compile(part, then)
                return then
            case Either(choices):
                return self._add(_State(None, tuple(self._compile(each, then) for each in choices)))
            case Repeated(part, at_least, at_most):
                return self._compile_repeated(part, at_least, at_most, then)

    def _compile_repeated(self, part: Node, at_least: int, at_most: int | None, then: int) -> int:
        if at_most is None:
            again = self._add(_State(None, ()))
            self._states[again] = _State(None, (self._compile(part, again), then))
            then = again
        else:
            after = then
            for _ in range(at_most - at_least):
                then = self._add(_State(None, (self._compile(part, then), after)))
        for _ in range(at_least):
            then = self._compile(part, then)
        return then


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Regex:
    """Raises `InvalidRegex`."""
    return Regex(pattern)


def _is_at(place: Place, before: str, after: str) -> bool:
    match place:
        case Place.START:
            return not before
        case Place.END:
            return not after
        case Place.WORD_EDGE:
            return (before in WORD_CHARACTERS) != (after in WORD_CHARACTERS)
        case Place.NO_WORD_EDGE:
            return (before in WORD_CHARACTERS) == (after in WORD_CHARACTERS)
