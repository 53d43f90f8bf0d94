"""What must hold of every log, whatever happened to it: found violations as text, none when all is well."""

from riverlog.model.disk import Disk
from riverlog.storage.inspect import Finding, verify
from riverlog.storage.log.batch_scan import scan_batches
from riverlog.storage.log.leader_epochs import LeaderEpochs
from riverlog.storage.log.log import Log
from riverlog.storage.producers.state import ProducerStates, end_marker

ProducerDump = dict[int, tuple[int, tuple[tuple[int, ...], ...], int, int, int | None]]


def dump_producers(states: ProducerStates) -> ProducerDump:
    return {
        producer_id: (
            entry.epoch,
            tuple(tuple(batch) for batch in entry.batches),
            entry.coordinator_epoch,
            entry.last_timestamp_ms,
            entry.transaction_first_offset,
        )
        for producer_id, entry in states
    }


def replayed(log: Log) -> tuple[ProducerStates, LeaderEpochs]:
    """Producer state and leader epochs from every batch of the log, from its very beginning."""
    states, epochs = ProducerStates(), LeaderEpochs()
    for segment in log.segments:
        if not segment.size_bytes:
            continue
        for _, header, view, at in scan_batches(segment.log.get(), 0, segment.size_bytes):
            epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                states.apply(header, header.base_offset, end_marker(header, view, at))
    return states, epochs


def violations(log: Log, disk: Disk) -> list[str]:
    """The log must start at offset 0, so that a full replay sees everything."""
    found = [
        f"{finding.path} at {finding.position}: {finding.message}"
        for finding in verify(disk, log.directory)
        if isinstance(finding, Finding)
    ]
    states, epochs = replayed(log)
    if dump_producers(states) != dump_producers(log.producers):
        found.append(
            f"producer state {dump_producers(log.producers)} is not a replay's {dump_producers(states)}"
        )
    if epochs.entries != log.state.epochs.entries:
        found.append(f"leader epochs {log.state.epochs.entries} are not a replay's {epochs.entries}")
    if not log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset:
        found.append("log start <= last stable <= high watermark <= log end does not hold")
    return found
