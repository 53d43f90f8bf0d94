"""Follows the metadata store and keeps the image of the cluster.

The only writer of the image. Changes are applied in order, one image after the other; subscribers are called
on the event loop with what differs before a caller of `refresh` goes on. Not here: decisions; the follower
never writes to the store.

A store that does not answer is asked again, and until it answers the image stays as it is: nothing that was
heard of is forgotten. After a reconnect, and in a new session, changes may have been missed, so that all is
read again, after a `sync`. The image never goes back: a store that is older than what it has shown before
says so at the `sync`, or what it shows does (`going_back`), and is not followed. What is read of a topic is
of one topic, although one of the same name may be made anew meanwhile: a state of the one under the id of
the other would make leaders that nobody has elected.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from riverlog.metadata import layout
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.going_back import why_states_are_older, why_topics_are_missing
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.image_builder import ROOTS, ImageBuilder, Tree, made_at, parts_of, topic_in
from riverlog.metadata.layout import is_at_or_below
from riverlog.model.metadata_store import (
    MetadataStore,
    SessionLostError,
    SessionState,
    StoreError,
    WatchEvent,
    Watching,
    WentBackError,
)

_logger = logging.getLogger(__name__)
_SINGLE_READS_MIN: Final = 100
_READS_AT_ONCE: Final = 200
_RETRY_MIN_S: Final = 0.05
_RETRY_MAX_S: Final = 1.0

T = TypeVar("T")
ImageSubscriber = Callable[[ImageDelta], None]


class MetadataFollower:
    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._image = ClusterImage()
        self._subscribers: list[ImageSubscriber] = []
        self._dirty: dict[str, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()
        self._watching: list[Watching] = []
        self._is_to_sync = True
        self._may_be_older = False
        """The store was away, and may have come back as another."""
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_connected = True
        self._stale_since_s: float | None = None

    @property
    def lag_s(self) -> float:
        """For how long the image may have lacked something: since the store was lost, or since the oldest of
        the changes that were heard of and not read yet."""
        since_s, loop = self._stale_since_s, self._loop
        return 0.0 if since_s is None or loop is None else loop.time() - since_s

    @property
    def image(self) -> ClusterImage:
        return self._image

    def subscribe(self, subscriber: ImageSubscriber) -> None:
        """Call after each change. Must not block; an exception ends the following."""
        self._subscribers.append(subscriber)

    async def start(self) -> None:
        """Read everything, then follow. Subscribers hear of the first image as a change from an empty one."""
        self._loop = asyncio.get_running_loop()
        self._watching = [
            self._store.watch("/", self._on_change),
            self._store.watch_session(self._on_session),
        ]
        self._dirty.update(dict.fromkeys(ROOTS))
        await self._apply_all_dirty()
        self._task = asyncio.create_task(self._follow(), name="metadata follower")

    async def close(self) -> None:
        for watching in self._watching:
            watching.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        for waiter in self._waiting:
            waiter.cancel()

    async def refresh(self, paths: Iterable[str] = ()) -> None:
        """Return when the image shows at least what the store held at these paths when this was called."""
        for path in paths:
            self._mark(path)
        if self._failure is not None:
            raise StoreError("The metadata is no longer followed; restart the node.") from self._failure
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._wake.set()
        await waiter

    def _on_change(self, event: WatchEvent) -> None:
        self._mark(event.path)
        if self._dirty:
            self._note_stale()
            self._wake.set()

    def _note_stale(self) -> None:
        if self._stale_since_s is None and self._loop is not None:
            self._stale_since_s = self._loop.time()

    def _on_session(self, state: SessionState) -> None:
        self._is_connected = state is SessionState.CONNECTED
        self._note_stale()
        if self._is_connected:
            self._is_to_sync = self._may_be_older = True
            self._dirty.update(dict.fromkeys(ROOTS))
            self._wake.set()

    def _mark(self, path: str) -> None:
        self._dirty.update(dict.fromkeys(parts_of(path)))

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting = self._waiting, []
            try:
                await self._apply_all_dirty()
            except BaseException as error:
                if isinstance(error, Exception):
                    _logger.exception("The metadata can no longer be followed; restart the node")
                self._failure = error
                _fail(waiting + self._waiting, error)
                raise
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    async def _apply_all_dirty(self) -> None:
        """Tries until the store answers."""
        retry_s = 0.0
        while True:
            try:
                await self._apply_dirty()
            except StoreError as error:
                if not retry_s:
                    _logger.warning(
                        "The metadata cannot be read; the broker goes on with what it knows: %s", error
                    )
                retry_s = min(2 * retry_s or _RETRY_MIN_S, _RETRY_MAX_S)
                await asyncio.sleep(retry_s)
            else:
                if retry_s:
                    _logger.info("The metadata is followed again")
                return

    async def _apply_dirty(self) -> None:
        """Apply all of what has changed, or nothing, and then it is still to be read."""
        assert self._loop is not None
        began_s = self._loop.time()
        parts, self._dirty = self._dirty, {}
        try:
            delta = await self._read_delta(parts)
        except StoreError:
            self._dirty = {**parts, **self._dirty}
            raise
        if self._is_connected:
            # What was heard of before that is read now.
            self._stale_since_s = began_s if self._dirty else None
        if delta is None:
            return
        self._image = delta.new
        for subscriber in self._subscribers:
            subscriber(delta)

    async def _read_delta(self, parts: Iterable[str]) -> ImageDelta | None:
        builder = ImageBuilder(self._image)
        for part, tree in await self._read(parts):
            builder.apply(part, tree)
        delta = builder.build()
        if self._may_be_older:
            why = None if delta is None else await self._why_older(delta)
            if why is not None:
                raise WentBackError(f"The metadata store is older than it was: {why}.")
            self._may_be_older = self._is_to_sync
        return delta

    async def _why_older(self, delta: ImageDelta) -> str | None:
        why = why_states_are_older(delta)
        if why is None and delta.deleted:
            deleted = await self._store.children(layout.DELETED_TOPICS)
            why = why_topics_are_missing(delta, frozenset(deleted))
        return why

    async def _read(self, parts: Iterable[str]) -> list[tuple[str, Tree]]:
        if self._is_to_sync:
            self._is_to_sync = False
            try:
                await self._store.sync()
            except BaseException:
                self._is_to_sync = True
                raise
        fewer = _fewer(parts, self._image)
        while True:
            trees: list[Tree] = await self._gather(self._store.tree, fewer)
            read = list(zip(fewer, trees, strict=True))
            mixed = await self._mixed(read)
            if self._is_to_sync:
                raise SessionLostError("The session with the metadata store changed during a read.")
            if not mixed:
                return read
            fewer = [each for each in fewer if topic_in(each) not in mixed]
            fewer += [layout.topic(name) for name in sorted(mixed)]

    async def _mixed(self, read: Iterable[tuple[str, Tree]]) -> set[str]:
        """Topics of which parts were read that may belong to one made anew under the same name."""
        expected: dict[str, set[int | None]] = {}
        for part, tree in read:
            name = topic_in(part)
            if name is None:
                continue
            if part == layout.topic(name):
                expected.setdefault(name, set()).add(made_at(name, tree))
            elif name in self._image.topics:
                expected.setdefault(name, set()).add(self._image.topics[name].made_at)
        now = await self._gather(self._store.get, map(layout.partitions, expected))
        present = [None if node is None else node.created for node in now]
        return {
            name for (name, known), made in zip(expected.items(), present, strict=True) if known != {made}
        }

    async def _gather(self, read: Callable[[str], Awaitable[T]], paths: Iterable[str]) -> list[T]:
        """Not too many at once."""
        found: list[T] = []
        waiting = list(paths)
        for start in range(0, len(waiting), _READS_AT_ONCE):
            some = map(read, waiting[start : start + _READS_AT_ONCE])
            # All are waited for, so that none is left behind when another fails.
            for each in await asyncio.gather(*some, return_exceptions=True):
                if isinstance(each, BaseException):
                    raise each
                found.append(each)
        return found


def _fewer(parts: Iterable[str], image: ClusterImage) -> list[str]:
    """Read a root as a whole where more of its parts have changed than are known so far."""
    by_root: dict[str, list[str]] = {}
    for part in parts:
        root = next(root for root in ROOTS if is_at_or_below(part, root))
        by_root.setdefault(root, []).append(part)
    fewer: list[str] = []
    for root, entries in by_root.items():
        is_many = len(entries) > _SINGLE_READS_MIN and len(entries) > _known_below(root, image)
        fewer += [root] if root in entries or is_many else entries
    return fewer


def _known_below(root: str, image: ClusterImage) -> int:
    if root == layout.TOPICS:
        return sum(len(topic.partitions) for topic in image.topics.values())
    return len(image.configs)


def _fail(waiting: list[asyncio.Future[None]], error: BaseException) -> None:
    for waiter in waiting:
        if waiter.done():
            continue
        if isinstance(error, Exception):
            waiter.set_exception(error)
        else:
            waiter.cancel()
