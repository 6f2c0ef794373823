# build: glue
"""Surrogates called from Python, for tests and scripts; arguments are checked first."""

from collections import namedtuple

import numpy as np

from .base cimport Cut, Surrogate

from ..structure.calls import label_of, scores_of, work_for

CutCall = namedtuple("CutCall", "index value b bound key calls")


def cut(Surrogate surrogate not None, Py_ssize_t i, theta, truth):
    """One cut of a surrogate: ``H_i(w) >= b - <theta_i(w), p>``.

    Parameters
    ----------
    surrogate : Surrogate
    i : int
    theta : ndarray of float64
        Part scores, flat.
    truth : ndarray of int32
        The true label, encoded.

    Returns
    -------
    CutCall
        ``index`` and ``value`` of p, ``b``, the upper ``bound`` of H_i at ``theta``, the ``key``
        of the vertex, and the number of oracle ``calls``.

    Raises
    ------
    ValueError
        When an argument does not fit the example.

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
    cdef double[::1] work = work_for(surrogate)
    index = np.zeros(surrogate.max_entries + 1, dtype=np.int32)
    value = np.zeros(surrogate.max_entries + 1)
    cdef int[::1] index_view = index
    cdef double[::1] value_view = value
    cdef Cut answer
    answer.index, answer.value = &index_view[0], &value_view[0]
    with nogil:
        surrogate.cut(i, &scores[0], &true_label[0], &answer, <char*>&work[0])
    return CutCall(index[:answer.nnz], value[:answer.nnz], answer.b, answer.bound, answer.key,
                   answer.calls)
