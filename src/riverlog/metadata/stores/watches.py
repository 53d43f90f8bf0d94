"""Who is told when the metadata store changes. Shared by the stores that live in this process.

Callbacks run on the event loop, in the order of the commits. Not here: what changed; a callback reads again.
"""

from collections.abc import Callable, Iterable, Iterator

from riverlog.metadata.layout import is_at_or_below, parent
from riverlog.model.metadata_store import SessionState, WatchEvent


class _Watch:
    def __init__(self, stop: Callable[["_Watch"], None]) -> None:
        self._stop = stop

    def stop(self) -> None:
        self._stop(self)


class Watches:
    def __init__(self) -> None:
        self._paths: dict[_Watch, tuple[str, Callable[[WatchEvent], None]]] = {}
        self._sessions: dict[_Watch, Callable[[SessionState], None]] = {}

    def add(self, path: str, callback: Callable[[WatchEvent], None]) -> _Watch:
        watch = _Watch(lambda ended: self._paths.pop(ended, None) and None)
        self._paths[watch] = (path, callback)
        return watch

    def add_session(self, callback: Callable[[SessionState], None]) -> _Watch:
        watch = _Watch(lambda ended: self._sessions.pop(ended, None) and None)
        self._sessions[watch] = callback
        return watch

    def notify(self, changed: Iterable[str]) -> None:
        """Tell the watchers of each path, where a path stands for everything below it."""
        for path in changed:
            for watched, callback in list(self._paths.values()):
                if is_at_or_below(path, watched):
                    callback(WatchEvent(path))
                elif is_at_or_below(watched, path):
                    callback(WatchEvent(watched))

    def notify_session(self, state: SessionState) -> None:
        for callback in list(self._sessions.values()):
            callback(state)


def topmost(changed: Iterable[str]) -> list[str]:
    """The paths that stand for all of `changed`: those with no ancestor among them.

    One commit can make 200,000 nodes of a single topic; its watchers then hear of one path.
    """
    paths = dict.fromkeys(changed)
    return [path for path in paths if not any(above in paths for above in _ancestors(path))]


def _ancestors(path: str) -> Iterator[str]:
    """The nearest first: below a node that changed as well, one look is enough."""
    while path != "/":
        path = parent(path)
        yield path
