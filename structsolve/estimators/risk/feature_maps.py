"""Feature maps of scikit-learn as numbers and arrays, for files without pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...examples.packing import is_sparse
from ..codec import plain, revive

#: What is written; a later form gets a number of its own.
FORMAT = 1
# By the name of the class: arrays that fit() made, then numbers that it made.
FITTED = {
    "Nystroem": (("components_", "normalization_", "component_indices_"), ()),
    "RBFSampler": (("random_weights_", "random_offset_"), ("_gamma",)),
}
# By how much another version of scikit-learn may round otherwise.
NEAR = 1e-6


def to_state(given: Any, fitted: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what :func:`of_state` needs of a map and its fitted clone.

    Raises
    ------
    ValueError
        For a map that is not one of ``FITTED``.
    """
    import sklearn

    name = type(fitted).__name__
    if name not in FITTED or type(fitted) is not _kind(name):
        raise ValueError(
            f"feature_map is {given!r}, which cannot be saved without pickle, only "
            f"{' and '.join(FITTED)} of scikit-learn can; use one of them, or kernel= in its "
            "place, or pickle the model yourself"
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
            value = value.tocsr()
            arrays |= {f"{key}{part}": getattr(value, part) for part in _CSR}
            arrays[f"{key}shape"] = np.array(value.shape)
        else:
            # Products of arrays in another order round otherwise.
            turned = value.flags.f_contiguous and not value.flags.c_contiguous
            arrays[key + ("T" if turned else "")] = value.T if turned else value
    columns = int(fitted.n_features_in_)
    probe = np.sin(np.arange(1.0, columns + 1)).reshape(1, -1)
    arrays["probe"] = np.asarray(fitted.transform(probe))
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
    """Return the map, and a fitted clone of it, from what :func:`to_state` returned."""
    import sklearn
    from scipy import sparse
    from sklearn.base import clone

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
            parts = tuple(arrays[f"{key}{part}"] for part in _CSR)
            shape = tuple(int(size) for size in arrays[f"{key}shape"])
            value = sparse.csr_matrix(parts, shape=shape)
            value.check_format(full_check=True)
        setattr(fitted, key, value)
    for key in numbers:
        setattr(fitted, key, meta["numbers"][key])
    fitted.n_features_in_ = int(meta["columns"])
    fitted._n_features_out = int(arrays["probe"].shape[1])
    probe = np.sin(np.arange(1.0, fitted.n_features_in_ + 1)).reshape(1, -1)
    try:
        found = np.asarray(fitted.transform(probe))
        same = found.shape == arrays["probe"].shape and np.allclose(
            found, arrays["probe"], rtol=NEAR, atol=NEAR
        )
    except (ValueError, AttributeError, TypeError):
        same = False
    if not same:
        raise ValueError(
            f"its feature map {meta['name']!r} was fitted by scikit-learn {meta['sklearn']}, and "
            f"{sklearn.__version__} maps otherwise with what it holds; use that version, or train "
            "again"
        )
    return given, fitted


_CSR = ("data", "indices", "indptr")


def _kind(name: str) -> Any:
    from sklearn import kernel_approximation

    return getattr(kernel_approximation, name)
