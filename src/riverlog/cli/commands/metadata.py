"""`riverlog metadata`: take the metadata of a node that keeps its own to somewhere else, and back."""

import asyncio
import errno
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.old_letters import still_taking
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.output import counted, remark, show_rows, warn
from riverlog.metadata import payloads
from riverlog.metadata.stores.embedded_store import FILE_NAME
from riverlog.model.errors import RiverlogError
from riverlog.model.metadata_store import MetadataStore

if TYPE_CHECKING:
    from riverlog.metadata.adoption import Adoption

app = typer.Typer(
    help="Save, restore and move the metadata of a node that keeps its own, or make it from logs.",
    no_args_is_help=True,
    add_completion=False,
)

_ZOOKEEPER_WAIT_MS = 10_000

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
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT/PATH",
            help="Write into this ZooKeeper ensemble instead, which then holds the cluster.",
        ),
    ] = None,
) -> None:
    """Give a stopped node that has no metadata, or has lost it, what was exported.

    The directory is made if it is not there. Logs in it must be of the cluster that was exported. With
    --zookeeper, a single node becomes the first broker of a cluster: start it with zookeeper.connect.

    Example: riverlog metadata import metadata.json --data-dir riverlog-data
    """
    text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    document = _parsed(text, str(file))
    if zookeeper is not None:
        asyncio.run(_restore_into_zookeeper(zookeeper, document))
        remark(f"{len(document['nodes'])} nodes written to {zookeeper}")
        remark("Topics keep one replica each, on the broker that has them.")
        remark(f"Start that broker with its data directory and --set zookeeper.connect={zookeeper}")
        return
    data_dir.mkdir(parents=True, exist_ok=True)
    _check_cluster(document, str(data_dir))
    with _locked(str(data_dir)):
        asyncio.run(_restore(str(data_dir / FILE_NAME), document))
    remark(f"{len(document['nodes'])} nodes written to {data_dir}")


@app.command("adopt")
def adopt(
    data_dirs: Annotated[
        list[Path],
        typer.Option(
            "-d",
            "--data-dir",
            metavar="DIR",
            help="A data directory of a stopped broker; once for each of log.dirs, in their order.",
        ),
    ] = [Path("riverlog-data")],  # noqa: B006 - read only
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be made; nothing is written.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Make metadata from the logs: of a directory of Apache Kafka, or of one that has lost its metadata.

    Topics, ids and partitions are found in the files; the last partitions of a topic are not if they were
    never written to (`topic add-partitions` makes them). Settings are not found: adopted topics keep their
    records without limit until retention.ms is set. Partitions that other brokers had begin empty.

    Example: riverlog metadata adopt --data-dir /var/lib/kafka --dry-run
    """
    first = str(data_dirs[0])
    adoption = _adoption([str(each) for each in data_dirs])
    rows = [
        {
            "topic": each.name,
            "topic_id": payloads.uuid_text(each.topic_id),
            "id": "new" if each.is_id_new else "found",
            "partitions": each.partitions,
            "begin_empty": ",".join(map(str, each.missing)),
        }
        for each in adoption.topics
    ]
    show_rows(rows, output, empty="there are no logs")
    for name, reason in adoption.refused.items():
        warn(f"{name} is left out: {reason}")
    if dry_run:
        remark("nothing was written")
        return
    with _locked(first):
        asyncio.run(_restore(os.path.join(first, FILE_NAME), adoption.document))
    remark(f"{counted(len(rows), 'topic')} adopted in {first}; they keep records until retention.ms is set")


def _adoption(directories: list[str]) -> "Adoption":
    from riverlog.cli.found_logs import found_logs
    from riverlog.metadata.adoption import decide_adoption
    from riverlog.storage.disk.local import LocalDisk
    from riverlog.storage.files.meta_properties import read_meta_properties

    if os.path.exists(os.path.join(directories[0], FILE_NAME)):
        raise CommandError(
            f"{directories[0]} has metadata ({FILE_NAME})",
            remedy="start the broker, or move the file away first",
        )
    meta = read_meta_properties(LocalDisk(), directories[0]) if os.path.isdir(directories[0]) else None
    if meta is None:
        raise CommandError(
            f"{directories[0]} is not a data directory: it has no meta.properties",
            remedy="--data-dir DIR, where meta.properties is",
            code=ExitCode.NOT_FOUND,
        )
    return decide_adoption(
        found_logs(directories),
        meta.node_id,
        meta.cluster_id,
        new_id=uuid4,
        now_ms=time.time_ns() // 1_000_000,
    )


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


async def _restore_into_zookeeper(connect: str, document: dict[str, Any]) -> None:
    from riverlog.metadata.cluster import check_is_ours
    from riverlog.metadata.export import restore
    from riverlog.model.config.slices import ServerConfig
    from riverlog.node.stores import open_configured_store

    config = ServerConfig(zookeeper_connect=connect, zookeeper_connection_timeout_ms=_ZOOKEEPER_WAIT_MS)
    with ThreadPoolExecutor(1) as thread:
        store = await open_configured_store(config, "", thread)
        try:
            await store.sync()
            await check_is_ours(store)
            await restore(store, document)
        finally:
            await store.close()


@asynccontextmanager
async def _opened(path: str) -> AsyncIterator[MetadataStore]:
    from riverlog.metadata.stores.embedded_store import EmbeddedStore

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
