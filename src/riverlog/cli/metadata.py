"""`riverlog metadata`: take the metadata of a node that keeps its own to somewhere else."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.output import remark

app = typer.Typer(
    help="Export the metadata of a node that keeps its own.", no_args_is_help=True, add_completion=False
)


@app.callback()
def metadata() -> None:
    """Export the metadata of a node that keeps its own."""


@app.command("export")
def export(
    data_dir: Annotated[
        Path, typer.Option("-d", "--data-dir", metavar="DIR", help="The data directory of a stopped node.")
    ] = Path("riverlog-data"),
    file: Annotated[
        Path | None, typer.Option("-f", "--file", dir_okay=False, help="Write to this file, not to stdout.")
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


def _read(directory: str) -> dict[str, Any]:
    """The exported document. Holds the directory's lock meanwhile: a running node owns its metadata alone."""
    from riverlog.metadata.embedded_store import FILE_NAME
    from riverlog.storage import names
    from riverlog.storage.local_disk import LocalDisk

    path = os.path.join(directory, FILE_NAME)
    if not os.path.isfile(path):
        raise CommandError(
            f"{directory} holds no metadata ({FILE_NAME})",
            remedy="--data-dir DIR; with several log.dirs, the first of them",
            code=ExitCode.NOT_FOUND,
        )
    try:
        lock = LocalDisk().lock(os.path.join(directory, names.LOCK))
    except BlockingIOError:
        raise CommandError(
            f"{directory} is in use by a running broker", remedy="stop the broker first"
        ) from None
    try:
        return asyncio.run(_export(path))
    finally:
        lock.release()


async def _export(path: str) -> dict[str, Any]:
    from riverlog.metadata.embedded_store import EmbeddedStore
    from riverlog.metadata.export import export as exported

    store = await EmbeddedStore.open(path)
    try:
        return await exported(store)
    finally:
        await store.close()
