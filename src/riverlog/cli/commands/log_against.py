"""`riverlog log verify --against`: the logs in directories compared with the replicas that a broker has."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import typer

from riverlog.cli.asking.brokers import Brokers, RefusalError
from riverlog.cli.asking.connection import DEFAULT_TIMEOUT_S, Connection, bootstrap_addresses
from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.options import OutputFormat
from riverlog.cli.printing.output import counted, remark, show_rows, warn
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.storage.files.names import META_PROPERTIES, parse_partition_directory

if TYPE_CHECKING:
    from riverlog.cli.records.replicas import Compared
    from riverlog.model.disk import Disk

_NAMED_MAX: Final = 20


def verify_against(disk: "Disk", paths: Sequence[str], host: str, output: OutputFormat) -> None:
    """Ends with exit code 1 when replicas differ, or none could be compared."""
    from riverlog.cli.records.replicas import LocalReplica, RemoteReplica, compare

    addresses = bootstrap_addresses(host)
    if len(addresses) != 1:
        raise usage("--against names one broker, whose own replicas are compared")
    directories = [each for path in paths for each in _partitions_below(os.path.abspath(path))]
    if not directories:
        raise CommandError(
            f"there are no logs in {', '.join(paths)}",
            remedy="name a data directory, or that of a partition, such as riverlog-data/orders-0",
            code=ExitCode.NOT_FOUND,
        )
    connection = Connection(host, DEFAULT_TIMEOUT_S, {})
    known = connection.metadata().topics
    found: list[Compared] = []
    absent: list[str] = []
    with Brokers(connection) as brokers:
        for directory in directories:
            local = LocalReplica(disk, directory)
            topic, partition = local.place
            if topic not in known or partition not in known[topic].partitions:
                warn(f"{topic}-{partition} is not in the cluster of {host}")
                continue
            remote = RemoteReplica(connection, brokers, Address(*addresses[0]), local.place)
            try:
                found.append(compare(local, remote))
            except CommandError as failure:
                if isinstance(failure, RefusalError) and failure.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    absent.append(f"{topic}-{partition}")
                    continue
                warn(f"{topic}-{partition} was not compared: {failure.message}")
    if absent:
        warn(f"{host} has no replica of {_listed(absent)}: not compared")
    _show(found, host, output)
    if not found or any(each.differences for each in found):
        raise typer.Exit(ExitCode.FAILURE)


def _listed(partitions: Sequence[str]) -> str:
    more = len(partitions) - _NAMED_MAX
    return ", ".join(partitions[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _show(found: "Sequence[Compared]", host: str, output: OutputFormat) -> None:
    rows = [
        {
            "topic": each.place[0],
            "partition": each.place[1],
            "offset": difference.offset,
            "problem": difference.what,
        }
        for each in found
        for difference in each.differences
    ]
    show_rows(rows, output)
    offsets = sum(each.end - each.start for each in found)
    by_key = sum(each.by_key for each in found)
    note = f", {by_key} of them by the newest record of each key" if by_key else ""
    what = f"{counted(len(found), 'replica')} compared with {host}{note}: {counted(offsets, 'offset')}"
    remark(f"{what}, {counted(len(rows), 'difference')}")


def _partitions_below(path: str) -> list[str]:
    if not os.path.isdir(path):
        raise usage(f"{path} is no directory", remedy="with --against name directories, not files")
    # Directories of brokers on one host are called broker-1, as partition 1 of a topic would be.
    is_data_dir = os.path.exists(os.path.join(path, META_PROPERTIES))
    if parse_partition_directory(os.path.basename(path)) is not None and not is_data_dir:
        return [path]
    return [
        os.path.join(path, name)
        for name in sorted(os.listdir(path))
        if parse_partition_directory(name) is not None and os.path.isdir(os.path.join(path, name))
    ]
