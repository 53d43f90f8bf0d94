"""Riverlog beside Spark: the data source and sink, functions on streams, pipelines, archive and replay."""
