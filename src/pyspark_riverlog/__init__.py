"""Where Spark looks for the format `riverlog`: a package by this name that holds `DefaultSource`."""

from riverlog.spark.data_source import RiverlogDataSource as DefaultSource

__all__ = ["DefaultSource"]
