"""Reading regular expressions in the syntax of RE2, as far as some names can be told apart by them.

Names have an alphabet: a class of characters is a set of those. A name of a topic consists of letters,
digits, dots, dashes and underscores; a transactional id of whatever a client likes. What RE2 refuses is
refused here: back references, looking around, repetition of nothing. What only matters for finding where a
match lies (greed, groups by name) is read and means nothing.
"""

import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

TOPIC_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")
WORD_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "_")
_DIGITS: Final = frozenset(string.digits)
_REPEATS_MAX: Final = 1000
_DEPTH_MAX: Final = 100


class InvalidRegex(ValueError):  # noqa: N818 - named for what it is
    """Says what is wrong with the expression."""


class Place(Enum):
    START = "^"
    END = "$"
    WORD_EDGE = "b"
    NO_WORD_EDGE = "B"


@dataclass(frozen=True, slots=True)
class OneOf:
    characters: frozenset[str]


@dataclass(frozen=True, slots=True)
class At:
    place: Place


@dataclass(frozen=True, slots=True)
class InTurn:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    choices: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeated:
    part: "Node"
    at_least: int
    at_most: int | None


Node = OneOf | At | InTurn | Either | Repeated

_ESCAPED_CLASSES: Final = {"d": _DIGITS, "w": WORD_CHARACTERS, "s": frozenset("\t\n\f\r ")}
_PLACES: Final = {"A": Place.START, "z": Place.END, "b": Place.WORD_EDGE, "B": Place.NO_WORD_EDGE}
_CONTROL: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_POSIX: Final[dict[str, Callable[[str], bool]]] = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "ascii": str.isascii,
    "blank": lambda character: character in " \t",
    "cntrl": lambda character: unicodedata.category(character) == "Cc",
    "digit": str.isdigit,
    "graph": str.isprintable,
    "lower": str.islower,
    "print": str.isprintable,
    "punct": lambda character: character in string.punctuation,
    "space": str.isspace,
    "upper": str.isupper,
    "word": WORD_CHARACTERS.__contains__,
    "xdigit": lambda character: character in string.hexdigits,
}
_OTHER_SCRIPTS: Final = frozenset(
    {"Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Georgian", "Greek", "Han", "Hangul"}
    | {"Hebrew", "Hiragana", "Inherited", "Katakana", "Khmer", "Tamil", "Telugu", "Thai", "Tibetan"}
)
_OCTAL: Final = frozenset("01234567")
_CATEGORIES: Final = frozenset({"L", "Lu", "Ll", "Lt", "Lm", "Lo", "N", "Nd", "Nl", "No"}) | frozenset(
    {"M", "Mn", "Mc", "Me", "P", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So"}
    | {"Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf", "Co", "Cs"}
)


def parse(pattern: str, alphabet: frozenset[str]) -> Node:
    """Raises `InvalidRegex`."""
    return _Parser(pattern, alphabet).parse()


class _Parser:
    def __init__(self, pattern: str, alphabet: frozenset[str]) -> None:
        self._text = pattern
        self._alphabet = alphabet
        self._at = 0
        self._depth = 0
        self._ignores_case = False
        self._names: set[str] = set()

    def parse(self) -> Node:
        node = self._either()
        if self._at < len(self._text):
            raise self._wrong("a closing parenthesis without an opening one")
        return node

    def _wrong(self, what: str) -> InvalidRegex:
        return InvalidRegex(f"{what} at position {self._at}")

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self._at += len(text) if found else 0
        return found

    @property
    def _following(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self, missing: str) -> str:
        if self._at >= len(self._text):
            raise self._wrong(missing)
        self._at += 1
        return self._text[self._at - 1]

    def _upto(self, end: str, missing: str) -> str:
        found = self._text.find(end, self._at)
        if found < 0:
            raise self._wrong(missing)
        taken, self._at = self._text[self._at : found], found + len(end)
        return taken

    def _either(self) -> Node:
        choices = [self._in_turn()]
        while self._take("|"):
            choices.append(self._in_turn())
        return choices[0] if len(choices) == 1 else Either(tuple(choices))

    def _in_turn(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            if self._take("\\Q"):
                end = self._text.find("\\E", self._at)
                end = len(self._text) if end < 0 else end
                parts += (self._literal(character) for character in self._text[self._at : end])
                self._at = min(end + 2, len(self._text))
                if parts:
                    parts[-1] = self._repeated(parts[-1])
                continue
            parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else InTurn(tuple(parts))

    def _repeated(self, part: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return part
        self._take("?")
        if self._bounds() is not None:
            raise self._wrong("a repetition of a repetition")
        return Repeated(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        end = self._text.find("}", self._at)
        if not self._peek("{") or end < 0:
            return None
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        if not _is_number(least) or not (most == "" or _is_number(most)):
            return None  # A brace that bounds nothing stands for itself.
        at_least = int(least)
        at_most = (int(most) if most else None) if comma else at_least
        if at_least > _REPEATS_MAX or (at_most is not None and not at_least <= at_most <= _REPEATS_MAX):
            raise self._wrong("a bad number of repetitions")
        self._at = end + 1
        return at_least, at_most

    def _atom(self) -> Node:
        character = self._next("nothing")
        match character:
            case "(":
                return self._group()
            case "[":
                return OneOf(self._class())
            case ".":
                return OneOf(self._alphabet)
            case "^":
                return At(Place.START)
            case "$":
                return At(Place.END)
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise self._wrong("nothing to repeat")
            case _:
                return self._literal(character)

    def _literal(self, character: str) -> OneOf:
        return OneOf(self._cased({character}))

    def _cased(self, characters: "set[str] | frozenset[str]") -> frozenset[str]:
        if self._ignores_case:
            characters = {other for each in characters for other in (each, each.lower(), each.upper())}
        return self._alphabet.intersection(characters)

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self._wrong("too many parentheses inside one another")
        before = self._ignores_case
        if self._take("?P<") or self._take("?<"):
            if self._peek("=") or self._peek("!"):
                raise self._wrong("looking back, which is not supported")
            name = self._upto(">", "a name without an end")
            if not name or not WORD_CHARACTERS.issuperset(name) or name in self._names:
                raise self._wrong("a bad name of a group")
            self._names.add(name)
        elif self._take("?") and self._flags() == ")":
            self._depth -= 1
            if self._following in ("*", "+", "?"):
                raise self._wrong("nothing to repeat")
            return InTurn(())  # The flags hold until the group around ends.
        node = self._either()
        if not self._take(")"):
            raise self._wrong("a parenthesis that is not closed")
        self._ignores_case = before
        self._depth -= 1
        return node

    def _flags(self) -> str:
        """Take flags and what ends them: a colon, or the closing parenthesis."""
        is_on = True
        while True:
            flag = self._next("flags without an end")
            match flag:
                case "i":
                    self._ignores_case = is_on
                case "m" | "s" | "U":
                    pass  # Names have one line, and whether they match does not depend on greed.
                case "-" if is_on:
                    is_on = False
                case ":" | ")":
                    return flag
                case _:
                    raise self._wrong("an unknown flag, or looking around, which is not supported")

    def _escape(self) -> Node:
        character = self._next("a backslash at the end")
        if character in _PLACES:
            return At(_PLACES[character])
        found = self._escaped_class(character)
        return self._literal(self._escaped_character(character)) if found is None else OneOf(found)

    def _escaped_class(self, character: str) -> frozenset[str] | None:
        if character in "pP":
            found = self._category()
            return self._alphabet - found if character == "P" else found
        named = _ESCAPED_CLASSES.get(character.lower())
        if named is None:
            return None
        return self._alphabet - named if character.isupper() else self._alphabet & named

    def _category(self) -> frozenset[str]:
        name = self._upto("}", "a class without an end") if self._take("{") else self._next("no class")
        is_negated = name.startswith("^")
        name = name.removeprefix("^")
        if name == "Latin":
            found = frozenset(string.ascii_letters)
        elif name in _CATEGORIES:
            found = frozenset(each for each in self._alphabet if unicodedata.category(each).startswith(name))
        elif name in ("Any", "Common"):
            found = self._alphabet if name == "Any" else self._alphabet - frozenset(string.ascii_letters)
        elif name in _OTHER_SCRIPTS:
            found = frozenset()
        else:
            raise self._wrong(f"an unknown class of characters {name!r}")
        return self._alphabet - found if is_negated else found

    def _escaped_character(self, character: str) -> str:
        if character in _CONTROL:
            return _CONTROL[character]
        if character == "x":
            code = self._upto("}", "a number without an end") if self._take("{") else self._digits(2)
            try:
                return chr(int(code, 16))
            except (ValueError, OverflowError):
                raise self._wrong("a bad number of a character") from None
        # One digit alone, other than zero, would be a back reference.
        if character == "0" or (character in _OCTAL and self._following in _OCTAL):
            while len(character) < 3 and self._following in _OCTAL:
                character += self._next("")
            return chr(int(character, 8))
        if character.isascii() and not character.isalnum():
            return character
        raise self._wrong(f"\\{character}, which means nothing here")

    def _digits(self, count: int) -> str:
        return "".join(self._next("a number without an end") for _ in range(count))

    def _class(self) -> frozenset[str]:
        is_negated = self._take("^")
        found: set[str] = set()
        is_first = True
        while is_first or not self._peek("]"):
            is_first = False
            if self._peek("[:") and ":]" in self._text[self._at :]:
                found |= self._posix()
                continue
            found |= self._range()
        self._at += 1
        cased = self._cased(found)
        return self._alphabet - cased if is_negated else cased

    def _posix(self) -> frozenset[str]:
        self._at += len("[:")
        name = self._upto(":]", "a class without an end")
        test = _POSIX.get(name.removeprefix("^"))
        if test is None:
            raise self._wrong(f"an unknown class of characters {name!r}")
        found = frozenset(filter(test, self._alphabet))
        return self._alphabet - found if name.startswith("^") else found

    def _range(self) -> frozenset[str]:
        first = self._one_of_class()
        if isinstance(first, frozenset):
            return first
        if not self._peek("-") or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return frozenset(first)
        self._at += 1
        last = self._one_of_class()
        if isinstance(last, frozenset) or last < first:
            raise self._wrong("a bad range of characters")
        # Case is folded over all characters, those too that no name has.
        low = frozenset(chr(code) for code in range(ord(first), min(ord(last), 0x7F) + 1))
        return low | {each for each in self._alphabet if first <= each <= last}

    def _one_of_class(self) -> str | frozenset[str]:
        character = self._next("a bracket that is not closed")
        if character != "\\":
            return character
        character = self._next("a backslash at the end")
        found = self._escaped_class(character)
        return self._escaped_character(character) if found is None else found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
