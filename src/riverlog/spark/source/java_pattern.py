"""`subscribePattern` as Spark's connector reads it: a Java pattern that is found anywhere in a topic's name.

Java's syntax is Python's but for a few things. Those that can be written otherwise are; those that Python
would take for something else without a word are refused. What Python does not know it refuses by itself.
Names of topics are ASCII, so it makes no difference what either takes for a letter beyond that.
"""

import re
from collections.abc import Callable
from typing import Final

_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_TOKEN: Final = re.compile(r"\\p\{\w+\}|\\P\{\w+\}|\\k<\w+>|\\.|\(\?<(?=[A-Za-z])|&&|\[|\]|.", re.DOTALL)
_CLASSES: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9A-Fa-f",
    "ASCII": r"\x00-\x7f",
    "L": "A-Za-z",
    "Lu": "A-Z",
    "Ll": "a-z",
    "N": "0-9",
    "Nd": "0-9",
}


class PatternError(ValueError):
    """It cannot be read, or not as Java would."""


def topic_matcher(pattern: str) -> Callable[[str], bool]:
    try:
        compiled = re.compile(_in_python(pattern))
    except re.error as error:
        raise PatternError(str(error)) from None
    return lambda name: compiled.search(name) is not None


def _in_python(pattern: str) -> str:
    plain = _QUOTED.sub(lambda quoted: re.escape(quoted[1]), pattern)
    written: list[str] = []
    in_class = False
    for token in _TOKEN.findall(plain):
        if in_class and token in ("[", "&&"):
            raise PatternError("classes inside of classes are not supported")
        in_class = token == "[" or (in_class and token != "]")
        written.append(_token(token, in_class))
    return "".join(written)


def _token(token: str, in_class: bool) -> str:
    if token.startswith((r"\p{", r"\P{")):
        members = _CLASSES.get(token[3:-1])
        if members is None or (in_class and token[1] == "P"):
            raise PatternError(f"{token} is not supported")
        return members if in_class else f"[{'^' if token[1] == 'P' else ''}{members}]"
    if token.startswith(r"\k<"):
        return f"(?P={token[3:-1]})"
    return {"(?<": "(?P<", r"\z": r"\Z"}.get(token, token)
