"""The source behind `spark.read` and `spark.readStream.format("riverlog")`.

`options` says what is wanted, `positions` where that is in the cluster, `plan` cuts it into splits, and
`split_reader` reads one of them as Arrow batches; `batch_reader` and `stream_reader` are what Spark calls.
"""
