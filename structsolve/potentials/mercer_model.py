"""A trained kernel model: the dual variables that are not zero, the rows they belong to, scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..examples.packed import Examples, Sequences
from ..examples.packing import is_sparse
from ..utils.arrays import aligned_zeros
from .mercer import Kernel, node_name
from .weight_layout import WeightLayout

# Bytes of kernel values between new nodes and support vectors that are held at a time.
PREDICTION_BYTES = 1 << 25


class KernelCoef(dict):
    """Weights by block name; a block that has none says so."""

    def __missing__(self, name: str) -> Any:
        raise KeyError(
            f"{name!r}: a kernel model has no weights for the features of its nodes; dual_coef_, "
            f"support_ and support_vectors_ stand in their place (weights: {list(self)})"
        )


@dataclass
class KernelModel:
    """What scoring needs of a training run.

    Parameters
    ----------
    kernel : Kernel
    n_nodes : int
        Training nodes.
    support : ndarray of int64
        Those whose dual variables are not all zero.
    vectors : ndarray or CSR of shape (n_support, n_features), or None
        Their features; None where the kernel is precomputed.
    duals : ndarray of shape (n_support, node_size)
        Their dual variables, padded as the node block is.
    rest : dict of str to ndarray
        Weights of the other blocks, and ``"intercept"``.
    """

    kernel: Kernel
    n_nodes: int
    support: np.ndarray
    vectors: Any
    duals: np.ndarray
    rest: dict[str, np.ndarray]

    @classmethod
    def of(cls, problem: Any, w: np.ndarray) -> KernelModel:
        """Read the model off the vector that a solver moved."""
        from .mercer_features import split_block

        potentials, layout = problem.potentials, problem.space.layout
        X, n = potentials.kernel_rows, int(problem.examples.offsets[-1])
        inner = potentials.layout
        end = inner.node_start + inner.node_rows * inner.node_size
        A, _ = split_block(w[inner.node_start : end], n, inner.node_size)
        if potentials.node_scale is not None:
            A = A * potentials.node_scale
        support = np.flatnonzero(A.any(axis=1))
        rest = {b.name: inner.view(w, b.name).copy() for b in inner.blocks if b.kind != "node"}
        if layout.intercept:
            rest["intercept"] = unpadded(A.sum(axis=0), layout)
        return cls(
            problem.kernel,
            n,
            support,
            None if problem.kernel.precomputed else X[support],
            np.ascontiguousarray(A[support]),
            rest,
        )

    def coef(self, space: Any) -> KernelCoef:
        """Return the weights there are, by name in the order of the blocks."""
        names = [b.name for b in space.layout.blocks] + ["intercept"]
        return KernelCoef({name: self.rest[name] for name in names if name in self.rest})

    def dual_coef(self, space: Any) -> np.ndarray:
        """Return the dual variables without padding."""
        return unpadded(self.duals, space.layout)

    def check_columns(self, X: Any) -> None:
        """Refuse rows of a precomputed kernel that do not fit the training nodes."""
        if not self.kernel.precomputed:
            return
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

    def bind(
        self, space: Any, examples: Examples, dense: bool, n_jobs: int | None = 1
    ) -> tuple[Any, np.ndarray]:
        """Return potentials of new examples, and the vector that they are scored with.

        Node scores are computed here; what the loops see are weights that hold one row of scores
        per node, and features that pick it.
        """
        import scipy.sparse as sp

        from .linear import LinearPotentials

        layout = space.layout
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
        return LinearPotentials(replace(examples, nodes=one_each), inner, n_jobs=n_jobs), w

    def node_scores(self, examples: Examples, dense: bool, out: np.ndarray) -> None:
        """``out`` <- kernel values of the nodes with the support vectors, times the duals."""
        X = self.kernel.rows(examples.nodes, examples.offsets, dense or self.kernel.precomputed)
        together = max(1, PREDICTION_BYTES // (8 * max(len(self.support), 1)))
        for first in range(0, X.shape[0] if len(self.support) else 0, together):
            some = X[first : first + together]
            if self.kernel.precomputed:
                values = some[:, self.support]
            else:

                def row(v: int, first: int = first) -> str:
                    return node_name(examples.offsets, first + v)

                values = self.kernel.matrix(
                    some, self.vectors, row, lambda v: f"training node {self.support[v]}"
                )
            out[first : first + together] = values @ self.duals

    # -- files ----------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a model file."""
        arrays = {"support": self.support, "duals": self.duals}
        arrays["n_nodes"] = np.array([self.n_nodes])
        arrays |= {f"rest_{k}": v for k, v in self.rest.items()}
        if is_sparse(self.vectors):
            for name in ("data", "indices", "indptr"):
                arrays[f"vectors_{name}"] = getattr(self.vectors, name)
            arrays["vectors_shape"] = np.array(self.vectors.shape)
        elif self.vectors is not None:
            arrays["vectors"] = self.vectors
        return arrays

    @classmethod
    def from_arrays(
        cls, kernel: Kernel, arrays: dict[str, np.ndarray], layout: WeightLayout
    ) -> KernelModel:
        """Rebuild a model from :meth:`to_arrays`; refuse arrays that do not fit together."""
        support = arrays["support"]
        vectors: Any = None
        if not kernel.precomputed:
            if "vectors" in arrays:
                vectors = arrays["vectors"]
            else:
                import scipy.sparse as sp

                parts = tuple(arrays[f"vectors_{k}"] for k in ("data", "indices", "indptr"))
                shape = tuple(int(s) for s in arrays["vectors_shape"])
                vectors = sp.csr_matrix(parts, shape=shape)
                vectors.check_format(full_check=True)
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
        expected = unpadded(np.zeros(layout.node_size), layout).shape
        if layout.intercept and rest["intercept"].shape != expected:
            raise ValueError(
                f"the intercept has shape {rest['intercept'].shape}, expected {expected}"
            )
        return cls(kernel, n_nodes, support, vectors, arrays["duals"], rest)


def unpadded(rows: np.ndarray, layout: WeightLayout) -> np.ndarray:
    """Return rows of the node block in its shape, without the padding of its last axis."""
    block: Any = layout.node
    full = rows.reshape(*rows.shape[:-1], *block.shape[:-1], block.stride)
    return full[..., : block.shape[-1]].copy()
