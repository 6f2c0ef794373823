# Text files line by line: plain or gzip, UTF-8, with errors that name the file and the line.
from __future__ import annotations

import codecs
import errno
import functools
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, TypeVar

from structsolve.utils.atomic import naming, replacing

PathLike = str | os.PathLike[str]


#: Maximum bytes of a line: small compressed files may hold one endless line.
LINE_LIMIT = 2**27

#: Attribute of errors whose text names the file.
NAMES_FILE = "_names_file"

Reader = TypeVar("Reader", bound=Callable[..., Any])


def reads_file(reader: Reader) -> Reader:
    """Decorate a reader: any fault of a file becomes a ValueError that names the file."""

    @functools.wraps(reader)
    def read(path: PathLike, *given: Any, **named: Any) -> Any:
        try:
            return reader(path, *given, **named)
        except OSError as error:
            if error.filename is not None or error.errno in (None, errno.EPIPE):
                raise
            if error.errno != errno.EINVAL:
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error
            # A negative position, which only damaged files cause.
            raise _naming(ValueError(f"{path}: cannot be read ({error}); it is damaged")) from error
        except TypeError as error:
            # A wrong argument is not the file's fault.
            if error.__traceback__ is None or error.__traceback__.tb_next is None:
                raise
            raise _naming(ValueError(f"{path}: cannot be read (TypeError: {error})")) from error
        except Exception as error:
            if hasattr(error, NAMES_FILE):
                raise  # of another file, which this one's reader has read
            if isinstance(error, ValueError) and str(path) in str(error):
                _naming(error)
                raise
            raise _naming(
                ValueError(
                    f"{path}: cannot be read ({type(error).__name__}: {error}); it is damaged or "
                    "has another format"
                )
            ) from error

    return read  # type: ignore[return-value]


def _naming(error: ValueError) -> ValueError:
    setattr(error, NAMES_FILE, True)
    return error


def bad_line(path: PathLike, number: int, text: str, expected: str) -> ValueError:
    """The error of all readers: file and line, what was found, what was expected."""
    shown = text if len(text) <= 300 else f"{text[:300]}..."
    return ValueError(f"{path}, line {number}: found {shown}; expected {expected}")


def number_of(word: str, kind: type = float) -> Any:
    """Python's number of a word; ValueError for names such as 1_2, which Python takes for 12."""
    if "_" in word:
        raise ValueError(word)
    return kind(word)


def no_examples(path: PathLike, what: str) -> ValueError:
    """The error for a file without examples."""
    return ValueError(f"{path}: found no examples; expected {what}")


@contextmanager
def open_binary(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a file for reading, with gzip if its first bytes are gzip's; ``-`` is standard input."""
    standard = os.fspath(path) == "-"
    if standard and sys.stdin is None:
        raise ValueError("-: standard input is closed, expected data")
    with nullcontext(sys.stdin.buffer) if standard else open(path, "rb") as file:
        raw: Any = file
        magic = raw.peek(2)[:2]
        if magic == b"\x1f\x8b":
            with gzip.open(raw) as unpacked:
                yield unpacked  # type: ignore[misc]
            return
        if os.fspath(path).lower().endswith(".gz"):
            raise ValueError(
                f"{path}: found {magic!r} as its first bytes; expected gzip data, because the "
                "name ends in .gz"
            )
        yield raw


def limited_lines(handle: IO[bytes], path: PathLike) -> Iterator[bytes]:
    """Yield the lines of a file, without byte-order mark; refuse lines longer than LINE_LIMIT."""
    number = 0
    while line := handle.readline(LINE_LIMIT + 1):
        number += 1
        if len(line) > LINE_LIMIT:
            raise bad_line(path, number, f"more than {LINE_LIMIT} bytes", "the end of the line")
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
            if b"\r" in line.rstrip() and not line.endswith(b"\n"):
                raise bad_line(path, 1, "line ends of CR alone, as of old Macs", "LF or CR LF")
        yield line


def text_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield ``(number, line)`` from 1, without line ends and byte-order mark."""
    number = 0
    with open_binary(path) as handle:
        try:
            for number, raw in enumerate(limited_lines(handle, path), 1):
                line = raw.decode("utf-8").rstrip("\r\n")
                if "\0" in line:
                    raise bad_line(path, number, "a NUL character", "text (UTF-8)")
                yield number, line
        except UnicodeDecodeError as error:
            byte = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1}"
            raise bad_line(path, number, byte, f"UTF-8 text ({error.reason})") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise bad_line(
                path, number + 1, f"broken gzip data ({error})", "a whole file; it was cut short?"
            ) from error


@contextmanager
def atomic_write(path: PathLike, mode: str = "w") -> Iterator[IO[Any]]:
    """Write text in UTF-8, or bytes, atomically: readers see the old or the new file.

    Text is compressed if the name ends in ``.gz``.
    """
    packs = "b" not in mode and os.fspath(path).lower().endswith(".gz")
    mode = "wb" if packs else mode
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    special = os.path.exists(path) and not os.path.isfile(path)  # devices and pipes stay
    opening: Any = open if special else replacing
    with naming(path), opening(path, mode, **text) as handle:
        if not packs:
            yield handle
            return
        # Without the time, equal texts are equal files.
        packed = gzip.GzipFile("", "wb", fileobj=handle, mtime=0)
        with packed, io.TextIOWrapper(packed, "utf-8", newline="\n") as lines:
            yield lines
