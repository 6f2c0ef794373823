"""Feature maps of scikit-learn as numbers and arrays, for files without pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.estimators.codec import plain, revive
from structsolve.examples.given import is_sparse
from structsolve.utils.csr_arrays import csr_from_arrays, csr_to_arrays

#: Version of the format; increase it with every change.
FORMAT = 1
# By class name: the arrays and the numbers that fit() sets.
FITTED = {
    "Nystroem": (("components_", "normalization_", "component_indices_"), ()),
    "RBFSampler": (("random_weights_", "random_offset_"), ("_gamma",)),
}
# Largest rounding difference between versions of scikit-learn.
NEAR = 1e-6


def to_state(given: Any, fitted: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return numbers and arrays of a feature map, from which :func:`of_state` recreates it.

    Parameters
    ----------
    given : transformer
        As the user gave it.
    fitted : transformer
        Its fitted clone.

    Returns
    -------
    meta : dict
    arrays : dict of str to ndarray

    Raises
    ------
    ValueError
        For a class that is not in ``FITTED``, or a kernel that is a function.
    """
    import sklearn  # heavy

    name = type(fitted).__name__
    if name not in FITTED or type(fitted) is not _kind(name):
        raise ValueError(
            f"feature_map is {given!r}, which cannot be saved without pickle, only "
            f"{' and '.join(FITTED)} of scikit-learn can; use one of them, or kernel= "
            "instead, or pickle the model yourself"
        )
    params = given.get_params(deep=False)
    if callable(params.get("kernel")):
        raise ValueError(
            f"feature_map is {given!r}, whose kernel is a function, which files do not hold; name "
            "a kernel of scikit-learn"
        )
    arrays: dict[str, np.ndarray] = {}
    names, numbers = FITTED[name]
    for key in names:
        value = getattr(fitted, key)
        if is_sparse(value):
            arrays |= csr_to_arrays(value.tocsr(), key)
        else:
            # Keep the memory order: products of arrays in another order differ in their last bits.
            fortran = value.flags.f_contiguous and not value.flags.c_contiguous
            arrays[key + ("T" if fortran else "")] = value.T if fortran else value
    columns = int(fitted.n_features_in_)
    arrays["probe"] = np.asarray(fitted.transform(_probe(columns)))
    meta = {
        "format": FORMAT,
        "name": name,
        "sklearn": sklearn.__version__,
        "params": plain(params, "feature_map"),
        "numbers": {key: float(getattr(fitted, key)) for key in numbers},
        "columns": columns,
    }
    return meta, arrays


def of_state(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[Any, Any]:
    """Return a feature map and its fitted clone.

    Parameters
    ----------
    meta : dict
    arrays : dict of str to ndarray
        Both as :func:`to_state` returned them.

    Returns
    -------
    given, fitted : transformer

    Raises
    ------
    ValueError
        For an unknown form or class, or when the installed scikit-learn maps a row differently from
        the one that wrote the file.
    """
    import sklearn  # heavy
    from sklearn.base import clone  # heavy

    if meta["format"] != FORMAT or meta["name"] not in FITTED:
        raise ValueError(
            f"its feature map is a {meta['name']!r} in form {meta['format']}, this version knows "
            f"{' and '.join(FITTED)} in form {FORMAT}; use a newer structsolve"
        )
    given = _kind(meta["name"])(**revive(meta["params"]))
    fitted = clone(given)
    names, numbers = FITTED[meta["name"]]
    for key in names:
        if key in arrays:
            value = arrays[key]
        elif f"{key}T" in arrays:
            value = arrays[f"{key}T"].T
        else:
            value = csr_from_arrays(arrays, key)
        setattr(fitted, key, value)
    for key in numbers:
        setattr(fitted, key, meta["numbers"][key])
    fitted.n_features_in_ = int(meta["columns"])
    fitted._n_features_out = int(arrays["probe"].shape[1])
    expected = arrays["probe"]
    try:
        mapped = np.asarray(fitted.transform(_probe(fitted.n_features_in_)))
        same = mapped.shape == expected.shape and np.allclose(mapped, expected, NEAR, NEAR)
    except (ValueError, AttributeError, TypeError):
        same = False
    if not same:
        raise ValueError(
            f"its feature map {meta['name']!r} was fitted by scikit-learn {meta['sklearn']}, and "
            f"{sklearn.__version__} maps differently with this state; use that version, or train "
            "again"
        )
    return given, fitted


def _probe(columns: int) -> np.ndarray:
    """Return a row of features, whose image is stored to recognise the map."""
    return np.sin(np.arange(1.0, columns + 1)).reshape(1, -1)


def _kind(name: str) -> Any:
    from sklearn import kernel_approximation  # heavy

    return getattr(kernel_approximation, name)
