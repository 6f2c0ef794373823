"""Files replaced in one step: a crash at any moment leaves the old content or the new."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Write a temporary file beside `path`, and rename it when all went well.

    Parameters
    ----------
    path : path-like
        A symbolic link is followed; an existing file's permissions are kept.
    mode : {"wb", "w"}, default="wb"
    **options
        Passed on to `open`.

    Yields
    ------
    file

    Raises
    ------
    OSError
        If the disk refuses; the file is then untouched.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.txt")
    >>> with replacing(path, "w") as file:
    ...     _ = file.write("new")
    >>> open(path).read()
    'new'
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"cannot write {os.fspath(path)!r}: there is no folder {folder!r}")
    # In the same folder, since a rename across file systems is not atomic.  os.open and not
    # tempfile, whose files are private whatever the umask says.
    temporary = os.path.join(folder, f".structsolve-{os.urandom(8).hex()}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o666), mode, **options) as file:
            yield file
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, os.stat(target).st_mode & 0o777)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Make the rename itself last through a power cut, where the system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
