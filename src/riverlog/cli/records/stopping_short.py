"""Why a reading of committed records ended before the end of a partition: an open transaction."""

from collections.abc import Mapping

from riverlog.cli.asking.cluster import Place, end_offsets
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.held_back import HeldBack, held_back
from riverlog.cli.asking.transactions import ending_command
from riverlog.cli.printing.durations import human_duration
from riverlog.cli.printing.output import warn


def tell_what_holds_back(connection: Connection, reached: Mapping[Place, int]) -> None:
    """`reached` is where each partition was found to end."""
    ends = end_offsets(connection, reached)
    short = {place: end for place, end in ends.items() if reached[place] < end}
    for each in held_back(connection, short) if short else ():
        warn(account(each))


def account(held: HeldBack) -> str:
    topic, partition = held.place
    text = f"{topic}-{partition}: committed records end at offset {held.last_stable_offset} of {held.end}: "
    if held.transaction is not None:
        since = "" if held.age_ms is None else f" for {human_duration(held.age_ms)}"
        name = held.transaction.transactional_id
        return (
            f"{text}the transaction of {name} has been open{since}; "
            f"if its producer is gone, `{ending_command(name)}`"
        )
    if held.producer_id is not None:
        return f"{text}producer {held.producer_id} has a transaction open that no coordinator knows"
    return f"{text}a transaction is open; `riverlog txn list --open` shows which"
