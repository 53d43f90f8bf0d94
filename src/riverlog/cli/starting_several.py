"""From the options of `serve --brokers N` to a supervisor with N broker processes.

Each process is `riverlog serve` with the same options and, before them, what is its own: number, ports,
directories, and where the metadata is.
"""

import sys
from collections.abc import Mapping

from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.starting import ServeOptions
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.node.processes.cluster_directory import CLUSTER_UP, SERVE, prepared_directories
from riverlog.node.processes.event_loop import run_on_loop
from riverlog.node.processes.log_lines import log_to_stderr
from riverlog.node.processes.members import Member, members
from riverlog.node.processes.supervisor import BrokerFailedError, Child, supervise


def start_several(options: ServeOptions, settings: Settings, count: int) -> int:
    """Serve until told to stop; the exit code. Nothing is written before all settings are known to be
    good."""
    wanted = members(settings, count)
    config = ServerConfig.from_settings(settings)
    if config.zookeeper_connect is not None:
        from riverlog.node.zookeeper_extra import check_zookeeper  # Loads what others need not wait for.

        check_zookeeper(config.zookeeper_connect)
    log_to_stderr(options.log_level.name, "supervisor")
    try:
        with prepared_directories(settings, wanted, CLUSTER_UP if options.is_cluster_up else SERVE):
            run_on_loop(lambda: supervise([_child(options, member) for member in wanted]))
    except BrokerFailedError as error:
        known = error.exit_code in set(ExitCode)
        raise CommandError(
            str(error), code=ExitCode(error.exit_code) if known else ExitCode.FAILURE
        ) from None
    return ExitCode.OK


def _child(options: ServeOptions, member: Member) -> Child:
    def command(address: str | None) -> list[str]:
        overrides = member.overrides
        if address is not None:
            overrides = {**overrides, "listeners": _kept(overrides["listeners"], address)}
        return command_of(options, overrides)

    return Child(member.node_id, command)


def command_of(options: ServeOptions, overrides: Mapping[str, str]) -> list[str]:
    """The command line of one broker."""
    command = [sys.executable, "-m", "riverlog", "serve", "--supervised"]
    command += ["--log-level", options.log_level.value]
    if options.config is not None:
        command += ["--config", options.config]
    if options.insecure:
        command.append("--insecure")
    for pair in options.pairs:
        if pair.partition("=")[0].strip() not in overrides:
            command += ["--set", pair]
    for name, value in overrides.items():
        command += ["--set", f"{name}={value}"]
    return command


def _kept(listeners: str, address: str) -> str:
    """The first listener on the port that it had before, so that clients find it again."""
    first, *others = listeners.split(",")
    place, _, port = first.rpartition(":")
    return ",".join([f"{place}:{address.rpartition(':')[2] if port == '0' else port}", *others])
