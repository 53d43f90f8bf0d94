"""What tests may put between clients and the broker, to see what clients do when it misbehaves.

An interception stands before everything: it sees whole frames, whichever way they take afterwards, and the
answers on their way back. A broker without one has no trace of it on any request's way.
"""

from typing import Protocol

from riverlog.broker.net.connection import Answering
from riverlog.model.network import Address


class Interception(Protocol):
    def over(self, answering: Answering) -> Answering:
        """What connections ask instead of `answering`, once for each start of a broker."""
        ...

    def refuses(self, peer: Address) -> bool:
        """Whether a connection from there is reset as soon as it is made."""
        ...


class NoInterception:
    def over(self, answering: Answering) -> Answering:
        return answering

    def refuses(self, peer: Address) -> bool:
        return False
