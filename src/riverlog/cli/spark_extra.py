"""The extra `spark`: what is said when it is missing, and what it says, in the words of the command line."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from riverlog.cli.failures import CommandError, ExitCode


@contextmanager
def spark_extra() -> Iterator[None]:
    """Failures of pipelines in the words of the command line; a missing extra says how to get it."""
    # PySpark has opinions about the version of pandas, which nothing here uses.
    warnings.filterwarnings("ignore", message=".*pandas.*", category=FutureWarning)
    check_installed("pyspark", "pyarrow", "yaml", "grpc")
    from pyspark.errors import PySparkException

    from riverlog.spark.pipelines.failures import one_line

    try:
        with told_in_our_words():
            yield
    except PySparkException as error:
        # What the source and the sink complain about ends with what to do.
        message, _, remedy = one_line(error).rpartition("; ")
        raise CommandError(message or remedy, remedy=remedy if message else "") from error


def check_installed(*names: str) -> None:
    if missing := [name for name in names if find_spec(name) is None]:
        raise CommandError(
            f"pipelines need Spark, and {', '.join(missing)} cannot be imported",
            remedy="pip install 'riverlog[spark]'",
        )


@contextmanager
def told_in_our_words() -> Iterator[None]:
    """What goes wrong without Spark having a part in it."""
    from riverlog.client.cluster import ClusterUnreachable
    from riverlog.spark.pipelines.failures import PipelineError, ProjectNotFound, SparkUnreachable

    try:
        yield
    except ProjectNotFound as error:
        raise CommandError(str(error), remedy=error.remedy, code=ExitCode.NOT_FOUND) from error
    except SparkUnreachable as error:
        raise CommandError(str(error), remedy=error.remedy, code=ExitCode.CONNECTION) from error
    except PipelineError as error:
        raise CommandError(str(error), remedy=error.remedy) from error
    except ClusterUnreachable as error:
        raise CommandError(str(error), remedy="check the address", code=ExitCode.CONNECTION) from error
