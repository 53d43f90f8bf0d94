"""What Riverlog guarantees and which tests show it; `scripts/soak.py` makes docs/guarantees.md of it.

The numbers are those by which tests and issues refer to an invariant. A line without tests says why.
"""

from dataclasses import dataclass

_MIXED = "tests/delivery/test_mixed_run.py"
_EXACTLY_ONCE = "tests/delivery/test_exactly_once.py"
_COMMITS = "tests/delivery/test_commits.py"
_CATCHES = "tests/delivery/test_checker_catches.py"
_KILLS = "tests/delivery/test_replica_kills.py"
_FIVE = "tests/delivery/test_five_replicas.py"
_ROLLING = "tests/delivery/test_rolling_restart.py"
_SPARK = "tests/delivery/test_spark_exactly_once.py"
_REPLICAS = "tests/simulation/test_replicas.py"
_SPARK_LONG = "tests/delivery/test_spark_long_run.py"


@dataclass(frozen=True, slots=True)
class Guarantee:
    number: int
    text: str
    tests: tuple[str, ...] = ()
    missing: str = ""


GUARANTEES = (
    Guarantee(
        1,
        "A record acknowledged with acks=all is readable at its offset until retention, compaction or"
        " deletion takes it; on one node it survives kill -9, with `riverlog.acks.fsync` a power cut.",
        (_MIXED, "tests/node/test_serve.py", "tests/node/test_durability.py", "tests/storage/test_crash.py"),
    ),
    Guarantee(
        2,
        "(topic id, partition, offset) has one value, on every read.",
        (_MIXED, _EXACTLY_ONCE),
    ),
    Guarantee(
        3,
        "log start <= last stable offset <= high watermark <= log end.",
        ("tests/storage/test_log_model.py", "tests/storage/test_producers.py"),
    ),
    Guarantee(
        4,
        "No read above the high watermark; under read_committed nothing above the last stable offset and"
        " nothing aborted.",
        (_MIXED, _EXACTLY_ONCE, _CATCHES, "tests/broker/test_transactions.py"),
    ),
    Guarantee(
        5,
        "Records of one producer to one partition stand in the order sent, with up to five requests in"
        " flight.",
        (_MIXED, "tests/storage/test_producers.py"),
    ),
    Guarantee(
        6,
        "One append per producer id, epoch and sequence; a retry answers with the original offset.",
        (_CATCHES, _MIXED, "tests/storage/test_producers.py", "tests/storage/test_producer_model.py"),
    ),
    Guarantee(7, "Replicas are byte-identical below the lowest high watermark.", (_KILLS, _FIVE, _ROLLING)),
    Guarantee(
        8,
        "At most one leader per epoch; epochs only rise; the leader is in the ISR, and every member of ISR or"
        " ELR holds all committed data.",
        (_REPLICAS, "tests/simulation/test_states.py", "tests/controller/test_leadership.py"),
    ),
    Guarantee(
        9,
        "No truncation below the high watermark unless unclean election is on.",
        (
            _REPLICAS,
            "tests/replication/following/test_truncation.py",
            "tests/delivery/test_unclean_election.py",
        ),
    ),
    Guarantee(
        10,
        "After a crash: a CRC-valid prefix with everything acknowledged; rebuilt state equals a full replay.",
        (_MIXED, "tests/storage/test_crash.py", "tests/storage/test_recovery.py"),
    ),
    Guarantee(
        11,
        "Compaction keeps the newest value of each key and every offset.",
        ("tests/storage/cleaning/test_compaction_model.py", "tests/storage/cleaning/test_crash.py"),
    ),
    Guarantee(
        12,
        "One owner per partition, group and generation; stale generations are fenced.",
        (
            "tests/coordinator/test_classic_model.py",
            "tests/coordinator/test_consumer_model.py",
            "tests/broker/test_groups.py",
        ),
    ),
    Guarantee(
        13,
        "Live coordinator state is a replay of its log; a committed offset never moves back unasked.",
        (
            _COMMITS,
            _MIXED,
            "tests/coordinator/test_offset_replay.py",
            "tests/coordinator/test_classic_model.py",
        ),
    ),
    Guarantee(
        14,
        "A transaction is all or nothing over partitions and offsets; a late EndTxn harms nothing; none stays"
        " open past its time-out unless it was begun for two-phase commit.",
        (
            _EXACTLY_ONCE,
            _MIXED,
            "tests/coordinator/test_transaction_crash.py",
            "tests/coordinator/test_transaction_decisions.py",
        ),
    ),
    Guarantee(
        15,
        "A transactional produce never lands outside its transaction.",
        (_CATCHES, "tests/broker/test_transactions.py"),
    ),
    Guarantee(16, "After the last fault heals all brokers agree.", (_KILLS, _REPLICAS)),
    Guarantee(
        17,
        "Orders of an old controller epoch are refused; a leader without its session acknowledges nothing"
        " that the whole ISR has not confirmed.",
        (_REPLICAS, "tests/simulation/test_controllers.py", "tests/replication/test_lease.py"),
    ),
    Guarantee(
        18,
        "Memory stays within base and budget for any input; no descriptor or task leaks.",
        ("tests/hostile/test_seen_in_the_wild.py", "tests/hostile/test_mutations_over_a_socket.py"),
    ),
    Guarantee(19, "An unauthorised call changes and reveals nothing.", missing="there are no ACLs so far"),
    Guarantee(20, "The same seed gives the same simulated run.", ("tests/storage/test_crash.py",)),
    Guarantee(
        21,
        "No log of an existing topic id is deleted by a start: what nobody claims is set aside.",
        ("tests/simulation/test_swarm.py", _REPLICAS),
    ),
)

DELIVERY = (
    ("At least once repeats and never loses.", f"{_COMMITS}::test_at_least_once_repeats_and_never_loses"),
    ("At most once loses and never repeats.", f"{_COMMITS}::test_at_most_once_loses_and_never_repeats"),
    (
        "Consume, transform, produce in transactions is exactly once; after an abort the group resumes at the"
        " old offset.",
        f"{_EXACTLY_ONCE}::test_each_record_is_transformed_exactly_once_over_kills_in_every_state",
    ),
    (
        "Whatever way offsets are committed, a kill before the commit leaves the group where it was, and one"
        " after it where it was put.",
        f"{_COMMITS}::test_a_kill_around_a_commit_leaves_the_group_where_it_was_or_where_it_was_put",
    ),
    (
        "Offsets that are kept with the results in a database give exactly once there.",
        f"{_COMMITS}::test_the_example_with_offsets_in_sqlite_counts_each_order_exactly_once",
    ),
    (
        "What a Spark query writes to a topic, as a stream or by foreachBatch, is there exactly once, whether"
        " its rows are repartitioned at random or not: over kills of the driver after a task's write, before"
        " commit, and between the"
        " decision and the end of the transactions; over a driver that is overtaken by another one, tasks"
        " that raise and are tried again, and kills of the broker at the same points.",
        f"{_SPARK}::test_each_row_is_written_once_over_kills_of_driver_and_broker_and_failing_tasks",
    ),
    (
        "The same with speculative tasks, where a task and its copy both write all their rows.",
        f"{_SPARK}::test_each_row_is_written_once_when_tasks_run_twice_at_the_same_time",
    ),
    (
        "However many batches a query has had, the memory of driver, workers and broker and the number of"
        " transactional ids are what they were, and each row is there once.",
        f"{_SPARK_LONG}::test_nothing_grows_with_the_number_of_batches",
    ),
    (
        "No anomaly with mixed producers and groups while all of them and the broker crash.",
        f"{_MIXED}::test_no_anomaly_in_many_records_while_everything_crashes",
    ),
    (
        "With three replicas nothing acknowledged is lost, doubled, torn or out of order while leaders,"
        " coordinators, the controller and ZooKeeper's servers are killed, and while ZooKeeper is away, which"
        " stops no acks=all produce; all replicas are the same in the end.",
        f"{_KILLS}::test_nothing_acknowledged_is_lost_doubled_or_torn_when_anything_is_killed",
    ),
    (
        "Of five replicas two may fail with `min.insync.replicas` 3, none with 5, four with 1; what was"
        " acknowledged is read as long as one lives.",
        f"{_FIVE}::test_as_many_brokers_may_fail_as_the_minimum_of_replicas_in_sync_leaves",
    ),
    (
        "A rolling restart of three brokers gives no error and no time-out to an application, and no"
        " partition is without a leader.",
        f"{_ROLLING}::test_a_broker_that_is_told_to_stop_is_missed_by_nobody",
    ),
    (
        "The checker that finds no anomaly does find those of a broker without deduplication or fencing.",
        f"{_CATCHES}::test_a_safeguard_taken_out_is_found_by_the_checker",
    ),
)
