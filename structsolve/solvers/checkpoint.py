"""Checkpoint files: written during training, checked when training resumes from them."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from structsolve.utils.suggest import a_type

from ..utils import container
from ..utils.arrays import part_of

# A checkpoint is written when this many times the duration of the last write have passed.
PAUSE = 20
_OUTER = "outer_"
Content = tuple[dict[str, Any], dict[str, np.ndarray]]


class Checkpoint:
    """The file of one training run.

    A failed write does not end training: a warning is issued at once, and again at the end if the
    last write failed.

    Parameters
    ----------
    path : path
        A file; its folder must exist.
    fingerprint : str
        Identifies problem and settings; a file with a different fingerprint is refused.

    Attributes
    ----------
    error : str or None
        Why the last write failed, if it did.
    outer : callable or None
        Returns the meta and the arrays of a loop around the runs, which are stored with each run's.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from structsolve.solvers.checkpoint import Checkpoint
    >>> path = os.path.join(tempfile.mkdtemp(), "run.checkpoint")
    >>> Checkpoint(path, "a").write(lambda: ({"passes": 1}, {"w": np.zeros(2)}))
    >>> Checkpoint(path, "a").read()[0]
    {'passes': 1}
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str):
        self.path, self.fingerprint = os.fspath(path), fingerprint
        self.error: str | None = None
        self.outer: Callable[[], Content] | None = None
        self._is_read = False
        self._held: Content | None = None
        self._written_at, self._seconds = -np.inf, 0.0
        # Report a wrong path before training.
        folder = os.path.dirname(os.path.realpath(self.path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(
                f"cannot write checkpoint {self.path!r}: there is no folder {folder!r}"
            )

    def read(self) -> Content | None:
        """Return the file's content; a second call returns None.

        Returns
        -------
        meta, arrays : dict, or None
            None if there is no file.

        Raises
        ------
        ValueError
            If the file is damaged, or belongs to other data or settings.
        """
        held, self._held = self._look(), None
        return None if held is None else (held[0]["content"], held[1])

    def read_outer(self) -> Content | None:
        """Return the result of `outer` when the file was written.

        Returns
        -------
        meta, arrays : dict, or None
            None if there is no file.
        """
        held = self._look()
        if held is None:
            return None
        with self.blame():
            meta, arrays = held
            own = {name: arrays.pop(name) for name in list(arrays) if name.startswith(_OUTER)}
            return meta["outer"], part_of(own, _OUTER)

    def _look(self) -> Content | None:
        if not self._is_read:
            self._is_read = True
            if os.path.exists(self.path):
                meta, arrays = container.read(self.path, "checkpoint")
                with self.blame():
                    if meta["fingerprint"] != self.fingerprint:
                        raise ValueError(
                            "it belongs to other data or settings; delete it or name another file "
                            "to start afresh (one of an earlier release whose solver had other "
                            "parameters is finished by that release)"
                        )
                    if not isinstance(meta["content"], dict):
                        raise ValueError("it holds no state")
                self._held = meta, arrays
        return self._held

    @contextmanager
    def blame(self) -> Iterator[None]:
        """Name the file in any error raised inside: its content is the cause."""
        try:
            yield
        except Exception as error:
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise ValueError(f"checkpoint {self.path!r}: {kind}{error}") from error

    def due(self) -> bool:
        """Return whether the last write is long enough ago.

        Returns
        -------
        bool
        """
        return time.perf_counter() - self._written_at >= PAUSE * self._seconds

    def write(self, state: Callable[[], Content]) -> None:
        """Replace the file; a failed write is a warning.

        Parameters
        ----------
        state : callable
            Returns the meta and the arrays to write.
        """
        begun = time.perf_counter()
        meta, arrays = state()
        content: dict[str, Any] = {"fingerprint": self.fingerprint, "content": meta}
        if self.outer is not None:
            content["outer"], around = self.outer()
            arrays = arrays | {f"{_OUTER}{name}": array for name, array in around.items()}
        before, self.error = self.error, None
        try:
            container.write(self.path, "checkpoint", content, arrays)
        except OSError as error:
            self.error = str(error)
            if before is None:
                warnings.warn(
                    f"checkpoint {self.path!r} cannot be written ({error}): training goes on "
                    "without it",
                    RuntimeWarning,
                    stacklevel=3,
                )
        self._written_at = time.perf_counter()
        self._seconds = self._written_at - begun

    def close(self) -> None:
        """Warn if the file does not contain the end of the run."""
        if self.error is not None:
            warnings.warn(
                f"checkpoint {self.path!r} does not hold the end of this run: its last write "
                f"failed ({self.error}); save the model elsewhere",
                RuntimeWarning,
                stacklevel=3,
            )


def check_state(given: Content, fresh: Content) -> None:
    """Raise ValueError if entries of a checkpoint differ in type from those of a new run.

    Parameters
    ----------
    given, fresh : tuple of dict
        Values that JSON can hold, and arrays, by name.
    """
    for name, own in fresh[0].items():
        if name not in given[0]:
            raise ValueError(f"it lacks {name!r}")
        value = given[0][name]
        if own is not None and not _alike(value, own):
            raise ValueError(f"{name} is {_short(value)}, expected {a_type(own)}")
    for name, own in fresh[1].items():
        if name not in given[1]:
            raise ValueError(f"it lacks the array {name!r}")
        array = given[1][name]
        if array.ndim != np.ndim(own) or array.dtype.kind != np.asarray(own).dtype.kind:
            raise ValueError(
                f"{name} is an array of {array.dtype} with {array.ndim} dimensions, expected "
                f"{np.asarray(own).dtype} with {np.ndim(own)}"
            )


def check_records(history: Any) -> list[dict[str, Any]]:
    """Return the records of passes in a file; refuse anything else.

    Parameters
    ----------
    history : list of dict

    Returns
    -------
    list of dict
    """
    if not isinstance(history, list):
        raise ValueError(f"its history is {_short(history)}, expected a list of records")
    for number, record in enumerate(history):
        if not isinstance(record, dict) or record.get("pass") != number + 1:
            raise ValueError(f"record {number} of its history is {_short(record)}")
        for name in ("primal", "dual", "gap", "seconds", "oracle_calls"):
            value = record.get(name)
            if value is not None and not _alike(value, 0.0):
                raise ValueError(f"{name} of pass {number + 1} is {_short(value)}")
    return history


def _alike(value: Any, own: Any) -> bool:
    own = own.item() if isinstance(own, np.generic) else own
    if isinstance(own, int) and not isinstance(own, bool):
        return type(value) is int and abs(value) < 2**62
    if isinstance(own, float):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (isinstance(value, float) or abs(value) < 2**62)
    kinds = (bool, list, dict, str)
    return any(isinstance(own, kind) and isinstance(value, kind) for kind in kinds) or (
        isinstance(own, tuple) and isinstance(value, list)
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
