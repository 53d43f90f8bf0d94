"""Who has written a record, as `consume` prints it."""

from confluent_kafka import Producer

from tests.cli.running import CommandLine

FORMAT = "%o %P %P{epoch} %P{sequence} %s\\n"


def idempotent(riverlog: CommandLine, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": riverlog.bootstrap, "enable.idempotence": True, **settings})


def test_the_producer_of_each_record(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "nobody")
    first, second = idempotent(riverlog), idempotent(riverlog, **{"linger.ms": 200})
    for producer, values in ((first, ("a",)), (second, ("b", "c", "d"))):
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(20) == 0
    rows = [
        line.split(" ") for line in riverlog.consume(topic, "-f", FORMAT, "--null", "-").stdout.splitlines()
    ]
    assert rows[0] == ["0", "-", "-", "-", "nobody"]
    assert [(row[0], row[2], row[3], row[4]) for row in rows[1:]] == [
        ("1", "0", "0", "a"),
        ("2", "0", "0", "b"),
        ("3", "0", "1", "c"),
        ("4", "0", "2", "d"),
    ]
    ids = [row[1] for row in rows[1:]]
    assert len(set(ids)) == 2
    assert ids[1:] == ids[3:] * 3
    dumped = riverlog.consume(topic, "--from", "3", "-n", "1", "-f", "%P %s").stdout
    assert dumped == f"{ids[3]} c"


def test_a_new_epoch_after_a_transaction_is_told(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")
    for epoch in range(2):
        producer = idempotent(riverlog, **{"transactional.id": topic})
        producer.init_transactions(20)
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(topic, f"{epoch}", partition=partition)
        producer.commit_transaction(20)
    rows = [
        line.split()
        for line in riverlog.consume(topic, "-f", "%s %P %P{epoch} %P{sequence}\\n").stdout.splitlines()
    ]
    assert len(rows) == 4
    by_value: dict[str, set[int]] = {}
    for value, _, epoch_text, sequence in rows:
        by_value.setdefault(value, set()).add(int(epoch_text))
        assert sequence == "0"
    assert max(by_value["0"]) < min(by_value["1"])


def test_an_unknown_form_is_named(riverlog: CommandLine) -> None:
    assert "no token %P{hex}" in riverlog("consume", "t", "-f", "%P{hex}", code=2).stderr
