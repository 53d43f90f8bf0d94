"""Generate `src/riverlog/wire/messages/*.py` from the schema metadata of the installed `kio`.

Only facts are taken: names, types, version ranges, nullability, tags and default values. `MESSAGES` lists
what is generated. Run it again after a change of the list or a new `kio`, look at the difference, and commit
the result:

    python scripts/generate_messages.py            write the tables
    python scripts/generate_messages.py --check    fail if the tables are not what this program writes
"""

import argparse
import datetime
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any

from kio.schema.index import LoadableEntityType, schema_name_map
from kio.serial._introspect import classify_field, is_optional
from kio.static.constants import EntityType

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "src" / "riverlog" / "wire" / "messages"

# What has a route, or is used otherwise by the broker or the clients in `src`; a test holds the list to that.
# To serve another API, add its name here and run this program.
MESSAGES = (
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "alter_configs",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "api_versions",
    "consumer_group_describe",
    "consumer_group_heartbeat",
    "consumer_protocol_assignment",
    "consumer_protocol_subscription",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_groups",
    "delete_records",
    "delete_topics",
    "describe_acls",
    "describe_cluster",
    "describe_configs",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "describe_topic_partitions",
    "describe_transactions",
    "elect_leaders",
    "end_txn",
    "envelope",
    "fetch",
    "find_coordinator",
    "heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "join_group",
    "leave_group",
    "list_config_resources",
    "list_groups",
    "list_offsets",
    "list_partition_reassignments",
    "list_transactions",
    "metadata",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "sync_group",
    "txn_offset_commit",
    "unregister_broker",
    "update_features",
    "write_txn_markers",
)

ENTITY_TYPES: tuple[LoadableEntityType, ...] = (
    EntityType.request,
    EntityType.response,
    EntityType.data,
)
KINDS = {
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "error_code": "int16",
}
PYTHON_TYPES = {
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "int64"), "int"),
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "RecordData",
    "uuid": "UUID | None",
}
ZEROS: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": None,
}


@dataclass
class FieldFacts:
    name: str
    kind: str
    array: bool
    struct: str | None
    versions: list[int] = field(default_factory=list)
    nullable: list[int] = field(default_factory=list)
    tagged: list[int] = field(default_factory=list)
    tag: int = -1
    default: Any = None


@dataclass
class StructFacts:
    name: str
    fields: dict[str, FieldFacts] = field(default_factory=dict)
    orders: dict[int, list[str]] = field(default_factory=dict)

    def ordered_fields(self) -> list[FieldFacts]:
        """The fields in an order that every version agrees with, the newest version's first of all."""
        newest_last = [*enumerate(self.orders.values())]
        rank = {name: (-i, j) for i, order in newest_last for j, name in enumerate(order)}
        before: dict[str, set[str]] = {name: set() for name in self.fields}
        for order in self.orders.values():
            for first, second in pairwise(order):
                before[second].add(first)
        result: list[str] = []
        while len(result) < len(before):
            ready = [name for name in before if name not in result and before[name] <= set(result)]
            result.append(min(ready, key=lambda name: rank.get(name, (1, self.fields[name].tag))))
        return [self.fields[name] for name in result]


@dataclass
class MessageFacts:
    name: str
    versions: list[int] = field(default_factory=list)
    flexible: list[int] = field(default_factory=list)
    structs: dict[str, StructFacts] = field(default_factory=dict)


def read_message(api: str, entity_type: LoadableEntityType) -> MessageFacts | None:
    """Merge kio's classes, one per version, into the facts of one message."""
    message: MessageFacts | None = None
    for version, paths in sorted(schema_name_map[api].items()):
        if entity_type not in paths:
            continue
        module_name, class_name = paths[entity_type].split(":")
        root = getattr(importlib.import_module(module_name), class_name)
        message = message or MessageFacts(name=root.__name__)
        message.versions.append(version)
        if root.__flexible__:
            message.flexible.append(version)
        read_struct(message, root, version)
    return message


def read_struct(message: MessageFacts, kio_class: Any, version: int) -> None:
    struct = message.structs.setdefault(kio_class.__name__, StructFacts(kio_class.__name__))
    if version in struct.orders:
        return
    struct.orders[version] = []
    for kio_field in fields(kio_class):
        classified = classify_field(kio_field)
        nested = classified.type_ if is_dataclass(classified.type_) else None
        if nested is not None:
            read_struct(message, nested, version)
        kio_kind = kio_field.metadata.get("kafka_type", "struct")
        name = kio_field.name + ("_ms" if kio_kind.startswith(("timedelta", "datetime")) else "")
        kind = KINDS.get(kio_kind, kio_kind)
        facts = struct.fields.setdefault(
            name, FieldFacts(name, kind, classified.is_array, nested.__name__ if nested is not None else None)
        )
        assert (facts.kind, facts.array) == (kind, classified.is_array), (message.name, name)
        add_version(facts, kio_field, version)
        if "tag" not in kio_field.metadata:
            struct.orders[version].append(name)


def add_version(facts: FieldFacts, kio_field: Any, version: int) -> None:
    facts.versions.append(version)
    if is_nullable(facts, kio_field):
        facts.nullable.append(version)
    if "tag" in kio_field.metadata:
        facts.tagged.append(version)
        facts.tag = kio_field.metadata["tag"]
    facts.default = default_of(facts, kio_field.default)


def is_nullable(facts: FieldFacts, kio_field: Any) -> bool:
    """Whether null has an encoding of its own; a zero id and a missing point in time do not count."""
    if facts.array:
        return isinstance(kio_field.type, UnionType)
    return is_optional(kio_field) and facts.kind not in ("uuid", "int64")


def default_of(facts: FieldFacts, kio_default: Any) -> Any:
    """The value of a field that is absent; a structure or list stands as `...`."""
    if kio_default is MISSING:
        if facts.array or facts.kind == "struct":
            return ...
        return ZEROS.get(facts.kind, 0)
    if kio_default == () or is_dataclass(kio_default):
        return ...
    if isinstance(kio_default, datetime.timedelta):
        return round(kio_default.total_seconds() * 1000)
    if kio_default is None and facts.kind == "int64":
        return -1  # kio's missing point in time
    if isinstance(kio_default, bool):
        return bool(kio_default)
    return int(kio_default) if isinstance(kio_default, int) else kio_default


def version_range(versions: list[int]) -> str:
    assert versions == [*range(versions[0], versions[-1] + 1)], versions
    return f"({versions[0]}, {versions[-1]})"


def field_row(facts: FieldFacts, names: dict[str, str]) -> str:
    parts = [repr(facts.name), repr(facts.kind), version_range(facts.versions)]
    if facts.nullable:
        parts.append(f"nullable={version_range(facts.nullable)}")
    if facts.tagged:
        parts += [f"tag={facts.tag}", f"tagged={version_range(facts.tagged)}"]
    if facts.array:
        parts.append("array=True")
    if facts.struct:
        parts.append(f"struct={names[facts.struct]}")
    if facts.default is ...:
        parts.append("default=DEFAULT")
    elif facts.default != 0 or facts.kind == "bool":
        parts.append(f"default={facts.default!r}")
    return f"Field({', '.join(parts)}),"


def python_type(facts: FieldFacts, names: dict[str, str]) -> str:
    plain = names[facts.struct] if facts.struct else PYTHON_TYPES[facts.kind]
    if facts.array:
        plain = f"list[{plain}]"
    nullable = facts.nullable or (facts.kind == "records" and facts.default is None)
    return f"{plain} | None" if nullable else plain


def class_lines(message: MessageFacts, struct: StructFacts, names: dict[str, str]) -> Iterator[str]:
    rows = struct.ordered_fields()
    yield f"class {names[struct.name]}(Message):"
    yield f"    __slots__ = ({', '.join(repr(row.name) for row in rows)}{',' * (len(rows) == 1)})"
    yield f"    VERSIONS = {version_range(message.versions)}"
    yield f"    FLEXIBLE = {message.flexible[0] if message.flexible else 'NOT_FLEXIBLE'}"
    yield "    FIELDS = ("
    yield from (f"        {field_row(row, names)}" for row in rows)
    yield "    )"
    yield ""
    if not rows:
        return
    yield "    def __init__("
    yield "        self,"
    yield "        *,"
    for row in rows:
        default = "DEFAULT" if row.default is ... else repr(row.default)
        yield f"        {row.name}: {python_type(row, names)} = {default},"
    yield "    ) -> None:"
    for row in rows:
        value = row.name
        if row.default is ...:
            fresh = "[]" if row.array else f"{names[row.struct or '']}()"
            value = f"{fresh} if {row.name} is DEFAULT else {row.name}"
        yield f"        self.{row.name} = {value}"
    yield ""


def class_names(messages: Iterable[MessageFacts]) -> dict[str, dict[str, str]]:
    """Kafka's own structure names; those that request and response share get the message's name in front."""
    messages = [*messages]
    count: dict[str, int] = {}
    for message in messages:
        for struct in message.structs:
            count[struct] = count.get(struct, 0) + 1
    return {
        message.name: {s: s if count[s] == 1 else message.name + s for s in message.structs}
        for message in messages
    }


def module_text(api: str) -> str:
    messages = [m for m in (read_message(api, entity_type) for entity_type in ENTITY_TYPES) if m is not None]
    names = class_names(messages)
    body: list[str] = []
    for message in messages:
        for struct in nested_first(message):
            body += ["", "", *class_lines(message, struct, names[message.name])]
    text = "\n".join(body)
    imports = [n for n in ("DEFAULT", "NOT_FLEXIBLE", "Field", "Message", "RecordData") if n in text]
    head = [f'"""{" and ".join(m.name for m in messages)}, of all versions.', ""]
    head += ["Generated by scripts/generate_messages.py; do not edit.", '"""', ""]
    head += ["from uuid import UUID", ""] if "UUID" in text else []
    head += [f"from riverlog.wire.schema import {', '.join(imports)}"]
    return "\n".join(head) + text + "\n"


def nested_first(message: MessageFacts) -> list[StructFacts]:
    """Structures in an order in which each stands after those that it holds."""
    result: list[StructFacts] = []

    def visit(struct: StructFacts) -> None:
        for facts in struct.fields.values():
            if facts.struct:
                visit(message.structs[facts.struct])
        if struct not in result:
            result.append(struct)

    visit(message.structs[message.name])
    return result


def generate(target: Path) -> None:
    """Write the modules of all messages, in the project's format."""
    for name in MESSAGES:
        (target / f"{name}.py").write_text(module_text(name))
    for command in (["check", "-q", "--fix", "--ignore", "E501"], ["format", "-q"], ["check", "-q"]):
        with_settings = [*command, "--config", str(ROOT / "pyproject.toml"), str(target)]
        subprocess.run([sys.executable, "-m", "ruff", *with_settings], check=True, cwd=ROOT)


def modules(directory: Path) -> dict[str, str]:
    """The text of each generated module, by file name."""
    return {path.name: path.read_text() for path in directory.glob("*.py") if path.name != "__init__.py"}


def differences(wanted: dict[str, str], present: dict[str, str]) -> list[str]:
    """One line for each file that is not as it should be."""
    missing = [f"{name} is missing" for name in wanted.keys() - present.keys()]
    unlisted = [f"{name} is not in the list of messages" for name in present.keys() - wanted.keys()]
    changed = [
        f"{name} is not what the generator writes"
        for name in wanted.keys() & present.keys()
        if wanted[name] != present[name]
    ]
    return sorted(missing + unlisted + changed)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Generate the message tables.")
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a table is out of date")
    only_check = parser.parse_args(arguments).check
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        wanted = modules(Path(scratch))
    present = modules(TARGET)
    if only_check:
        wrong = differences(wanted, present)
        for line in wrong:
            print(f"wire/messages/{line}: run scripts/generate_messages.py", file=sys.stderr)
        return 1 if wrong else 0
    for name in present.keys() - wanted.keys():
        (TARGET / name).unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
