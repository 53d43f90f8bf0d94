"""`meta.properties` of a data directory: whose it is, and in which format.

Kafka's version 1 keys plus `riverlog.format.version`, which Kafka ignores. A directory of another node or
cluster, or of a newer format, is refused rather than guessed at. One that Kafka wrote has no format line
and is taken as it is.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.model.disk import Disk
from riverlog.model.errors import FormatError
from riverlog.model.ids import NodeId
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import replace_file
from riverlog.storage.files.partition_metadata import decode_uuid, encode_uuid

FORMAT_VERSION: Final = 1
_META_VERSION: Final = "1"


class MetaProperties(NamedTuple):
    node_id: NodeId
    cluster_id: str
    directory_id: UUID

    def encode(self) -> bytes:
        lines = (
            f"version={_META_VERSION}",
            f"riverlog.format.version={FORMAT_VERSION}",
            f"node.id={self.node_id}",
            f"cluster.id={self.cluster_id}",
            f"directory.id={encode_uuid(self.directory_id)}",
            "",
        )
        return "\n".join(lines).encode()


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """What the directory says about itself; None when it is new. Raises `FormatError`."""
    path = f"{directory}/{names.META_PROPERTIES}"
    if not disk.exists(path):
        return None
    fields = _fields(disk.read(path))
    _check_format(path, fields)
    try:
        return MetaProperties(
            NodeId(int(fields["node.id"])), fields["cluster.id"], decode_uuid(fields["directory.id"])
        )
    except (KeyError, ValueError) as error:
        raise FormatError(
            f"{path} is damaged: {error}. Restore the file from a backup; the logs beside it are untouched."
        ) from error


def write_meta_properties(disk: Disk, directory: str, meta: MetaProperties) -> None:
    replace_file(disk, f"{directory}/{names.META_PROPERTIES}", meta.encode())


def check_owner(found: MetaProperties, directory: str, node_id: NodeId, cluster_id: str | None) -> None:
    """Refuse a directory that another node, or a node of another cluster, has written."""
    if found.node_id != node_id:
        raise FormatError(
            f"{directory} belongs to node {found.node_id}, this is node {node_id}. Set "
            f"node.id={found.node_id} or choose another directory."
        )
    if cluster_id is not None and found.cluster_id != cluster_id:
        raise FormatError(
            f"{directory} belongs to cluster {found.cluster_id}, this node is in {cluster_id}. Choose "
            "another directory, or connect to the cluster that it belongs to."
        )


def _check_format(path: str, fields: Mapping[str, str]) -> None:
    if fields.get("version") != _META_VERSION:
        raise FormatError(
            f"{path} has version {fields.get('version')}; only {_META_VERSION} is known. Use the release "
            "that wrote the directory."
        )
    written = fields.get("riverlog.format.version", str(FORMAT_VERSION))
    if not written.isdigit() or int(written) > FORMAT_VERSION:
        raise FormatError(
            f"{path} says format {written}; this release knows up to {FORMAT_VERSION}. Start the release "
            "that wrote it, or a newer one."
        )


def _fields(content: bytes) -> dict[str, str]:
    lines = (line.strip() for line in content.decode(errors="replace").splitlines())
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}
