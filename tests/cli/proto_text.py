"""What a registry does with the text of a Protobuf schema: as much of a compiler as the tests' schemas need.

Packages, imports, messages in messages, fields with a number and `repeated`. No compiler of Protobuf is to be
had as a package that the tests may use; anything else in a text is an error, as it is in a registry.
"""

import re
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

_TOKEN = re.compile(r'//[^\n]*|"[^"]*"|[A-Za-z_.][\w.]*|\d+|[{}=;]|(\S)')
_SCALARS = {name.removeprefix("TYPE_").lower(): number for name, number in FieldDescriptorProto.Type.items()}


class CompileError(ValueError):
    pass


def compile_text(text: str) -> FileDescriptorProto:
    tokens = _tokens(text)
    file = FileDescriptorProto(name="schema.proto")
    for token in tokens:
        if token == "message":
            _message(tokens, file.message_type.add(), f".{file.package}" if file.package else "")
        elif token == "syntax":
            _expect(tokens, "=")
            file.syntax = _ended(tokens).strip('"')
        elif token == "package":
            file.package = _ended(tokens)
        elif token == "import":
            file.dependency.append(_ended(tokens).strip('"'))
        else:
            raise CompileError(f"{token} is not expected here")
    return file


def _message(tokens: Iterator[str], message: DescriptorProto, scope: str) -> None:
    message.name = next(tokens)
    _expect(tokens, "{")
    for token in tokens:
        if token == "}":
            return
        if token == "message":
            _message(tokens, message.nested_type.add(), f"{scope}.{message.name}")
        else:
            _field(token, tokens, message, f"{scope}.{message.name}")
    raise CompileError("a message does not end")


def _field(kind: str, tokens: Iterator[str], message: DescriptorProto, scope: str) -> None:
    is_repeated = kind == "repeated"
    kind = next(tokens) if is_repeated else kind
    name = next(tokens)
    _expect(tokens, "=")
    field = message.field.add(name=name, number=int(_ended(tokens)), label=3 if is_repeated else 1)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = FieldDescriptorProto.TYPE_MESSAGE
    is_nested = any(each.name == kind for each in message.nested_type)
    field.type_name = f"{scope}.{kind}" if is_nested else f".{kind}"


def _ended(tokens: Iterator[str]) -> str:
    token = next(tokens)
    _expect(tokens, ";")
    return token


def _expect(tokens: Iterator[str], wanted: str) -> None:
    if (found := next(tokens, "the end")) != wanted:
        raise CompileError(f"{found} is not {wanted}")


def _tokens(text: str) -> Iterator[str]:
    for found in _TOKEN.finditer(text):
        if found[1]:
            raise CompileError(f"{found[0]} is no word")
        if not found[0].startswith("//"):
            yield found[0]
