# build: glue
"""Losses of many labels at once."""

import numpy as np

from libc.stdint cimport int64_t
from ..operators cimport Loss

from ..utils.arrays import check_numbers


def losses(Loss loss not None, const int[::1] truths not None, const int[::1] labels not None):
    """Return the loss of every example's label against its truth.

    Parameters
    ----------
    loss : Loss
        Bound to the examples.
    truths, labels : ndarray of int32
        Encoded labels of all examples, concatenated.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError
        If sizes differ, or the loss has no value for a truth.
    """
    cdef Py_ssize_t i, n = loss.layout.n, size = loss.layout.label_offsets[loss.layout.n]
    cdef const int64_t* starts = loss.layout.label_offsets
    if truths.shape[0] != size or labels.shape[0] != size:
        raise ValueError(
            f"truths and labels have {truths.shape[0]} and {labels.shape[0]} entries, expected "
            f"{size}"
        )
    states = loss.n_states or 2**31 - 1
    check_numbers(labels, states, "labels")
    loss.check_truths(np.asarray(truths))
    check_numbers(truths, states + loss.takes_unseen, "truths")
    values = np.empty(n)
    cdef double[::1] out = values
    if size == 0:       # empty arrays have no address
        values[:] = 0
        return values
    with nogil:
        for i in range(n):
            out[i] = loss.value(i, &truths[0] + starts[i], &labels[0] + starts[i])
    return values
