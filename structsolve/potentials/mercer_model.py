"""A trained model of a Mercer kernel: nonzero dual variables, their nodes, scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..examples.given import is_sparse
from ..examples.packed import Examples, Sequences
from ..utils.arrays import aligned_zeros
from ..utils.csr_arrays import csr_from_arrays, csr_to_arrays
from .linear import LinearPotentials
from .mercer import Kernel, given_dense, node_namer
from .mercer_features import split_block
from .model import Coef, Model, refuse_nan
from .weight_layout import WeightLayout

# Bytes of kernel values between new nodes and support vectors to hold at a time.
PREDICTION_BYTES = 1 << 25


class KernelCoef(Coef):
    """Weights by block name; the error for a missing block gives the reason."""

    def __missing__(self, name: str) -> Any:
        raise KeyError(
            f"{name!r}: a kernel model has no weights for the features of its nodes; use "
            f"dual_coef_, support_ and support_vectors_ instead (weights: {list(self)})"
        )


@dataclass(eq=False, repr=False)
class KernelModel(Model):
    """Dual variables of training nodes, and the kernel that compares them with new nodes.

    Parameters
    ----------
    space : Space
    kernel : Kernel
    n_nodes : int
        Training nodes.
    support : ndarray of int64 of shape (n_support,)
        Training nodes whose dual variables are not all zero.
    vectors : ndarray or CSR of shape (n_support, n_features), or None
        Features of these nodes; None if the kernel is precomputed.
    duals : ndarray of shape (n_support, node_size)
        Dual variables of these nodes, padded like the node block.
    rest : dict of str to ndarray
        Weights of the other blocks, and ``"intercept"``.
    """

    key = "kernel"

    space: Any
    kernel: Kernel
    n_nodes: int
    support: np.ndarray
    vectors: Any
    duals: np.ndarray
    rest: dict[str, np.ndarray]

    @classmethod
    def of(cls, problem: Any, w: np.ndarray) -> KernelModel:
        """Return the model of a solver's vector.

        Parameters
        ----------
        problem : structsolve.Problem
            A problem with a Mercer kernel.
        w : ndarray of float64 of shape (problem.dim,)
            The solver's duals and scores.

        Returns
        -------
        KernelModel
        """
        potentials, layout = problem.potentials, problem.space.layout
        X, n = potentials.kernel_rows, int(problem.examples.offsets[-1])
        inner = potentials.layout
        end = inner.node_start + inner.node_rows * inner.node_size
        A, _ = split_block(w[inner.node_start : end], n, inner.node_size)
        A = potentials.model_rows(A)
        support = np.flatnonzero(A.any(axis=1))
        rest = {b.name: inner.view(w, b.name).copy() for b in inner.blocks if b.kind != "node"}
        if layout.intercept:
            rest["intercept"] = _unpadded(A.sum(axis=0), layout)
        return cls(
            problem.space,
            problem.kernel,
            n,
            support=support,
            vectors=None if problem.kernel.precomputed else X[support],
            duals=np.ascontiguousarray(A[support]),
            rest=rest,
        )

    def attributes(self) -> dict[str, Any]:
        """Return ``coef_`` of the blocks that have weights, and the dual variables."""
        layout = self.space.layout
        names = [b.name for b in layout.blocks] + ["intercept"]
        learned = {} if self.kernel.gamma is None else {"gamma_": self.kernel.gamma}
        return learned | {
            "coef_": KernelCoef({name: self.rest[name] for name in names if name in self.rest}),
            "support_": self.support,
            "support_vectors_": self.vectors,
            "dual_coef_": _unpadded(self.duals, layout),
        }

    def check_input(self, X: Any) -> bool:
        """Refuse rows of a precomputed kernel that do not fit the training nodes.

        Parameters
        ----------
        X : as for ``predict``

        Returns
        -------
        bool
            Whether the features are dense; the kernel then gets dense ones.

        Raises
        ------
        ValueError
            The message names the example whose columns do not match the training nodes.
        """
        dense = given_dense(X)
        if not self.kernel.precomputed:
            return dense
        if isinstance(X, Sequences):
            X = X.features
        parts = [X] if hasattr(X, "shape") else X if isinstance(X, (list, tuple)) else []
        for i, part in enumerate(parts):
            shape = np.shape(part[0] if isinstance(part, tuple) and part else part)
            columns = shape[-1] if shape else None
            if columns is not None and columns != self.n_nodes:
                where = "X" if hasattr(X, "shape") else f"X, example {i}"
                raise ValueError(
                    f"{where}: found {columns} features, kernel values with that many nodes; "
                    f"expected {self.n_nodes}, one column per node of the training data "
                    "(kernel='precomputed')"
                )
        return dense

    def scores(
        self, examples: Examples, dense: bool = False, n_jobs: int | None = 1
    ) -> tuple[LinearPotentials, np.ndarray]:
        """Return potentials of new examples, and the vector that scores them.

        Node scores are computed here.  The vector holds them as weights, one row per node, and the
        features of a node pick its row.
        """
        import scipy.sparse as sp  # heavy

        layout = self.space.layout
        examples.check(layout, self.space.structure.name, columns=False)
        n = int(examples.offsets[-1])
        inner = WeightLayout(layout.blocks, n, layout.n_edge_features, False)
        w = aligned_zeros(inner.dim)
        for block in layout.blocks:
            if block.kind != "node":
                inner.view(w, block.name)[...] = self.rest[block.name]
        rows = w[inner.node_start : inner.node_start + n * inner.node_size]
        self.node_scores(examples, dense, rows.reshape(n, inner.node_size))
        if "intercept" in self.rest:
            inner.view(w, layout.node.name)[...] += self.rest["intercept"]
        one_each = sp.csr_matrix(
            (np.ones(n), np.arange(n, dtype=np.int32), np.arange(n + 1)), shape=(n, n)
        )
        refuse_nan(w)
        return LinearPotentials(replace(examples, nodes=one_each), inner, n_jobs=n_jobs), w

    def node_scores(self, examples: Examples, dense: bool, out: np.ndarray) -> None:
        """Write node scores: kernel values of new nodes with the support vectors, times the duals.

        Parameters
        ----------
        examples : Examples
            New examples.
        dense : bool
            Whether users gave dense features.
        out : ndarray of float64 of shape (n_nodes, node_size)
            Unchanged if the model has no support vectors.
        """
        X = self.kernel.rows(examples.nodes, examples.offsets, dense or self.kernel.precomputed)
        together = max(1, PREDICTION_BYTES // (8 * max(len(self.support), 1)))
        for first in range(0, X.shape[0] if len(self.support) else 0, together):
            some = X[first : first + together]
            if self.kernel.precomputed:
                values = some[:, self.support]
            else:
                row = node_namer(examples.offsets, range(first, first + some.shape[0]))
                values = self.kernel.matrix(
                    some, self.vectors, row, lambda v: f"training node {self.support[v]}"
                )
            out[first : first + together] = values @ self.duals

    # -- files ----------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a model file."""
        arrays = {"support": self.support, "duals": self.duals}
        arrays["n_nodes"] = np.array([self.n_nodes])
        if self.kernel.gamma is not None:
            arrays["gamma"] = np.array([self.kernel.gamma])
        arrays |= {f"rest_{k}": v for k, v in self.rest.items()}
        if is_sparse(self.vectors):
            arrays |= csr_to_arrays(self.vectors, "vectors_")
        elif self.vectors is not None:
            arrays["vectors"] = self.vectors
        return arrays

    @classmethod
    def from_arrays(
        cls, space: Any, arrays: dict[str, np.ndarray], kernel: Kernel | None
    ) -> KernelModel:
        """Return the model of :meth:`to_arrays`.

        Parameters
        ----------
        space : Space
            The model's space.
        arrays : dict of str to ndarray
        kernel : Kernel

        Returns
        -------
        KernelModel

        Raises
        ------
        ValueError
            If arrays do not match each other or the space.
        """
        if kernel is None:
            raise ValueError("it holds dual variables, but names no kernel")
        if "gamma" in arrays:
            kernel = kernel.with_gamma(float(arrays["gamma"][0]))
        layout = space.layout
        support = arrays["support"]
        vectors: Any = None
        if not kernel.precomputed:
            dense = "vectors" in arrays
            vectors = arrays["vectors"] if dense else csr_from_arrays(arrays, "vectors_")
            if vectors.shape != (len(support), layout.n_features):
                raise ValueError(
                    f"support vectors have shape {vectors.shape}, expected "
                    f"({len(support)}, {layout.n_features})"
                )
        n_nodes = int(arrays["n_nodes"][0])
        if arrays["duals"].shape != (len(support), layout.node_size) or (
            len(support) and not 0 <= support.min() <= support.max() < n_nodes
        ):
            raise ValueError(
                f"dual variables of shape {arrays['duals'].shape} for {len(support)} of {n_nodes} "
                f"training nodes, expected ({len(support)}, {layout.node_size})"
            )
        rest = {k.removeprefix("rest_"): v for k, v in arrays.items() if k.startswith("rest_")}
        for block in layout.blocks:
            if block.kind == "node":
                continue
            rows = (layout.edge_rows,) if block.kind == "edge" else ()
            if rest[block.name].shape != (*rows, *block.shape):
                raise ValueError(
                    f"block {block.name!r} has shape {rest[block.name].shape}, expected "
                    f"{(*rows, *block.shape)}"
                )
        expected = _unpadded(np.zeros(layout.node_size), layout).shape
        if layout.intercept and rest["intercept"].shape != expected:
            raise ValueError(
                f"the intercept has shape {rest['intercept'].shape}, expected {expected}"
            )
        return cls(space, kernel, n_nodes, support, vectors, arrays["duals"], rest)


def _unpadded(rows: np.ndarray, layout: WeightLayout) -> np.ndarray:
    """Return rows of the node block in its shape, without the padding of its last axis."""
    block: Any = layout.node
    full = rows.reshape(*rows.shape[:-1], *block.shape[:-1], block.stride)
    return full[..., : block.shape[-1]].copy()
