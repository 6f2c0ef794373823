"""The potentials of a problem: of linear features, or of a Mercer kernel."""

from __future__ import annotations

from typing import Any

from ..examples.given import packed_bytes
from ..examples.packed import Examples
from ..examples.shared_rows import SharedRows
from .linear import LinearPotentials
from .mercer import Kernel
from .mercer_features import MercerRows, kernel_layout
from .mixed import MixedPotentials
from .shared import MOST, SharedPotentials
from .weight_layout import WeightLayout

# Bytes of Gram blocks (kernel values within examples) to keep, per node.
KERNEL_GRAM_BYTES = 8 * 1024


def linear_potentials(
    layout: WeightLayout,
    examples: Examples,
    name: str,
    gram: bool,
    *,
    node_scale: Any = None,
    node_mix: Any = None,
) -> LinearPotentials:
    """Return potentials whose w holds weights of features.

    Parameters
    ----------
    layout : WeightLayout
        The blocks of w.
    examples : Examples
    name : str
        Name of the structure, for errors.
    gram : bool
        Keep Gram blocks of the examples, in at most the bytes of the packed features and of one
        dense dual variable of all nodes.
    node_scale : array of the node block's shape, optional
        Factors of the node parts, at least 0.
    node_mix : ndarray of shape (S, S), optional
        Of :class:`MixedPotentials`.

    Returns
    -------
    LinearPotentials

    Raises
    ------
    ValueError
        If arrays of the examples do not fit the layout, or a feature is not finite.
    """
    examples.check(layout, name)
    if node_scale is None and node_mix is None and is_shared(examples):
        return SharedPotentials(examples, layout)
    budget = 0
    if gram:
        duals = 8 * int(examples.offsets[-1]) * layout.node_size
        budget = packed_bytes(examples.nodes) + duals
    if node_mix is not None:
        return MixedPotentials(examples, layout, node_mix, budget)
    return LinearPotentials(examples, layout, budget, node_scale=node_scale)


def is_shared(examples: Examples) -> bool:
    """Return whether nodes share rows of features by a table that the loops take.

    Parameters
    ----------
    examples : Examples

    Returns
    -------
    bool
    """
    return isinstance(examples.nodes, SharedRows) and examples.nodes.table.shape[1] <= MOST


def kernel_potentials(
    layout: WeightLayout,
    examples: Examples,
    name: str,
    *,
    kernel: Kernel,
    dense: bool,
    penalize_intercept: bool,
    node_scale: Any = None,
    node_mix: Any = None,
) -> LinearPotentials:
    """Return potentials whose w holds dual variables of nodes, and their scores.

    Parameters
    ----------
    layout : WeightLayout
        Layout of the weights if features were linear.
    examples : Examples
    name : str
        Name of the structure, for errors.
    kernel : Kernel
    dense : bool
        Whether users gave dense features.
    penalize_intercept : bool
        Must be True.
    node_scale : array of the node block's shape, optional
        Factors of the node parts, at least 0.
    node_mix : ndarray of shape (S, S), optional
        Of :class:`MixedPotentials`.

    Returns
    -------
    LinearPotentials

    Raises
    ------
    ValueError
        If there are no node features to compare, the kernel is found to be indefinite, or the
        intercept is not penalised.
    """
    if layout.node is None or examples.nodes is None:
        raise ValueError(
            f"kernel={kernel.name!r}: structure {name!r} has no node features that "
            "a kernel could compare; use kernel=None"
        )
    if not penalize_intercept:
        raise ValueError(
            "penalize_intercept=False: a kernel model's intercept is a constant 1 added to the "
            "kernel, penalised with it; use fit_intercept=False or penalize_intercept=True"
        )
    examples.check(layout, name, columns=False)
    X = kernel.rows(examples.nodes, examples.offsets, dense or kernel.precomputed)
    bias = 1.0 if layout.intercept else 0.0
    nodes = MercerRows(X, kernel, examples.offsets, layout.node_size, bias)
    # The last bits of an answer depend on whether Gram blocks are kept, so that choice must not
    # depend on the size of the cache.
    budget = KERNEL_GRAM_BYTES * X.shape[0]
    inner = kernel_layout(layout, X.shape[0])
    if node_mix is not None:
        return MixedPotentials(examples, inner, node_mix, budget, nodes=nodes)
    return LinearPotentials(examples, inner, budget, nodes=nodes, node_scale=node_scale)
