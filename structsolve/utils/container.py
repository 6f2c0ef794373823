"""The file format of models and checkpoints: JSON and plain arrays in a zip, no pickle.

`write` replaces the file in one step, so a crash at any moment leaves the old or the new content.
`read` trusts nothing: any fault of a file raises a ``ValueError`` that describes it.

Layout: a zip whose members are stored uncompressed (a reader can then never be made to allocate
more than the file's own size): ``arrays/<i>.npy`` in the format of numpy, version 1.0, and last
``structsolve.json`` with format and library version, kind, meta, and for each array its name,
shape, dtype and CRC-32.  The bytes depend on the content only.  The data of large arrays begin at
multiples of 64 bytes, so that `read` can map them into memory.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import struct
import zipfile
from collections.abc import Callable, Container, Mapping
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsolve.utils.suggest import a_type

from .atomic import replacing
from .version import __version__

__all__ = ["FORMAT_VERSION", "read", "write"]

FORMAT_VERSION = 1
_MANIFEST = "structsolve.json"
_KINDS = ("model", "checkpoint")
# Without 'O' (needs pickle) and 'V' (structured: no use here, and many ways to be malformed).
_DTYPE_KINDS = "biufcSUmM"
# Arrays from this size on begin at multiples of _ALIGNED bytes in the file; they can be mapped.
_LARGE = 4096
_ALIGNED = 64
# From this size on members get the fields for files beyond 4 GB.
_HUGE = 2**30
# What the zip format puts before a member: a head with the lengths of name and extra field at its
# end, then these; of files beyond 4 GB, 20 bytes of the extra field.  Ours is of zipalign's kind.
_LOCAL_HEAD, _LENGTHS, _ZIP64 = 30, "<26x2H", 20
_PADDING = 0xD935
Kind = Literal["model", "checkpoint"]


def write(
    path: str | os.PathLike[str], kind: Kind, meta: Any, arrays: Mapping[str, ArrayLike]
) -> None:
    """
    Write a file atomically, replacing an existing one.

    Parameters
    ----------
    path : path-like
        Where to write.  A symbolic link is followed; an existing file's permissions are kept.
    kind : {"model", "checkpoint"}
        Kind of the file; `read` must get the same.
    meta : JSON-like
        None, bool, int of any size, float (nan and inf too), str, and lists, tuples (read back as
        lists) and dicts with string keys of these.  NumPy scalars become Python ones.
    arrays : mapping of str to array-like
        Numbers, booleans, bytes, unicode or dates; no objects and no structured types.

    Raises
    ------
    TypeError, ValueError
        If something cannot be stored; it names the entry.  The file is then untouched.
    OSError
        If the disk refuses; the file is then untouched.

    Examples
    --------
    >>> import os, tempfile
    >>> from structsolve.utils import container
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "m.structsolve")
    ...     container.write(path, "model", {"alpha": 0.1}, {"w": [1.0, 2.0]})
    ...     container.read(path, "model")
    ({'alpha': 0.1}, {'w': array([1., 2.])})
    """
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(_KINDS)}")
    try:
        meta = _plain(meta, "meta")
    except RecursionError:
        raise ValueError("meta is nested too deeply; expected lists and dicts in a few") from None
    checked = {name: _storable(name, array) for name, array in arrays.items()}
    with contextlib.suppress(FileNotFoundError):
        _check_regular(path, os.stat(path))
    with replacing(path) as file:
        _write_zip(file, kind, meta, checked)


def read(
    path: str | os.PathLike[str],
    kind: Kind,
    mapped: Container[str] | Callable[[Any], Container[str]] = (),
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """
    Read a file that `write` wrote.

    Parameters
    ----------
    path : path-like
        The file.
    kind : {"model", "checkpoint"}
        Required kind of the file.
    mapped : container of str, or callable, optional
        Names of arrays that are mapped into memory, read-only, instead of copied, where they have
        4096 bytes or more; or a function that returns them from ``meta``.  Their checksums are
        compared, too.

    Returns
    -------
    meta : JSON-like
        As written; tuples come back as lists.
    arrays : dict of str to ndarray
        As written, writable unless mapped, in the same memory order.

    Raises
    ------
    ValueError
        If it is a folder, empty, cut short, damaged, of another program, of another kind, or
        written by a newer structsolve; it names the file and says what to do.
    OSError
        If it cannot be opened, ``FileNotFoundError`` among others.
    """
    shown = repr(os.fspath(path))
    # Before the open, which would wait for ever for the other end of a pipe.
    _check_regular(path, os.stat(path))
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(4)
        if not head:
            raise ValueError(f"{shown} is empty; it was never written, or cut short")
        if head[:2] != b"PK"[: len(head)]:
            guess = " (a Python pickle, it seems, which is not opened)" if head[0] == 0x80 else ""
            raise ValueError(f"{shown} is not a structsolve file{guess}")
        try:
            return _read_zip(file, size, kind, shown, mapped)
        except _Refused as error:
            raise ValueError(str(error)) from None
        except Exception as error:
            raise ValueError(
                f"{shown} is cut short or damaged ({type(error).__name__}: {error}); copy it again "
                "from where it came, or use an older file"
            ) from error


class _Refused(Exception):
    """The file seems complete, but is not the requested one."""


def _write_zip(file: IO[bytes], kind: str, meta: Any, arrays: dict[str, NDArray[Any]]) -> None:
    manifest = {
        "format": "structsolve",
        "format_version": FORMAT_VERSION,
        "structsolve_version": __version__,
        "kind": kind,
        "meta": meta,
        "arrays": [],
    }
    # ZipInfo made by hand has a fixed date: the same content gives the same bytes.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for i, (name, array) in enumerate(arrays.items()):
            member, huge = zipfile.ZipInfo(_member(i)), array.nbytes > _HUGE
            if array.nbytes >= _LARGE:
                # The header of the array's own format fills multiples of 64 bytes.
                head = file.tell() + _LOCAL_HEAD + len(_member(i)) + huge * _ZIP64 + 4
                padding = bytes(-head % _ALIGNED)
                member.extra = struct.pack("<2H", _PADDING, len(padding)) + padding
            with archive.open(member, "w", force_zip64=huge) as out:
                np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)
            manifest["arrays"].append(
                {
                    "name": name,
                    "shape": list(array.shape),
                    "dtype": array.dtype.str,
                    "crc32": member.CRC,
                }
            )
        archive.writestr(zipfile.ZipInfo(_MANIFEST), json.dumps(manifest))


def _read_zip(
    file: IO[bytes],
    size: int,
    kind: str,
    shown: str,
    mapped: Container[str] | Callable[[Any], Container[str]],
) -> tuple[Any, dict[str, NDArray[Any]]]:
    with zipfile.ZipFile(file) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if _MANIFEST not in members:
            raise _Refused(
                f"{shown} is a zip archive (an .npz file, perhaps), but not a structsolve file"
            )
        for member in members.values():
            if member.compress_type != zipfile.ZIP_STORED or not (
                member.file_size == member.compress_size <= size
            ):
                raise ValueError(f"member {member.filename!r} is compressed or too large")
        manifest = json.loads(archive.read(_MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("format") != "structsolve":
            raise _Refused(f"{shown} is a zip archive, but not a structsolve file")
        version = manifest["format_version"]
        if type(version) is not int or version < 1:
            raise ValueError(f"format version is {version!r}")
        if version > FORMAT_VERSION:
            raise _Refused(
                f"{shown} was written by structsolve {manifest.get('structsolve_version')} in file "
                f"format {version}; this is structsolve {__version__}, which reads formats "
                f"up to {FORMAT_VERSION}: upgrade (pip install -U structsolve-learn) to read it"
            )
        if manifest["kind"] != kind:
            raise _Refused(f"{shown} is a {manifest['kind']}, expected a {kind}")
        entries = manifest["arrays"]
        # The offset unmasks a cut file that ends in a whole one, stored in one of its arrays.
        if set(members) != {_MANIFEST, *map(_member, range(len(entries)))} or min(
            member.header_offset for member in members.values()
        ):
            raise ValueError("its parts do not match its contents list")
        names = mapped(manifest["meta"]) if callable(mapped) else mapped
        arrays = {
            entry["name"]: _read_array(
                archive, members[_member(i)], entry, file if entry["name"] in names else None
            )
            for i, entry in enumerate(entries)
        }
        if len(arrays) != len(entries):
            raise ValueError("two arrays have the same name")
        return manifest["meta"], arrays


def _read_array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, entry: dict[str, Any], file: IO[bytes] | None
) -> NDArray[Any]:
    """Return an array of the file; a map of it where the file is given."""
    with archive.open(member) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{member.filename} is not in the npy format 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        head, size = stream.tell(), math.prod(shape) * dtype.itemsize
        # Sizes first: a header may declare any shape, the member's size cannot lie.
        if dtype.kind not in _DTYPE_KINDS or head + size != member.file_size:
            raise ValueError(f"{member.filename} does not hold the {dtype} {shape} it declares")
        if [list(shape), dtype.str, member.CRC] != [entry["shape"], entry["dtype"], entry["crc32"]]:
            raise ValueError(f"{member.filename} is not the array of the contents list")
        whole = file is None or size < _LARGE
        data = np.empty(size if whole else 0, dtype=np.uint8)
        done = 0
        while done < size:
            piece = stream.read(min(2**20, size - done))
            if not piece:
                raise ValueError(f"{member.filename} ends early")
            if whole:
                data[done : done + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            done += len(piece)
        # The end must be seen: that is where zipfile compares the checksum.
        if stream.read(1):
            raise ValueError(f"{member.filename} is too long")
    order: Literal["F", "C"] = "F" if fortran else "C"
    if file is not None and not whole:
        start = _data_start(file, member) + head
        map_ = np.memmap(file, dtype, "r", start, shape, order)
        # A plain array that keeps the map alive: copies and pickles of it are plain as well.
        view = map_.view(np.ndarray)
        # Files of before the alignment.
        return view if view.flags.aligned else view.copy(order)
    return np.ndarray(shape, dtype, buffer=data, order=order)


def _data_start(file: IO[bytes], member: zipfile.ZipInfo) -> int:
    """Return the position of a member's bytes, whose head zipfile has checked."""
    file.seek(member.header_offset)
    name, extra = struct.unpack(_LENGTHS, file.read(_LOCAL_HEAD))
    return int(member.header_offset + _LOCAL_HEAD + name + extra)


def _storable(name: str, array: ArrayLike) -> NDArray[Any]:
    if not isinstance(name, str):
        raise TypeError(f"array name {name!r} is {a_type(name)}; expected a str")
    if np.ma.isMaskedArray(array):
        raise ValueError(f"arrays[{name!r}] is a masked array; store its data and mask apart")
    try:
        plain = np.asarray(array)
    except ValueError as error:
        raise ValueError(f"arrays[{name!r}] is not an array: {error}") from None
    if plain.dtype.kind not in _DTYPE_KINDS:
        raise ValueError(
            f"arrays[{name!r}] is {a_type(array)} of dtype {plain.dtype}; expected "
            "numbers, booleans, bytes, unicode or dates (convert objects with .astype(str), and "
            "store the parts of a sparse matrix one by one)"
        )
    return plain


def _plain(value: Any, where: str) -> Any:
    """Return a copy that survives JSON unchanged, or raise an error that names the place."""
    if isinstance(value, np.generic) and not isinstance(value, (np.longdouble, np.complexfloating)):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(
                    f"{where} has the key {key!r}, {a_type(key)}; expected "
                    "str keys only, since JSON has no others"
                )
        return {str(key): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    hint = "; put it in arrays" if isinstance(value, np.ndarray) else ""
    raise TypeError(
        f"{where} is {a_type(value)}; expected None, bool, int, float, str, "
        f"or lists and dicts of them{hint}"
    )


def _check_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ValueError(f"{os.fspath(path)!r} is {what}; expected the path of a file")


def _member(index: int) -> str:
    return f"arrays/{index}.npy"
