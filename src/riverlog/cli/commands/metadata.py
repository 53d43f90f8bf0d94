"""`riverlog metadata`: take the metadata of a node that keeps its own to somewhere else, and back."""

import asyncio
import errno
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.old_letters import still_taking
from riverlog.cli.printing.output import remark
from riverlog.metadata.embedded_store import FILE_NAME
from riverlog.model.errors import RiverlogError
from riverlog.model.metadata_store import MetadataStore

app = typer.Typer(
    help="Save and restore the metadata of a node that keeps its own.",
    no_args_is_help=True,
    add_completion=False,
)

_DataDirOption = Annotated[
    Path, typer.Option("-d", "--data-dir", metavar="DIR", help="The data directory of a stopped node.")
]


@app.command("export", cls=still_taking(file="-f"))
def export(
    data_dir: _DataDirOption = Path("riverlog-data"),
    file: Annotated[
        Path | None, typer.Option("--file", dir_okay=False, help="Write to this file, not to stdout.")
    ] = None,
) -> None:
    """Write topics, ids and settings of a stopped node as one JSON document.

    Paths and data are those of Kafka's ZooKeeper layout.

    Example: riverlog metadata export --data-dir riverlog-data > metadata.json
    """
    document = _read(str(data_dir))
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if file is None:
        sys.stdout.write(text)
        return
    file.write_text(text, encoding="utf-8")
    remark(f"{len(document['nodes'])} nodes written to {file}")


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `export` printed; - is standard input.")
    ] = Path("-"),
    data_dir: _DataDirOption = Path("riverlog-data"),
) -> None:
    """Give a stopped node that has no metadata, or has lost it, what was exported.

    The directory is made if it is not there. Logs in it must be of the cluster that was exported.

    Example: riverlog metadata import metadata.json --data-dir riverlog-data
    """
    text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    document = _parsed(text, str(file))
    data_dir.mkdir(parents=True, exist_ok=True)
    _check_cluster(document, str(data_dir))
    with _locked(str(data_dir)):
        asyncio.run(_restore(str(data_dir / FILE_NAME), document))
    remark(f"{len(document['nodes'])} nodes written to {data_dir}")


def _read(directory: str) -> dict[str, Any]:
    """The exported document."""
    path = os.path.join(directory, FILE_NAME)
    if not os.path.isfile(path):
        raise CommandError(
            f"{directory} holds no metadata ({FILE_NAME})",
            remedy="--data-dir DIR; with several log.dirs, the first of them",
            code=ExitCode.NOT_FOUND,
        )
    with _locked(directory), tempfile.TemporaryDirectory(prefix="riverlog-") as copy:
        # From a copy: to look into a database writes beside it, which a read-only mount does not allow.
        for suffix in ("", "-wal"):
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, os.path.join(copy, FILE_NAME + suffix))
        return asyncio.run(_export(os.path.join(copy, FILE_NAME)))


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Holds the directory's lock meanwhile: a running node owns its metadata alone. Where nothing can be
    written, nobody runs."""
    from riverlog.storage.disk.local import LocalDisk
    from riverlog.storage.files import names

    try:
        lock = LocalDisk().lock(os.path.join(directory, names.LOCK))
    except BlockingIOError:
        raise CommandError(
            f"{directory} is in use by a running broker", remedy="stop the broker first"
        ) from None
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES):
            raise
        yield
        return
    try:
        yield
    finally:
        lock.release()


async def _export(path: str) -> dict[str, Any]:
    from riverlog.metadata.export import export as exported

    async with _opened(path) as store:
        return await exported(store)


async def _restore(path: str, document: dict[str, Any]) -> None:
    from riverlog.metadata.export import restore

    async with _opened(path) as store:
        await restore(store, document)


@asynccontextmanager
async def _opened(path: str) -> AsyncIterator[MetadataStore]:
    from riverlog.metadata.embedded_store import EmbeddedStore

    with ThreadPoolExecutor(1) as thread:
        store = await EmbeddedStore.open(path, thread)
        try:
            yield store
        finally:
            await store.close()


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
        nodes = document["nodes"]
        assert isinstance(nodes, dict)
        assert all(isinstance(data, str) for data in nodes.values())
        _cluster_id(document)
    except (ValueError, KeyError, TypeError, AssertionError, RiverlogError) as error:
        raise usage(f"{name} is not what `riverlog metadata export` prints: {error!r}") from None
    else:
        return dict(document)


def _cluster_id(document: dict[str, Any]) -> str:
    from riverlog.metadata import layout, payloads

    return payloads.decode_cluster_id(layout.CLUSTER_ID, document["nodes"][layout.CLUSTER_ID].encode())


def _check_cluster(document: dict[str, Any], directory: str) -> None:
    """Logs of another cluster would all look like those of deleted topics."""
    from riverlog.storage.disk.local import LocalDisk
    from riverlog.storage.files.meta_properties import read_meta_properties

    found, wanted = read_meta_properties(LocalDisk(), directory), _cluster_id(document)
    if found is not None and found.cluster_id != wanted:
        raise CommandError(
            f"{directory} belongs to cluster {found.cluster_id}, the export to cluster {wanted}",
            remedy="import into the directory that was exported, or into a new one",
        )
