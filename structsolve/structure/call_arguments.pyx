# build: glue
"""Arguments of native operators called from Python: their checks, and memory to write to.

``room`` is a callable that allocates memory for an operator to write to:
``room(name, size, dtype)`` returns a flat array of at least ``size`` entries, and at least one; the
array for ``"work"`` begins on a cache line.  The conformance kit uses it to check operators.
"""

import numpy as np

cimport numpy as cnp

from ..utils.arrays import checked_array

from ..operators cimport Operator


cdef enum:
    LINE = 64       # bytes of a cache line


def scores_of(operator, i, theta):
    """Check that part scores fit an example, and return them.

    Parameters
    ----------
    operator : Operator
    i : int
    theta : ndarray of float64
        Flat.

    Returns
    -------
    ndarray
        ``theta`` itself.

    Raises
    ------
    ValueError
        If ``theta`` has another type or size than example ``i`` needs.
    """
    return checked_array(theta, np.float64, "theta", sizes_of(operator, i)[0])


def sizes_of(operator, i):
    """Return the sizes of an example's arrays.

    Parameters
    ----------
    operator : Operator
    i : int

    Returns
    -------
    tuple of (int, int)
        Doubles in theta, integers in a label.

    Raises
    ------
    ValueError
        If the operator is none, or is bound to no examples.
    """
    if not isinstance(operator, Operator):
        raise ValueError(f"found {type(operator).__name__}, expected a native operator")
    if operator.layout is None:
        raise ValueError(
            f"{type(operator).__name__} is bound to no examples: its __init__ must hand its "
            "PartLayout on, super().__init__(layout)"
        )
    return operator.layout.sizes(i)


def label_of(operator, i, label, str what="label"):
    """Check that a label fits an example, and return it.

    Parameters
    ----------
    operator : Operator
    i : int
    label : ndarray of int32
        Encoded.
    what : str, default="label"
        Name in messages.

    Returns
    -------
    ndarray
        ``label`` itself.

    Raises
    ------
    ValueError
        If ``label`` has another type or size, or states out of range.
    """
    label = checked_array(label, np.int32, what, sizes_of(operator, i)[1])
    cdef const int[::1] states = label
    cdef Py_ssize_t v
    cdef unsigned int K = operator.n_states or 2**31
    cdef bint beyond = False
    for v in range(states.shape[0]):
        beyond |= <unsigned int>states[v] >= K  # negative numbers become huge
    if beyond:
        raise ValueError(
            f"{what}: states from {label.min()} to {label.max()}, expected 0 to "
            f"{operator.n_states or 'K'} - 1"
        )
    return label


def memory(room, str name, Py_ssize_t size, dtype):
    """Return memory for an operator to write to.

    Parameters
    ----------
    room : callable, or None
        None: allocate new memory.
    name : str
        Purpose of the memory, such as "label".
    size : int
        Number of entries.
    dtype : data type

    Returns
    -------
    ndarray of ``dtype``
        Flat, at least ``size`` entries.
    """
    if room is not None:
        given = room(name, size, dtype)
        if np.shape(given) < (max(size, 1),):
            raise ValueError(
                f"room: found memory of shape {np.shape(given)} for {name!r}, expected at least "
                f"{max(size, 1)} entries"
            )
        return given
    cdef Py_ssize_t each = np.dtype(dtype).itemsize
    cdef cnp.ndarray buffer = np.zeros(size + 2 * LINE // each, dtype)
    start = -<size_t>buffer.data % LINE // each
    return buffer[start : start + size + LINE // each]


def count_of(operator, str method, count, least, most):
    """Check a number that a method returned.

    Parameters
    ----------
    operator : Operator
    method : str
        Its name, for the message.
    count : int
        The returned number.
    least, most : int

    Returns
    -------
    int
        ``count``.

    Raises
    ------
    ValueError
        If ``count`` is below ``least`` or above ``most``.
    """
    if not least <= count <= most:
        raise ValueError(
            f"{type(operator).__name__}.{method}() returned {count}, expected {least} to {most}"
        )
    return count
