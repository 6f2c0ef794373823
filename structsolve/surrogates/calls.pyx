"""Surrogates called from Python, for tests and scripts; arguments are checked first."""

from collections import namedtuple

import numpy as np

from ._base cimport Cut, Surrogate

from ..structure.calls import scores_of, work_for

CutCall = namedtuple("CutCall", "index value b bound key calls")


def cut(Surrogate surrogate not None, Py_ssize_t i, theta):
    """One cut of a surrogate: ``H_i(w) >= b - <theta_i(w), p>``.

    Returns
    -------
    CutCall
        ``index`` and ``value`` of p, ``b``, the upper ``bound`` of H_i at ``theta``, the ``key``
        of the vertex, and the number of oracle ``calls``.
    """
    cdef const double[::1] scores = scores_of(surrogate, i, theta)
    cdef double[::1] work = work_for(surrogate)
    index = np.zeros(surrogate.max_entries + 1, dtype=np.int32)
    value = np.zeros(surrogate.max_entries + 1)
    cdef int[::1] index_view = index
    cdef double[::1] value_view = value
    cdef Cut found
    found.index, found.value = &index_view[0], &value_view[0]
    with nogil:
        surrogate.cut(i, &scores[0], &found, <char*>&work[0])
    return CutCall(index[:found.nnz], value[:found.nnz], found.b, found.bound, found.key,
                   found.calls)


