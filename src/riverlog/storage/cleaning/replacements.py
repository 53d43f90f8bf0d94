"""Finishing, or forgetting, the replacement of segments by a cleaned one that a crash cut short.

The renames are made in the order that `LogReplacement.replace_segments` keeps, and a file system keeps that
order too, so what is found says how far it came: a log file that is still `.cleaned` never stood for
anything, nor do the indexes beside it; a log file that is `.swap` stands for the segments whose offsets it
covers, of which some may be gone; after that only the names of indexes are left to do. Kafka leaves and
reads the same traces.
"""

from riverlog.model.disk import Disk
from riverlog.storage.files import names
from riverlog.storage.log.batch_scan import Bounds, walk_headers


def finish_replacements(directory: str, disk: Disk) -> None:
    """Leave no `.cleaned` and no `.swap` file in a partition's directory."""
    cleaned, swaps = _with_suffix(directory, disk, names.CLEANED), _with_suffix(directory, disk, names.SWAP)
    begun = {base for base, _ in cleaned}
    for base, suffix in swaps:
        if begun and base >= min(begun):
            disk.unlink(names.segment_path(directory, base, suffix + names.SWAP))
    # Only now the files that tell that the others do not count.
    for base, suffix in cleaned:
        disk.unlink(names.segment_path(directory, base, suffix + names.CLEANED))
    left = [(base, suffix) for base, suffix in swaps if not begun or base < min(begun)]
    for base, suffix in left:
        if suffix == names.LOG:
            _make_way(directory, disk, base)
    # The log file first: without it, an index that was renamed before would be taken for a replaced one.
    for base, suffix in sorted(left, key=lambda found: found[1] != names.LOG):
        path = names.segment_path(directory, base, suffix)
        disk.rename(path + names.SWAP, path)
    disk.sync_directory(directory)


def _make_way(directory: str, disk: Disk, base: int) -> None:
    """Remove what a cleaned segment replaces: everything from its first to its last offset."""
    path = names.segment_path(directory, base, names.LOG + names.SWAP)
    file = disk.open(path)
    end = base + 1
    for _, header in walk_headers(file, 0, Bounds(file.size(), base)):
        end = max(end, header.next_offset)
    for name in disk.list(directory):
        found = names.parse_segment_file(name)
        if found is not None and base <= found[0] < end and found[1] in names.SEGMENT_FILES:
            disk.unlink(f"{directory}/{name}")


def _with_suffix(directory: str, disk: Disk, ending: str) -> list[tuple[int, str]]:
    """Base offset and suffix of the segment files that carry this ending."""
    parsed = (
        names.parse_segment_file(name.removesuffix(ending))
        for name in disk.list(directory)
        if name.endswith(ending)
    )
    return [found for found in parsed if found is not None]
