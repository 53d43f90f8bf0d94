"""The life of transactions: begin, write, end; who is fenced; what is repeated. In every version.

Kafka writes markers after it has answered, so a sequence waits for one transaction's end before it goes on.
"""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import created, fetch, produce, wanted
from tests.differential.steps import Call, Script, Step, batch, var

Json = Any

_ME = var("producer:1")
COMPLETE = {"commit": "CompleteCommit", "abort": "CompleteAbort"}


def scripts() -> list[Script]:
    made = [Script("AddPartitionsToTxn", f"life, version {v}", _life(v)) for v in range(6)]
    made += [Script("AddPartitionsToTxn", f"refusals, version {v}", _add_refusals(v)) for v in range(6)]
    made += [Script("AddPartitionsToTxn", f"verification, version {v}", _verification(v)) for v in (4, 5)]
    made += [Script("EndTxn", f"ends and repetitions, version {v}", _ends(v)) for v in range(6)]
    made += [Script("EndTxn", f"refusals, version {v}", _end_refusals(v)) for v in range(6)]
    made += [Script("EndTxn", f"abort of nothing, version {v}", _abort_of_nothing(v)) for v in (4, 5)]
    made += [Script("InitProducerId", f"transactional, version {v}", _takeovers(v)) for v in range(6)]
    made += [Script("InitProducerId", f"fencing, version {v}", _fencing(v)) for v in (0, 3, 4, 5)]
    made += [
        Script("Produce", f"in a transaction, version {v}", _writes(v)) for v in (3, 7, 9, 10, 11, 12, 13)
    ]
    made += [Script("Produce", f"by a zombie, version {v}", _zombie(v)) for v in (9, 11, 12)]
    made += [Script("Produce", f"first sequences, version {v}", _first_sequences(v)) for v in (9, 11, 12)]
    return made


def find_coordinator(name: str, kind: int = 1) -> Call:
    fields = {"coordinator_keys": [name], "key_type": kind}
    return Call("FindCoordinator", 4, fields, until={"coordinators.0.error_code": "NONE"})


def init(name: str, version: int = 4, *, until_ready: bool = False, **more: Json) -> Call:
    fields = {"transactional_id": name, "transaction_timeout_ms": 60_000} | more
    return Call("InitProducerId", version, fields, until={"error_code": "NONE"} if until_ready else None)


def begun(name: str, **more: Json) -> list[Step]:
    """A producer that may speak for the transactional id: `producer:1`, epoch 0."""
    return [find_coordinator(name), init(name, until_ready=True, **more)]


def add(
    name: str,
    topic: str,
    *partitions: int,
    version: int = 3,
    epoch: int = 0,
    producer: Json = _ME,
    **more: Json,
) -> Call:
    topics = [{"name": topic, "partitions": list(partitions) or [0]}]
    if version < 4:
        return Call(
            "AddPartitionsToTxn",
            version,
            {
                "v3_and_below_transactional_id": name,
                "v3_and_below_producer_id": producer,
                "v3_and_below_producer_epoch": epoch,
                "v3_and_below_topics": topics,
            },
        )
    transaction = {
        "transactional_id": name,
        "producer_id": producer,
        "producer_epoch": epoch,
        "verify_only": False,
        "topics": topics,
    }
    return Call("AddPartitionsToTxn", version, {"transactions": [transaction | more]})


def end(name: str, how: str, *, version: int = 4, epoch: int = 0, producer: Json = _ME) -> Call:
    fields = {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch}
    return Call("EndTxn", version, fields | {"committed": how == "commit"})


def state(name: str, until: str | None = None) -> Call:
    awaited = None if until is None else {"transaction_states.0.transaction_state": until}
    fields = {"state_filters": [], "producer_id_filters": [], "transactional_id_pattern": name}
    return Call("ListTransactions", 2, fields, until=awaited)


def numbered(sequence: int, *values: str, epoch: int = 0, producer: Json = _ME) -> Json:
    return batch(
        *(values or ("v",)),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=16,
    )


def read(topic: str, offset: int = 0, *, committed: bool = True, until: Any = None) -> Call:
    return fetch(11, topic, wanted(0, offset), isolation_level=1 if committed else 0, until=until)


def _life(version: int) -> list[Step]:
    name = f"life-{version}"
    ends = 5 if version >= 5 else 4
    second = 1 if version >= 5 else 0
    return [
        *created(name, 2),
        *begun(name),
        state(name),
        add(name, name, 0, version=version),
        state(name),
        produce(11, name, numbered(0, "a", "b"), transactional_id=name),
        read(name),
        read(name, committed=False),
        end(name, "commit", version=ends),
        state(name, "CompleteCommit"),
        read(name),
        add(name, name, 0, 1, version=version, epoch=second),
        add(name, name, 1, version=version, epoch=second),
        produce(11, name, numbered(0 if second else 2, "c", epoch=second), transactional_id=name),
        produce(11, name, numbered(1 if second else 3, "d", epoch=second), transactional_id=name),
        end(name, "abort", version=ends, epoch=second),
        state(name, "CompleteAbort"),
        read(name),
        read(name, 3),
        read(name, committed=False),
        fetch(11, name, wanted(1, 0), isolation_level=1),
    ]


def _add_refusals(version: int) -> list[Step]:
    name = f"add-refusals-{version}"
    return [
        *created(name),
        *begun(name),
        add("nobody-knows", name, version=version),
        add("", name, version=version),
        add(name, "no-such-topic", version=version),
        add(name, name, 0, 1, version=version),
        add(name, name, version=version, producer=900700),
        add(name, name, version=version, epoch=1),
        add(name, name, version=version, epoch=-1),
        state(name),
        add(name, name, version=version),
        add(name, name, version=version),
        add(name, name, version=version, epoch=1),
        end(name, "abort"),
        state(name, "CompleteAbort"),
    ]


def _verification(version: int) -> list[Step]:
    name = f"verification-{version}"
    return [
        *created(name, 2),
        *begun(name),
        add(name, name, version=version, verify_only=True),
        add(name, name, version=version),
        add(name, name, 0, 1, version=version, verify_only=True),
        add(name, name, version=version, verify_only=True, epoch=1),
        add(name, name, version=version, verify_only=True, producer=900701),
        add("nobody-knows", name, version=version, verify_only=True),
        add(name, "no-such-topic", version=version, verify_only=True),
        end(name, "commit"),
        state(name, "CompleteCommit"),
        add(name, name, version=version, verify_only=True),
    ]


def _ends(version: int) -> list[Step]:
    name = f"ends-{version}"
    steps: list[Step] = [*created(name), *begun(name)]
    epoch = 0
    for how, other in (("commit", "abort"), ("abort", "commit")):
        steps += [
            add(name, name, version=5 if version >= 5 else 3, epoch=epoch),
            end(name, how, version=version, epoch=epoch),
            state(name, COMPLETE[how]),
            end(name, how, version=version, epoch=epoch),
            end(name, other, version=version, epoch=epoch),
            end(name, how, version=version, epoch=epoch + 2),
        ]
        if version >= 5:
            epoch += 1
            steps += [end(name, "commit", version=version, epoch=epoch), state(name)]
    return steps


def _end_refusals(version: int) -> list[Step]:
    name = f"end-refusals-{version}"
    return [
        *created(name),
        *begun(name),
        end("nobody-knows", "commit", version=version),
        end("", "commit", version=version),
        end(name, "commit", version=version),
        end(name, "commit", version=version, producer=900702),
        end(name, "commit", version=version, epoch=1),
        add(name, name),
        end(name, "commit", version=version, producer=900702),
        end(name, "commit", version=version, epoch=1),
        end(name, "abort", version=version, epoch=-1),
        state(name),
        end(name, "abort", version=version),
        state(name, "CompleteAbort"),
    ]


def _abort_of_nothing(version: int) -> list[Step]:
    name = f"abort-of-nothing-{version}"
    return [
        *begun(name),
        end(name, "abort", version=version),
        state(name, "CompleteAbort" if version >= 5 else "Empty"),
        end(name, "abort", version=version),
        end(name, "abort", version=version, epoch=1),
        state(name, "CompleteAbort" if version >= 5 else "Empty"),
        end(name, "commit", version=version, epoch=2),
        init(name),
        state(name),
    ]


def _takeovers(version: int) -> list[Step]:
    name = f"takeover-{version}"
    steps: list[Step] = [
        find_coordinator(name),
        init(name, version, transaction_timeout_ms=0),
        init(name, version, transaction_timeout_ms=-1),
        init(name, version, transaction_timeout_ms=900_001),
        init(name, version, until_ready=True),
        init(name, version),
        init(name, version, transaction_timeout_ms=1000),
        state(name),
    ]
    if version >= 3:
        for producer, epoch in [
            (_ME, 2),
            (_ME, 2),
            (_ME, 1),
            (_ME, 3),
            (_ME, 3),
            (900703, 0),
            (_ME, 9),
            (_ME, 32766),
            (_ME, -1),
            (-1, 4),
        ]:
            steps.append(init(name, version, producer_id=producer, producer_epoch=epoch))
    return [*steps, init(name, version), state(name)]


def _fencing(version: int) -> list[Step]:
    name = f"fencing-{version}"
    return [
        *created(name),
        *begun(name),
        add(name, name),
        produce(11, name, numbered(0, "lost"), transactional_id=name),
        init(name, version, until_ready=True),
        state(name),
        read(name),
        read(name, committed=False),
        add(name, name),
        end(name, "commit"),
        end(name, "commit", version=5),
        produce(11, name, numbered(1, "zombie"), transactional_id=name),
        produce(12, name, numbered(1, "zombie"), transactional_id=name),
        add(name, name, epoch=2),
        produce(11, name, numbered(0, "kept", epoch=2), transactional_id=name),
        end(name, "commit", epoch=2),
        state(name, "CompleteCommit"),
        read(name),
    ]


def _writes(version: int) -> list[Step]:
    name = f"transactional-{version}"

    def send(
        sequence: int, value: str, partition: int = 0, at: int = 0, transactional_id: str | None = name
    ) -> Call:
        records = numbered(sequence, value, epoch=at)
        return produce(version, name, records, partition=partition, transactional_id=transactional_id)

    steps: list[Step] = [
        *created(name, 2),
        *begun(name),
        send(0, "not added"),
        state(name),
        send(0, "no id", transactional_id=None),
        send(0, "another's id", transactional_id="nobody-knows"),
        # From 12 on such an attempt leaves Kafka's partition unable to go on with the transaction.
        *([send(0, "higher epoch", at=7)] if version < 12 else []),
        add(name, name),
        send(0, "a"),
        send(0, "a"),
        send(1, "b"),
        send(9, "gap"),
        send(0, "other partition", partition=1),
        produce(version, name, batch("plain", producer_id=_ME, producer_epoch=0, base_sequence=2)),
        state(name),
        end(name, "commit", version=5 if version >= 12 else 4),
        state(name, "CompleteCommit"),
        read(name),
        send(2, "after the end"),
        send(0, "after the end", at=1),
        state(name),
        fetch(11, name, wanted(1, 0), isolation_level=1),
    ]
    return steps


def _zombie(version: int) -> list[Step]:
    name = f"zombie-{version}"
    return [
        *created(name),
        *begun(name),
        add(name, name),
        produce(version, name, numbered(0, "a"), transactional_id=name),
        end(name, "commit", version=5),
        state(name, "CompleteCommit"),
        produce(version, name, numbered(1, "late"), transactional_id=name),
        end(name, "commit", version=5),
        end(name, "abort", version=5),
        add(name, name, version=5, epoch=1),
        produce(version, name, numbered(1, "late"), transactional_id=name),
        produce(version, name, numbered(0, "b", epoch=1), transactional_id=name),
        end(name, "commit", version=5, epoch=0),
        end(name, "commit", version=5, epoch=1),
        state(name, "CompleteCommit"),
        read(name),
    ]


def _first_sequences(version: int) -> list[Step]:
    """A partition that has never heard of the producer, or only of its last epoch."""
    name = f"first-sequences-{version}"

    def send(sequence: int, partition: int, epoch: int = 0) -> Call:
        records = numbered(sequence, "v", epoch=epoch)
        return produce(version, name, records, partition=partition, transactional_id=name)

    return [
        *created(name, 3),
        *begun(name),
        add(name, name, 0, 1, 2),
        send(5, 0),
        send(6, 0),
        send(0, 0),
        send(0, 1),
        send(2, 1),
        send(1, 1),
        end(name, "commit", version=5),
        state(name, "CompleteCommit"),
        add(name, name, 0, 1, 2, version=5, epoch=1),
        send(3, 0, epoch=1),
        send(0, 0, epoch=1),
        send(3, 2, epoch=1),
        send(0, 2, epoch=1),
        end(name, "commit", version=5, epoch=1),
        state(name, "CompleteCommit"),
        read(name),
    ]
