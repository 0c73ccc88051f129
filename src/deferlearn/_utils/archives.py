"""Zip archives from strangers: how much they may become when they are read."""

import io
import zipfile

# What an archive may hold without questions, in bytes; and beyond that, how many times its own size.
# Deflate makes up to 1,032 bytes of one, but arrays of a real model rarely more than ten.
FREE_SIZE, MOST_RATIO = 256 * 2**20, 100


class ArchiveTooLarge(ValueError):
    """An archive that would become far larger than it is."""


def most_bytes(archive_size: int) -> int:
    """How many bytes an archive of a size may hold, and how many may be read of it."""
    return max(FREE_SIZE, MOST_RATIO * archive_size)


def check_sizes(content: bytes) -> None:
    """Refuse an archive that would become far larger than it is, before anything of it is read.

    Parameters
    ----------
    content : bytes
        A zip archive.

    Raises
    ------
    ArchiveTooLarge
        If its parts together are larger than `most_bytes`. zipfile reads no more of a part than the archive
        says that it has.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = sum(part.file_size for part in archive.infolist())
    most = most_bytes(len(content))
    if held > most:
        raise ArchiveTooLarge(
            f"its {len(content):,} bytes would become {held:,}, and at most {most:,} are read"
        )
