"""What the cluster is: the metadata store (its adapters: `stores`), the immutable image, and its followers.

Not here: decisions (see `riverlog.controller`) and anything about logs. Handlers read the image only; writes
go through the controller.
"""
