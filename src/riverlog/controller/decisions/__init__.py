"""What the controller decides, as pure functions from the image of the cluster to plans and refusals.

Not here: the metadata store, the event loop, and whether this broker is the controller.
"""
