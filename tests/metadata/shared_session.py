"""A process with a session of the shared store, which does what its standard input says, a line at a time.

`hold PATH` makes an ephemeral node; `count PATH N` raises the number in a node N times, by compare and set.
Each line is answered by `done`. Run by the tests: `python -m tests.metadata.shared_session DIRECTORY`.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from riverlog.metadata.stores.shared.store import SharedStore
from riverlog.model.metadata_store import BadVersionError, MetadataStore


async def main(directory: str) -> None:
    loop = asyncio.get_running_loop()
    store = await SharedStore.open(directory, ThreadPoolExecutor(1))
    reader = ThreadPoolExecutor(1)
    _say_done()
    while line := await loop.run_in_executor(reader, sys.stdin.readline):
        match line.split():
            case ["hold", path]:
                await store.create(path, b"held", ephemeral=True)
            case ["count", path, times]:
                for _ in range(int(times)):
                    await _count(store, path)
        _say_done()
    await store.close()


def _say_done() -> None:
    sys.stdout.write("done\n")
    sys.stdout.flush()


async def _count(store: MetadataStore, path: str) -> None:
    while True:
        node = await store.get(path)
        assert node is not None
        try:
            await store.set(path, str(int(node.data) + 1).encode(), expected_version=node.version)
        except BadVersionError:
            continue
        return


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
