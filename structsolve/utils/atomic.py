"""Files replaced in one step: a crash at any moment leaves the old content or the new."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PREFIX, _SUFFIX = ".structsolve-", ".tmp"
# Age in seconds from which an unlocked temporary file is abandoned.
_GRACE = 10


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Give errors of the system that name no file, as those of full disks, the one being written.

    Parameters
    ----------
    path : path-like
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Write a temporary file beside `path`, and rename it on success.

    Its name cannot be guessed and it follows no link.  A killed writer leaves no file (Linux), or
    one that the next writer to the folder removes.

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
    if os.path.isdir(target):  # also that of an empty path
        raise IsADirectoryError(f"cannot write {os.fspath(path)!r}: expected the path of a file")
    _remove_stale(folder)
    temporary = os.path.join(folder, f"{_PREFIX}{os.urandom(16).hex()}{_SUFFIX}")
    handle, named = _open_temporary(folder, temporary)
    try:
        with naming(path), open(handle, mode, **options) as file:
            yield file
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                _set_mode(handle, temporary, os.stat(target).st_mode & 0o777)
            os.fsync(handle)
            if not named:
                # A file without a name can get one, but not an existing one.
                named = True
                _give_name(handle, folder, temporary)
            if os.name != "nt":  # where an open file cannot be moved
                os.replace(temporary, target)
        if os.name == "nt":
            os.replace(temporary, target)
    except BaseException:
        if named:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise
    _sync_folder(folder)


def _open_temporary(folder: str, temporary: str) -> tuple[int, bool]:
    """Open a new file in a folder; return its handle, and whether it has a name.

    If the system supports it, the file has no name, and vanishes with the process that writes it.
    Otherwise a lock shows that its writer is alive.
    """
    handle, named = -1, True
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # not every file system can
            handle, named = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), False
    if handle < 0:
        # os.open and not tempfile, whose files are private whatever the umask says.  O_EXCL
        # follows no link.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(temporary, flags, 0o666)
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle, named


def _give_name(handle: int, folder: str, temporary: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Only with a folder's handle does os.link follow the link that /proc shows.
        os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _set_mode(handle: int, path: str, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    else:
        os.chmod(path, mode)


def _remove_stale(folder: str) -> None:
    """Remove the unlocked temporary files of killed writers."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
                continue
            with contextlib.suppress(OSError):
                handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    status = os.fstat(handle)
                    # A writer takes the lock just after it has made the file.
                    if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _GRACE:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        os.unlink(entry.path)
                finally:
                    os.close(handle)


def _sync_folder(folder: str) -> None:
    """Make the rename survive a power cut, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
