"""What the cluster is: the metadata store's adapters, the immutable image made from it, and its followers.

Not here: decisions (see `riverlog.controller`) and anything about logs. Handlers read the image only; writes
go through the controller.
"""
