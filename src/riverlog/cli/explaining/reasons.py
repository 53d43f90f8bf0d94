"""A reason why a record is not seen, and the reasons that lie in the log itself."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches

from riverlog.cli.asking.batches import FoundMarker, FoundRecord, Gap, records_between, what_is_at
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import OffsetRange, Place, offset_ranges, topic_configs
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.held_back import held_back
from riverlog.cli.asking.transactions import ending_command
from riverlog.cli.records.stopping_short import account


@dataclass(frozen=True, slots=True)
class Reason:
    name: str
    what: str
    remedy: str = ""


def why_not_there(connection: Connection, topic: str, partition: int | None) -> list[Reason]:
    """Of a topic or partition that does not exist."""
    topics = connection.metadata().topics
    if topic not in topics:
        nearest = get_close_matches(topic, topics, 1)
        hint = f"did you mean {nearest[0]}?" if nearest else "`riverlog topic list` shows what is there"
        return [Reason("no-topic", f"there is no topic {topic}", hint)]
    count = len(topics[topic].partitions)
    if partition is not None and partition not in topics[topic].partitions:
        return [
            Reason("no-partition", f"{topic} has no partition {partition}", f"it has 0 to {count - 1}"),
        ]
    return []


def reasons_in_log(
    brokers: Brokers,
    connection: Connection,
    place: Place,
    offset: int,
    *,
    committed_only: bool,
    key: bytes | None,
) -> list[Reason]:
    """Of an offset in a partition that exists."""
    topic, partition = place
    held = offset_ranges(connection, topic, [partition])[partition]
    if offset < held.start:
        return [_below_start(brokers, connection, place, offset, held)]
    if offset >= held.end:
        return [
            Reason(
                "above-end",
                f"the log ends at offset {held.end}: {offset} is not written yet, or not on all in-sync "
                "replicas (how far beyond the end replicas have come is unknown)",
                "a consumer there waits for it; look whether its producer was told of success",
            )
        ]
    found: list[Reason] = []
    if committed_only and (above := _above_stable(connection, place, offset, held)):
        found.append(above)
    return [*found, *_at_offset(brokers, connection, place, offset, held, committed_only, key)]


def _below_start(
    brokers: Brokers, connection: Connection, place: Place, offset: int, held: OffsetRange
) -> Reason:
    settings = {each.name: each.value for each in topic_configs(connection, place[0])}
    oldest = ""
    if held.start < held.end:
        first = what_is_at(brokers, connection, place, held.start)
        if isinstance(first, FoundRecord):
            oldest = f"; the oldest record left is of {time_text(first.timestamp_ms)}"
    return Reason(
        "below-log-start",
        f"the log begins at offset {held.start}: {offset} was let go by retention (retention.ms="
        f"{settings.get('retention.ms')}, retention.bytes={settings.get('retention.bytes')}) or trimmed; "
        f"which of them, and when, is unknown{oldest}",
        "it does not come back; `riverlog topic alter --set retention.ms=…` keeps others longer",
    )


def _above_stable(connection: Connection, place: Place, offset: int, held: OffsetRange) -> Reason | None:
    for each in held_back(connection, {place: held.end}):
        if offset >= each.last_stable_offset:
            name = None if each.transaction is None else each.transaction.transactional_id
            remedy = "wait for its producer" + ("" if name is None else f", or `{ending_command(name)}`")
            return Reason("above-last-stable-offset", account(each), remedy)
    return None


def _at_offset(
    brokers: Brokers,
    connection: Connection,
    place: Place,
    offset: int,
    held: OffsetRange,
    committed_only: bool,
    key: bytes | None,
) -> list[Reason]:
    match what_is_at(brokers, connection, place, offset):
        case FoundMarker(is_commit, producer_id):
            kind = "commit" if is_commit else "abort"
            what = f"offset {offset} is the {kind} marker of a transaction of producer {producer_id}"
            return [Reason("marker", f"{what}, which no consumer is shown")]
        case FoundRecord(is_aborted=True, producer_id=producer_id) if committed_only:
            what = f"the transaction of producer {producer_id} that wrote it was aborted"
            return [Reason("aborted", what, "--isolation read_uncommitted shows such records")]
        case Gap(next_offset):
            return [_gap(brokers, connection, place, offset, held, next_offset, key)]
        case FoundRecord():
            return []


def _gap(
    brokers: Brokers,
    connection: Connection,
    place: Place,
    offset: int,
    held: OffsetRange,
    next_offset: int | None,
    key: bytes | None,
) -> Reason:
    policy = {each.name: each.value for each in topic_configs(connection, place[0])}.get("cleanup.policy")
    after = "nothing follows it" if next_offset is None else f"the next record has offset {next_offset}"
    if "compact" not in (policy or ""):
        what = f"no record has offset {offset} (why is unknown: cleanup.policy is {policy}); {after}"
        return Reason("gap", what)
    if key is None:
        newer = "which key it had, and where its newer record is, is unknown without --key"
    else:
        deadline = time.monotonic() + connection.timeout_s
        later = records_between(brokers, connection, place, offset + 1, held.end, deadline)
        offsets = [each.offset for each in later if each.key == key]
        newer = (
            f"the newer record of the key has offset {offsets[-1]}"
            if offsets
            else "no newer record of the key is left"
        )
    return Reason(
        "compacted-away",
        f"offset {offset} was compacted away: {newer}; {after}",
        "compaction keeps the newest record of a key; cleanup.policy=delete keeps all until retention",
    )


def time_text(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
