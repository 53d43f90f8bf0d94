"""`partition.metadata`: the topic id of a partition's directory, so that a topic of the same name that was
deleted and created again is told apart (KIP-516)."""

import base64
import binascii
import contextlib
from uuid import UUID

from riverlog.model.disk import Disk
from riverlog.model.errors import CorruptLogError, DiskFullError, StorageError
from riverlog.model.ids import TopicId
from riverlog.storage.files import names


def encode_uuid(value: UUID) -> str:
    """Kafka's spelling: URL-safe base 64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def read_topic_id(disk: Disk, directory: str, *, clean: bool = True) -> TopicId | None:
    """The id, or None when there is none; after a crash (not `clean`) a torn file counts as none."""
    path = f"{directory}/{names.PARTITION_METADATA}"
    if not disk.exists(path):
        return None
    fields = dict(
        line.split(": ", 1) for line in disk.read(path).decode(errors="replace").splitlines() if ": " in line
    )
    try:
        version, written = int(fields["version"]), fields["topic_id"]
        if version != 0:
            raise CorruptLogError(f"{path} has the unknown version {version}.")
        return TopicId(decode_uuid(written))
    except (KeyError, ValueError, binascii.Error) as error:
        if not clean:
            return None
        raise CorruptLogError(
            f"{path} is unreadable. Remove it; the topic id is then taken from the cluster metadata."
        ) from error


def agree_on_topic_id(disk: Disk, directory: str, topic_id: TopicId | None, *, clean: bool) -> TopicId | None:
    """The id on disk, which is written where there is none; an error where the cluster knows another.

    A file that a crash has torn is removed when there is no id to write, since after a clean shutdown it
    would be taken for damage.
    """
    stored = read_topic_id(disk, directory, clean=clean)
    if stored is None and topic_id is not None:
        write_topic_id(disk, directory, topic_id)
    elif stored is None and disk.exists(path := f"{directory}/{names.PARTITION_METADATA}"):
        disk.unlink(path)
    elif stored is not None and topic_id is not None and stored != topic_id:
        raise StorageError(
            f"{directory} belongs to topic id {stored}, not {topic_id}: a topic of the same name was "
            "deleted. Move the directory away."
        )
    return stored or topic_id


def write_topic_id(disk: Disk, directory: str, topic_id: TopicId) -> None:
    """Not synced: the first sync of the log does that, and the cluster metadata has the id as well.

    Where there is no room no part of it is left, which a later start would take for damage.
    """
    path = f"{directory}/{names.PARTITION_METADATA}"
    content = f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.pwrite(content, 0)
    except DiskFullError:
        with contextlib.suppress(DiskFullError):
            disk.unlink(path)
        raise
    finally:
        file.close()
