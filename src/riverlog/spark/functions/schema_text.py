"""Spark schemas between DDL text and structure.

Spark parses DDL on its server, and a pipeline's query function may not ask the server anything. So the text
is read here: the types that Spark's own parser knows, except intervals, with NOT NULL and COMMENT.
"""

import re
from typing import Final

from pyspark.sql import types

_TOKEN: Final = re.compile(r"\s*(?:`((?:[^`]|``)*)`|('(?:[^'\\]|\\.)*')|(\w+)|([<>(),:]))")
_PLAIN: Final = {
    "boolean": types.BooleanType(),
    "tinyint": types.ByteType(),
    "byte": types.ByteType(),
    "smallint": types.ShortType(),
    "short": types.ShortType(),
    "int": types.IntegerType(),
    "integer": types.IntegerType(),
    "bigint": types.LongType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "real": types.FloatType(),
    "double": types.DoubleType(),
    "date": types.DateType(),
    "timestamp": types.TimestampType(),
    "timestamp_ltz": types.TimestampType(),
    "timestamp_ntz": types.TimestampNTZType(),
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "variant": types.VariantType(),
}
_DECIMALS: Final = ("decimal", "dec", "numeric")


def as_struct(schema: str | types.StructType) -> types.StructType:
    """Raises ValueError, with the place, for text that is no list of fields."""
    if isinstance(schema, types.StructType):
        return schema
    reader = _Reader(schema)
    if reader.next_is("struct") and reader.following() == "<":
        found = reader.data_type()
        assert isinstance(found, types.StructType)
    else:
        found = types.StructType(reader.fields())
    reader.expect_end()
    return found


def as_ddl(schema: types.StructType) -> str:
    """DDL text that Spark reads back, whatever the names are."""
    fields = (f"{_quoted(field.name)} {field.dataType.simpleString()}" for field in schema.fields)
    return ", ".join(fields)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class _Reader:
    """One pass over the text. A token is its text and whether it was a quoted name."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, bool, int]] = []
        self._next = 0
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._wrong(position, "cannot be read")
            quoted, *others = match.groups()
            word = quoted.replace("``", "`") if quoted is not None else next(filter(None, others))
            self._tokens.append((word, quoted is not None, match.start()))
            position = match.end()

    def next_is(self, *words: str) -> bool:
        if self._next == len(self._tokens):
            return False
        word, is_quoted, _ = self._tokens[self._next]
        return not is_quoted and word.lower() in words

    def following(self) -> str | None:
        return self._tokens[self._next + 1][0] if self._next + 1 < len(self._tokens) else None

    def fields(self) -> list[types.StructField]:
        found = [self._field()]
        while self._take(","):
            found.append(self._field())
        return found

    def data_type(self) -> types.DataType:
        word = self._word("a type").lower()
        if word in _DECIMALS:
            digits = self._numbers()
            return types.DecimalType(*digits) if digits else types.DecimalType(10, 0)
        match word:
            case "array":
                self._expect("<")
                array = types.ArrayType(self.data_type())
                self._expect(">")
                return array
            case "map":
                self._expect("<")
                key = self.data_type()
                self._expect(",")
                value = self.data_type()
                self._expect(">")
                return types.MapType(key, value)
            case "struct":
                self._expect("<")
                fields = self.fields()
                self._expect(">")
                return types.StructType(fields)
            case "varchar" | "char" | "character":
                self._numbers()
                return types.StringType()
        if word not in _PLAIN:
            raise self._wrong(self._tokens[self._next - 1][2], f"{word} is no type")
        return _PLAIN[word]

    def expect_end(self) -> None:
        if self._next < len(self._tokens):
            raise self._wrong(self._tokens[self._next][2], "is not expected here")

    def _field(self) -> types.StructField:
        name = self._word("a name")
        self._take(":")
        data_type = self.data_type()
        is_nullable = True
        if self._take("not"):
            self._expect("null")
            is_nullable = False
        if self._take("comment"):
            self._word("a comment")
        return types.StructField(name, data_type, is_nullable)

    def _numbers(self) -> list[int]:
        found: list[int] = []
        if self._take("("):
            found.append(int(self._word("a number")))
            while self._take(","):
                found.append(int(self._word("a number")))
            self._expect(")")
        return found

    def _word(self, what: str) -> str:
        if self._next == len(self._tokens) or self.next_is(*"<>(),:"):
            place = self._tokens[self._next][2] if self._next < len(self._tokens) else len(self._text)
            raise self._wrong(place, f"{what} is missing")
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _take(self, word: str) -> bool:
        is_there = self.next_is(word)
        self._next += is_there
        return is_there

    def _expect(self, word: str) -> None:
        if not self._take(word):
            place = self._tokens[self._next][2] if self._next < len(self._tokens) else len(self._text)
            raise self._wrong(place, f"{word} is missing")

    def _wrong(self, position: int, problem: str) -> ValueError:
        place = self._text[position:].strip()[:20] or "the end"
        return ValueError(
            f"The schema {self._text!r} is not DDL: at {place!r}: {problem}. "
            "Write fields as in 'id BIGINT NOT NULL, region STRING'."
        )
