"""What is in a log file, as rows to print: one per batch, index entry, aborted transaction or producer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from riverlog.cli.failures import CommandError
from riverlog.cli.printing.output import Row, warn
from riverlog.cli.records.json_form import encode_bytes, encode_headers

if TYPE_CHECKING:
    from riverlog.model.disk import Disk
    from riverlog.records.record import Record
    from riverlog.storage.inspect import DumpedBatch

_MARKERS = {0: "abort", 1: "commit"}


def rows_of(disk: "Disk", path: str, *, with_records: bool) -> Iterator[Row]:
    """The rows of one file, by its suffix."""
    from riverlog.storage import inspect

    match path.rpartition(".")[2]:
        case "log":
            yield from _batch_rows(disk, path, with_records)
        case "index":
            for offset, position in inspect.dump_index(disk, path):
                yield {"offset": offset, "position": position}
        case "timeindex":
            for timestamp_ms, offset in inspect.dump_time_index(disk, path):
                yield {"timestamp": timestamp_ms, "offset": offset}
        case "txnindex":
            for aborted in inspect.dump_transactions(disk, path):
                yield aborted._asdict()
        case _:
            for producer_id, entry in inspect.dump_snapshot(disk, path):
                yield {
                    "producer_id": producer_id,
                    "epoch": entry.epoch,
                    "last_sequence": entry.last_sequence,
                    "last_timestamp": entry.last_timestamp_ms,
                    "coordinator_epoch": entry.coordinator_epoch,
                    "transaction_first_offset": entry.transaction_first_offset,
                }


def _batch_rows(disk: "Disk", path: str, with_records: bool) -> Iterator[Row]:
    from riverlog.storage import inspect

    end = 0
    try:
        for batch in inspect.dump_batches(disk, path, with_records=with_records):
            end = batch.position + batch.header.size_bytes
            yield _batch_row(batch)
            if with_records:
                yield from map(_marker_row if batch.header.is_control else _record_row, batch.records)
    except ValueError as error:
        raise CommandError(f"{path}, after position {end}: {error}") from None
    if (left := disk.size(path) - end) > 0:
        warn(f"{path}: {left} bytes from position {end} are no whole batch")


def _batch_row(batch: "DumpedBatch") -> dict[str, object]:
    header = batch.header
    kinds = {"transactional": header.is_transactional, "control": header.is_control}
    return {
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "bytes": header.size_bytes,
        "codec": header.codec.name.lower(),
        "max_timestamp": header.max_timestamp_ms,
        "timestamp_type": "append" if header.is_log_append_time else "create",
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "kind": " ".join(name for name, applies in kinds.items() if applies) or "plain",
        "crc": "ok" if batch.is_valid else "WRONG",
    }


def _marker_row(record: "Record") -> dict[str, object]:
    """The key holds a version and the kind, the value a version and the epoch of the coordinator."""
    key, value = record.key or b"", record.value or b""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "marker": _MARKERS.get(int.from_bytes(key[2:4]), "unknown") if len(key) >= 4 else "unknown",
        "coordinator_epoch": int.from_bytes(value[2:6]) if len(value) >= 6 else None,
    }


def _record_row(record: "Record") -> dict[str, object]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        **encode_bytes("key", record.key),
        **encode_bytes("value", record.value),
        "headers": encode_headers(record.headers),
    }
