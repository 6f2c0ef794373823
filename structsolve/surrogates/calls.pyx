# build: glue
"""Surrogates called from Python, for tests and scripts; arguments are checked first."""

from typing import NamedTuple

import numpy as np

from libc.math cimport NAN

from .base cimport Cut, Surrogate

from ..structure.call_arguments import label_of, memory, scores_of


class CutCall(NamedTuple):
    """Sparse parts p, b, the bound, the key of the vertex, and the number of oracle calls."""

    index: "NDArray[np.int32]"
    value: "NDArray[np.float64]"
    b: "float"
    bound: "float"
    key: "int"
    calls: "int"


def cut(Surrogate surrogate not None, Py_ssize_t i, theta, truth, room=None):
    """Return one cut of a surrogate: ``H_i(w) >= b - <theta_i(w), p>``.

    Parameters
    ----------
    surrogate : Surrogate
    i : int
    theta : ndarray of float64
        Part scores, flat.
    truth : ndarray of int32
        The true label, encoded.
    room : callable, optional
        Returns the memory to write to.

    Returns
    -------
    CutCall
        ``index`` and ``value`` of p, ``b``, the upper ``bound`` of H_i at ``theta``, the ``key``
        of the vertex, and the number of oracle ``calls``.

    Raises
    ------
    ValueError
        If an argument does not fit the example.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.surrogates import Margin
    >>> from structsolve.surrogates.calls import cut
    >>> from structsolve.surrogates.task import Task
    >>> space, _ = structsolve.get_structure("multiclass").make_space([[0.0]] * 2, ["a", "b"])
    >>> margin = Margin().bind(Task(space, structsolve.Examples(np.array([0, 1]))))
    >>> answer = cut(margin, 0, np.array([0.5, 0.2]), truth=np.array([1], np.int32))
    >>> answer.b, sorted(zip(answer.index.tolist(), answer.value.tolist()))
    (1.0, [(0, -1.0), (1, 1.0)])
    """
    cdef const double[::1] scores = scores_of(surrogate, i, theta)
    cdef const int[::1] true_label = label_of(surrogate, i, truth, "truth")
    index = memory(room, "index", surrogate.max_entries, np.int32)
    value = memory(room, "value", surrogate.max_entries, np.float64)
    cdef int[::1] index_view = index
    cdef double[::1] value_view = value
    cdef char[::1] work = memory(room, "work", surrogate.work_bytes, np.int8)
    cdef Cut answer
    answer.index, answer.value = &index_view[0], &value_view[0]
    answer.nnz = answer.calls = 0
    answer.key, answer.b, answer.bound = 0, NAN, NAN
    with nogil:
        surrogate.cut(i, &scores[0], &true_label[0], &answer, &work[0])
    if not 0 <= answer.nnz <= surrogate.max_entries:
        raise ValueError(
            f"{type(surrogate).__name__}: cut() gave {answer.nnz} entries, expected 0 to "
            f"{surrogate.max_entries} (max_entries)"
        )
    return CutCall(index[:answer.nnz], value[:answer.nnz], answer.b, answer.bound, answer.key,
                   answer.calls)
