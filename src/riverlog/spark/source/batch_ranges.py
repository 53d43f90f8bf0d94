"""Where a batch read begins and ends in each partition, and whether the log has what is asked for.

Asked by planning for all partitions, to find mistakes early, and by each task for its own, for the offsets as
they are then. Places that follow the log (`earliest`, `latest`) cannot miss it; offsets that were given as
numbers, or by a group, can.
"""

from collections.abc import Collection

from riverlog.client.cluster import Cluster
from riverlog.model.ids import TopicPartition
from riverlog.spark.source.data_loss import BackwardRange, DataLoss, tell_loss
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.places import AtGroup, AtOffsets
from riverlog.spark.source.plan import Range
from riverlog.spark.source.positions import earliest, find, latest


def batch_ranges(
    cluster: Cluster,
    options: SourceOptions,
    partitions: Collection[TopicPartition],
    selected: Collection[TopicPartition],
) -> list[Range]:
    """Of these partitions, which are all those selected, or some."""
    starts = find(cluster, options, options.starting, partitions, selected, "starting")
    ends = find(cluster, options, options.ending, partitions, selected, "ending")
    ranges = [_forward(Range(at, starts[at], ends[at])) for at in partitions]
    if not isinstance(options.starting, AtOffsets | AtGroup) and not isinstance(
        options.ending, AtOffsets | AtGroup
    ):
        return ranges
    logs_begin = earliest(cluster, partitions)
    logs_end = latest(cluster, partitions, read_committed=False)
    return [_within_log(options, each, logs_begin[each.at], logs_end[each.at]) for each in ranges]


def _forward(wanted: Range) -> Range:
    """As with Spark's connector, this is no loss that could be allowed."""
    if wanted.start > wanted.end:
        raise BackwardRange(wanted.at, wanted.start, wanted.end)
    return wanted


def _within_log(options: SourceOptions, wanted: Range, log_begin: int, log_end: int) -> Range:
    """The part of it that the log has; what it has not is an error, or a warning where that is allowed."""
    at, start, end = wanted.at, wanted.start, wanted.end
    if start < min(log_begin, end):
        loss = DataLoss(at, start, min(log_begin, end), f"the log begins at {log_begin}")
        tell_loss(loss, is_allowed=not options.fail_on_data_loss)
    if end > log_end:
        loss = DataLoss(at, max(start, log_end), end, f"the log ends at {log_end}")
        tell_loss(loss, is_allowed=not options.fail_on_data_loss)
    there = min(max(start, log_begin), log_end)
    return Range(at, there, max(there, min(end, log_end)))
