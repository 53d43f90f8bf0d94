"""How the process's file descriptors are shared out: segments, connections, and the rest."""

import resource

_RESERVED = 64
"""For the metadata, threads, listeners and files that are open for a moment."""


class DescriptorShares:
    """Half for segment and index files, the rest for connections; settings can only lower a share."""

    def __init__(self, open_files_max: int | None) -> None:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        available = max(limit - _RESERVED, 16)
        share = available // 2
        self.open_files = share if open_files_max is None else max(min(open_files_max, share), 2)
        self._connections = available - self.open_files

    def connections_under(self, connections_max: int) -> int:
        return min(connections_max, self._connections)


def raise_limit() -> None:
    """Allow this process as many descriptors as it may have. Not for one that embeds a broker."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
