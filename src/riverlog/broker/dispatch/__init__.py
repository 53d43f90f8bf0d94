"""From a frame to a handler and back: the one route list, versions, decoding, encoding, failures.

Not here: what any API does.
"""
