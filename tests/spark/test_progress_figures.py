"""Figures from Spark's progress reports, and their text; no Spark here."""

from typing import Any

from riverlog.spark.progress_figures import QueryFigures, lag_of, prometheus_text


def report(batch: int, *sources: dict[str, Any], did_work: bool = True) -> dict[str, Any]:
    durations = {"addBatch": 5, "triggerExecution": 9} if did_work else {"triggerExecution": 9}
    return {
        "id": "q1",
        "batchId": batch,
        "batchDuration": 9,
        "processedRowsPerSecond": 50.0,
        "durationMs": durations,
        "sources": list(sources),
    }


def source(end: object, latest: object, rows: int = 0) -> dict[str, Any]:
    return {"endOffset": end, "latestOffset": latest, "numInputRows": rows}


def test_lag_is_counted_by_partition_from_texts_and_objects() -> None:
    found = lag_of(
        [
            source('{"t": {"0": 5, "1": 7}}', '{"t": {"0": 9, "1": 7}}'),
            source({"u": {"0": 1}}, {"u": {"0": 4}}),
        ]
    )
    assert found == {("t", 0): 4, ("t", 1): 0, ("u", 0): 3}


def test_sources_that_are_no_topics_have_no_lag() -> None:
    others = [source("3", "9"), source(None, None), source({"path": "x"}, "not JSON"), source([], {})]
    assert lag_of(others) == {}


def test_a_topic_that_is_read_twice_counts_by_the_reader_that_is_behind() -> None:
    twice = [source({"t": {"0": 9}}, {"t": {"0": 9}}), source({"t": {"0": 2}}, {"t": {"0": 9}})]
    assert lag_of(twice) == {("t", 0): 7}


def test_each_batch_is_counted_once_and_reports_without_a_batch_not_at_all() -> None:
    figures = QueryFigures("q1", "orders")
    first = report(0, source({"t": {"0": 5}}, {"t": {"0": 8}}, rows=5))
    assert figures.add(first)
    assert not figures.add(first)
    assert not figures.add(report(1, source({"t": {"0": 5}}, {"t": {"0": 9}}), did_work=False))
    assert (figures.batches, figures.rows, figures.last_batch, figures.total_lag) == (1, 5, 0, 4)
    assert figures.line() == "query orders: batch 0 in 9 ms, 5 rows in 1 batches, lag 4 (t-0 4)"


def test_the_text_has_help_type_and_one_sample_for_each_query_and_partition() -> None:
    figures = QueryFigures("q1", 'odd "name"\\')
    figures.add(report(3, source({"t": {"0": 5, "1": 1}}, {"t": {"0": 8, "1": 1}}, rows=6)))
    figures.transactions, figures.open_transactions = 4, 0
    labels = r'query="odd \"name\"\\",id="q1"'
    text = prometheus_text([figures])
    lines = text.splitlines()
    assert text.endswith("\n")
    assert "# TYPE riverlog_spark_rows_total counter" in lines
    assert f"riverlog_spark_rows_total{{{labels}}} 6" in lines
    assert f"riverlog_spark_transactions_total{{{labels}}} 4" in lines
    assert f"riverlog_spark_open_transactions{{{labels}}} 0" in lines
    assert f'riverlog_spark_lag{{{labels},topic="t",partition="0"}} 3' in lines
    assert f'riverlog_spark_lag{{{labels},topic="t",partition="1"}} 0' in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_what_nobody_has_asked_for_is_left_out_of_the_text() -> None:
    assert "transactions" not in prometheus_text([QueryFigures("q1", "orders")])
    assert prometheus_text([]) == ""
