"""Functions on DataFrames of records: decode, dead letters, split, dedup.

They take the columns that the source gives (key, value, topic, partition, offset, timestamp, timestampType,
headers) and use DataFrame operations only, so they work on streams and on batches, in classic Spark and in
Spark Connect. They hold no connection and start no query. Import them from `riverlog.spark`.
"""
