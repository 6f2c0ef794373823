"""Ordered classes of users' labels, from the lowest to the highest."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import labels


def told_order(Y: Any) -> np.ndarray | None:
    """Return all categories of an ordered Categorical of pandas, or None of other labels.

    Parameters
    ----------
    Y : sequence

    Returns
    -------
    ndarray or None
        From the lowest to the highest.
    """
    kind: Any = getattr(Y, "dtype", None)
    return np.array(list(kind.categories)) if getattr(kind, "ordered", False) else None


def learn_order(flat: np.ndarray, given: Any = None, gaps: bool = False) -> np.ndarray:
    """Return the classes from the lowest to the highest.

    Parameters
    ----------
    flat : ndarray
        Labels.
    given : sequence, optional
        All classes in their order; needed for strings and for integers with gaps.
    gaps : bool, default=False
        Accept integers with gaps.

    Returns
    -------
    ndarray
        Distinct classes.

    Raises
    ------
    ValueError
        If a label is not among ``given``; without ``given``, for strings and gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.ordinal.labels import learn_order
    >>> learn_order(np.array([3, 1, 2])).tolist()
    [1, 2, 3]
    >>> learn_order(np.array(["low", "high"]), ["low", "mid", "high"]).tolist()
    ['low', 'mid', 'high']
    """
    if given is not None:
        labels.learn_classes(flat, given)
        classes = np.asarray(given)
        strange = flat[~np.isin(flat, classes)]
        if strange.size:
            raise ValueError(
                f"classes: found no {strange[0].item()!r} among {classes.tolist()[:12]}, expected "
                "all classes of y from the lowest to the highest"
            )
        return classes
    classes = np.unique(flat)
    if classes.dtype.kind in "US":
        raise ValueError(
            f"y: found the strings {classes.tolist()[:12]}, whose order is not known; pass "
            "OrdinalStructure(classes=[...]) with all of them from the lowest to the highest, an "
            "ordered pandas Categorical, or integers"
        )
    wide = np.flatnonzero(np.diff(classes.astype(np.float64)) > 1)
    if wide.size and not gaps:
        below, above = classes[wide[0]].item(), classes[wide[0] + 1].item()
        raise ValueError(
            f"y: found no label {int(below) + 1} between {below} and {above}, expected integers "
            "without gaps; number classes anew, or pass OrdinalStructure(classes=[...]) with all "
            "classes, from the lowest to the highest"
        )
    return classes
