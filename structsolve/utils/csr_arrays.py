"""CSR matrices as the arrays of a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from .sparse import csr_of

_CSR = ("data", "indices", "indptr")


def csr_to_arrays(X: Any, prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays of a CSR matrix by name, for files.

    Parameters
    ----------
    X : scipy.sparse CSR
    prefix : str
        Begins the names.

    Returns
    -------
    dict of str to ndarray
        ``prefix`` with "data", "indices", "indptr" and "shape".
    """
    arrays = {prefix + name: getattr(X, name) for name in _CSR}
    return arrays | {f"{prefix}shape": np.array(X.shape)}


def csr_from_arrays(arrays: dict[str, np.ndarray], prefix: str) -> Any:
    """Return the CSR matrix of :func:`csr_to_arrays`.

    Parameters
    ----------
    arrays : dict of str to ndarray
    prefix : str
        Begins the names.

    Returns
    -------
    scipy.sparse.csr_matrix

    Raises
    ------
    KeyError
        If an array is missing.
    ValueError
        If the arrays do not fit together.
    """
    data, indices, indptr = (arrays[prefix + name] for name in _CSR)
    return csr_of(data, indices, indptr, arrays[f"{prefix}shape"], prefix.rstrip("_"))
