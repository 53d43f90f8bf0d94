"""Sockets: listeners, connections, bytes in and bytes out, and the bounds on them.

Not here: what the bytes mean. A connection hands whole frames on and sends whatever parts it is given.
"""
