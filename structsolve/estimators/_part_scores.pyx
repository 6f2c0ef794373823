# build: glue
"""Part scores of many examples by a model's weights, as arrays of a batch."""

from ..batch._sheets cimport Sheet
from ..potentials.linear cimport LinearPotentials

from ..utils.arrays import aligned_zeros
from ..utils.parallel import over_examples


def write_scores(LinearPotentials potentials not None, const double[::1] w not None,
                 Sheet out not None, n_jobs=1):
    """Write the part scores of every example.

    Parameters
    ----------
    potentials : LinearPotentials
    w : ndarray of float64 of shape (dim,)
    out : Sheet
        Of the same examples; overwritten.  Shared blocks are those of all examples.
    n_jobs : int or None, default=1
    """
    if w.shape[0] != potentials.dim:
        raise ValueError(f"w: found {w.shape[0]} entries, expected {potentials.dim}")
    if (out.layout.n != potentials.n or out.layout.max_theta > potentials.max_theta
            or out.layout.shared_size != potentials.shared_size):
        raise ValueError(f"out: found {out.layout.n} examples, expected the potentials' own")
    if out.shared_step:
        raise ValueError("out: expected shared blocks of all examples")

    def piece(Py_ssize_t first, Py_ssize_t last, double[::1] theta):
        cdef Py_ssize_t i, j
        with nogil:
            for i in range(first, last):
                potentials.score(i, &w[0], 1.0, &theta[0])
                out.write(i, &theta[0], 1)
                if i == 0:
                    for j in range(potentials.shared_size):
                        out.shared[j] = theta[j]

    over_examples(piece, out.layout.examples.offsets, n_jobs,
                  lambda: aligned_zeros(potentials.max_theta + 8))
    out.store(out.shared)
