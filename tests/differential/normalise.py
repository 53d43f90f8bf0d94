"""Makes replies of different runs comparable, by the rows of ``differences`` and nothing else.

It runs on what Kafka answers when a recording is made and on what Riverlog answers when it is replayed.
Three representations are fixed here for both: the records of a fetch are shown batch by batch, lists that
are maps in truth are sorted by their key, and a time that was set by the clock of the broker is told apart
from one that the client has chosen by standing in the years of this project.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tests.differential import batches
from tests.differential.differences import Difference, Kind

Json = Any

CLOCK_MS = range(1_600_000_000_000, 5_000_000_000_000)
"""Sequences use timestamps before 2020 or after 2128, so that one between came from a clock."""

LITERAL_PRODUCER_IDS = 900_000
"""Sequences that make a producer id up take one from here on; brokers begin to count at 0."""

UNORDERED = {
    ("ApiVersions", "api_keys"): "api_key",
    ("WriteTxnMarkers", "markers.topics.partitions"): "partition_index",
    ("TxnOffsetCommit", "topics.partitions"): "partition_index",
    ("AddPartitionsToTxn", "results_by_topic_v3_and_below.results_by_partition"): "partition_index",
    ("AddPartitionsToTxn", "results_by_transaction.topic_results.results_by_partition"): "partition_index",
    ("AlterReplicaLogDirs", "results"): "topic_name",
    ("AlterReplicaLogDirs", "results.partitions"): "partition_index",
    ("ApiVersions", "supported_features"): "name",
    ("ApiVersions", "finalized_features"): "name",
    ("CreateTopics", "topics.configs"): "name",
    ("DeleteRecords", "topics"): "name",
    ("DeleteRecords", "topics.partitions"): "partition_index",
    ("DeleteTopics", "responses"): "name",
    ("DescribeConfigs", "results.configs"): "name",
    ("DescribeGroups", "groups"): "group_id",
    ("DescribeGroups", "groups.members"): "member_id",
    ("DeleteGroups", "results"): "group_id",
    ("ConsumerGroupDescribe", "groups"): "group_id",
    ("ConsumerGroupDescribe", "groups.members"): "member_id",
    ("JoinGroup", "members"): "member_id",
    ("ListConfigResources", "config_resources"): "resource_type",
    ("ListGroups", "groups"): "group_id",
    ("Fetch", "responses"): "topic",
    ("Fetch", "responses.partitions"): "partition_index",
    ("ListOffsets", "topics"): "name",
    ("ListOffsets", "topics.partitions"): "partition_index",
    ("Metadata", "topics"): "name",
    ("Metadata", "brokers"): "node_id",
    ("DescribeCluster", "brokers"): "node_id",
    ("Produce", "node_endpoints"): "node_id",
    ("Fetch", "node_endpoints"): "node_id",
    ("OffsetCommit", "topics"): "name",
    ("OffsetDelete", "topics"): "name",
    ("OffsetDelete", "topics.partitions"): "partition_index",
    ("OffsetFetch", "topics"): "name",
    ("OffsetFetch", "topics.partitions"): "partition_index",
    ("OffsetFetch", "groups"): "group_id",
    ("OffsetFetch", "groups.topics"): "name",
    ("OffsetFetch", "groups.topics.partitions"): "partition_index",
    ("UpdateFeatures", "results"): "feature",
    ("Produce", "responses"): "name",
    ("Produce", "responses.partition_responses"): "index",
}
"""Lists whose order in Kafka's reply is that of a hash table: API and path, and the field they are sorted by.

Fetch is among them for the partitions that fail, which Kafka puts before or after the others by version.
"""

SETS = frozenset({"isr_nodes", "offline_replicas", "eligible_leader_replicas", "last_known_elr"})
"""Lists of brokers in no order, whatever the reply."""

_ABSENT: dict[str, tuple[Json, ...]] = {"session": (0,), "producer": (-1,), "port": (-1,)}
_RUN_WIDE = ("cluster_id", "log_dir", "port")


class Normaliser:
    """Holds the variables of one broker's run and counts which rows were of use."""

    def __init__(self, differences: Iterable[Difference], port: int | Mapping[int, int]) -> None:
        """`port` is that of the one broker, or those of several by their numbers."""
        self._rows: dict[tuple[str, str], list[Difference]] = {}
        for row in differences:
            self._rows.setdefault((row.api, row.path), []).append(row)
        ports = (
            {"port": port} if isinstance(port, int) else {f"port:{key}": value for key, value in port.items()}
        )
        self.variables: dict[str, Json] = ports
        self.used: Counter[Difference] = Counter()
        self._script = ""

    def begin_script(self, name: str) -> None:
        self._script = name
        self.variables = {
            name: value for name, value in self.variables.items() if name.partition(":")[0] in _RUN_WIDE
        }

    def row(self, api: str, version: int, path: str) -> Difference | None:
        rows = self._rows.get((api, path), ())
        return next(
            (row for row in rows if row.covers(version) and row.only_in in (None, self._script)), None
        )

    def normalise(self, api: str, version: int, reply: Json, sent_text: str) -> Json:
        if api == "Fetch":
            _show_records(reply)
        return _Walk(self, api, version, sent_text).value(reply, "", "")

    def name_for(self, variable: str, value: Json, owner: Json) -> str:
        """The variable that holds this value, bound now if the value is new."""
        for name, bound in self.variables.items():
            if bound == value and name.partition(":")[0] == variable:
                return name
        name = variable
        if variable == "topic_id":
            name = f"topic_id:{owner.get('name') or owner.get('topic') or '?'}"
        elif variable in ("session", "producer", "member"):
            name = f"{variable}:1"
        while name in self.variables:
            stem, _, count = name.rpartition("#")
            name = f"{stem or name}#{int(count) + 1 if stem else 2}"
        self.variables[name] = value
        return name


class _Walk:
    """One pass over one reply."""

    def __init__(self, run: Normaliser, api: str, version: int, sent_text: str) -> None:
        self._run, self._api, self._version, self._sent_text = run, api, version, sent_text

    def value(self, value: Json, keyed: str, path: str) -> Json:
        """``keyed`` is ``path`` with the keys of the entries around it, for rows that mean one entry."""
        match value:
            case dict():
                return self._fields(value, keyed, path)
            case list() if path.rpartition(".")[2] in SETS:
                return sorted(value)
            case list() if (self._api, path) in UNORDERED:
                key = UNORDERED[self._api, path]
                shown = [self._fields(entry, f"{keyed}{{{entry.get(key)}}}", path) for entry in value]
                return sorted(shown, key=lambda entry: _order(entry.get(key), entry))
            case list():
                return [self.value(inner, keyed, path) for inner in value]
            case _:
                return value

    def _fields(self, fields: dict[str, Json], keyed: str, path: str) -> Json:
        shown: dict[str, Json] = {}
        for name, value in fields.items():
            inner = f"{path}.{name}" if path else name
            one = f"{keyed}.{name}" if keyed else name
            row = self._row(one) or self._row(inner) or self._clock_row(inner, value)
            if row is None or (row.kind is Kind.DIFFERS and not row.hidden):
                shown[name] = self.value(value, one, inner)
            else:
                shown[name] = self._replaced(row, value, fields)
        return shown

    def _row(self, path: str) -> Difference | None:
        return self._run.row(self._api, self._version, path)

    def _clock_row(self, path: str, value: Json) -> Difference | None:
        if isinstance(value, int) and value in CLOCK_MS:
            return self._row(path + "{append time}")
        return None

    def _replaced(self, row: Difference, value: Json, owner: Json) -> Json:
        if value is None or value == "" or value in _ABSENT.get(row.variable, ()):
            return value
        match row.kind:
            case Kind.TEXT:
                shown: Json = "$text"
            case Kind.BORN:
                shown = value if value == -1 else "$born"
            case Kind.DIFFERS:
                shown = "$hidden"
            case _:
                shown = self._captured(row, value, owner)
        if shown != value:
            self._run.used[row] += 1
        return shown

    def _captured(self, row: Difference, value: Json, owner: Json) -> Json:
        bound = self._run.variables.items()
        known = any(value == held and name.partition(":")[0] == row.variable for name, held in bound)
        if not known and self._is_our_own(row.variable, value):
            return value
        return {"$var": self._run.name_for(row.variable, value, owner)}

    def _is_our_own(self, variable: str, value: Json) -> bool:
        """Whether the broker only sends back what the sequence has put into a request."""
        match variable:
            case "topic_id" | "member":
                return str(value) in self._sent_text
            case "producer":
                return bool(value < 0 or value >= LITERAL_PRODUCER_IDS)
            case _:
                return False


def _order(key: Json, entry: Json) -> tuple[bool, int, str, str]:
    """Numbers by size, words by the alphabet, and whatever shares a key by all that it holds."""
    number = key if isinstance(key, int) else 0
    return key is None, number, str(key), json.dumps(entry)


def _show_records(reply: Json) -> None:
    for topic in reply["responses"]:
        for partition in topic["partitions"]:
            if partition["records"] is not None:
                data = bytes.fromhex(partition["records"]["$hex"])
                partition["records"], incomplete = batches.render(data)
                if incomplete:
                    partition["incomplete_batch_bytes"] = incomplete
