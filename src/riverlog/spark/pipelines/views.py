"""Making datasets readable without making them: for a look at the definitions that must change nothing."""

from pyspark.pipelines.output import Output, Sink

from riverlog.spark.pipelines.definitions import PythonFlow


def publish_as_view(output: Output, flow: PythonFlow) -> None:
    """A view of this session stands for a table; the view ends with the session."""
    if not isinstance(output, Sink):
        flow.frame.createOrReplaceTempView(output.name.rpartition(".")[2])
