"""A member of a classic group, with the requests of it that wait for an answer."""

from dataclasses import dataclass

from riverlog.coordinator.groups.classic.records import StoredMember
from riverlog.coordinator.groups.classic.requests import (
    Joined,
    JoinedMember,
    Joining,
    MemberProtocol,
    Protocols,
    Synced,
)
from riverlog.coordinator.runtime.effects import Token


@dataclass(slots=True)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: Token[Joined] | None = None
    syncing: Token[Synced] | None = None
    is_new: bool = False
    """It has not yet been told its first generation, and so cannot send heartbeats."""

    @property
    def is_excused(self) -> bool:
        """A member that waits for our reply need not send heartbeats."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str | None) -> bytes:
        return next((known.metadata for known in self.protocols if known.name == protocol), b"")

    def shown_to_leader(self, protocol: str | None) -> JoinedMember:
        return JoinedMember(self.member_id, self.instance_id, self.metadata(protocol))

    def take_over(self, request: Joining) -> None:
        """What the latest join says of it."""
        self.protocols = request.protocols
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = request.rebalance_timeout_ms

    def stored(self, protocol: str | None, assignment: bytes) -> StoredMember:
        return StoredMember(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            assignment,
        )


def member_joining(request: Joining, member_id: str) -> Member:
    return Member(
        member_id,
        request.instance_id,
        request.client_id,
        request.client_host,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.protocols,
    )


def member_from(stored: StoredMember, protocol: str | None) -> Member:
    protocols = () if protocol is None else (MemberProtocol(protocol, stored.subscription),)
    return Member(
        stored.member_id,
        stored.instance_id,
        stored.client_id,
        stored.client_host,
        stored.session_timeout_ms,
        stored.rebalance_timeout_ms,
        protocols,
        stored.assignment,
    )
