"""The controller of a cluster: takes requests for changes, keeps partitions led, holds its office.

`decisions` is pure and says what is to become; the modules beside it carry that out through the metadata
store. Not here: what a broker does with its own partitions.
"""
