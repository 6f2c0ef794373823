"""Matchings of the rows and columns of tables of pairs: packing, labels and their checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.plugins.permutation.assignments import AssignmentSpace
from structsolve.plugins.permutation.labels import holds_pairs, matchings, stack_pairs
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Structure


class MatchingSpace(AssignmentSpace):
    """Tables of pairs with the same features: ``theta[a, b]`` scores row a with column b."""

    def __init__(self, structure: Structure, n_features: int):
        block = Block("pair", "node", (1,), ("score",))
        super().__init__(structure, WeightLayout([block], n_features, 0, False))

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Return packed pairs; a label has a column for each row.

        Parameters
        ----------
        X : list of arrays of shape (rows, columns, n_features)
        Y : list of sequences of int, optional
            The column of each row.
        unseen : {"error", "extra"}
            Ignored: columns that do not exist in an example are refused.

        Returns
        -------
        Examples
            With rows, cols and forbidden pairs in the topology.

        Raises
        ------
        ValueError
            For features that differ from training, and labels that are not matchings.
        """
        if not holds_pairs(X) and hasattr(X, "shape"):
            raise ValueError(
                f"X has shape {X.shape}, expected a list with one array of shape (rows, columns, "
                "n_features) per example, as in training"
            )
        examples = self._examples(stack_pairs(X, self.layout.n_features), Y)
        return examples

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse labels that are no matchings, and forbidden pairs."""
        from structsolve.examples.stacking import pieces  # compiled: not to list structures

        topology = examples.topology
        rows, cols, forbidden = (topology[name] for name in ("rows", "cols", "forbidden"))
        owner = np.repeat(np.arange(examples.n), rows)
        row = np.arange(len(flat)) - examples.label_offsets[owner]
        fits = bool((flat < cols[owner]).all())
        fits = fits and len(np.unique(owner * int(cols.max()) + flat)) == len(flat)
        if fits and forbidden is not None:
            fits = not forbidden[examples.offsets[owner] + row * cols[owner] + flat].any()
        if not fits:
            matchings(pieces(flat, examples.label_offsets), rows, cols, forbidden)

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return tables of pairs of given sizes, without features.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of (int, int)
            Rows and columns of each table, no more rows than columns.
        **topology
            ``forbidden``: for each example an array of bool of shape (rows, columns), or None.

        Returns
        -------
        Examples
            A row of scores for each pair, forbidden ones too: row by row.
        """
        packing.no_topology({*topology} - {"forbidden"})
        shapes = packing.size_pairs(sizes, "rows and columns")
        tables = [np.zeros((*shape, 1)) for shape in shapes.tolist()]
        forbidden = topology.get("forbidden") or [None] * len(tables)
        if len(forbidden) != len(tables):
            raise ValueError(f"forbidden: found {len(forbidden)}, expected {len(tables)}")
        for i, (table, mask) in enumerate(zip(tables, forbidden)):
            if mask is None:
                continue
            mask = np.asarray(mask)
            if mask.shape != table.shape[:2] or mask.dtype != bool:
                raise ValueError(
                    f"example {i}: forbidden: found {mask.dtype} of shape {mask.shape}, expected "
                    f"bool of shape {table.shape[:2]}"
                )
            table[mask] = np.nan
        examples = self._examples(stack_pairs(tables), None)
        examples.nodes = None
        return examples

    def _examples(self, pairs: Any, Y: Any) -> Examples:
        """Combine stacked pairs and the matchings of Y."""
        features, rows, cols, forbidden = pairs
        offsets = np.concatenate([[0], np.cumsum(rows * cols)]).astype(np.int64)
        label_offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        examples = Examples(offsets, features, label_offsets=label_offsets)
        examples.topology = {"rows": rows, "cols": cols, "forbidden": forbidden}
        # A resumed run must have the same sizes and forbidden pairs, besides the features.
        barred = b"" if forbidden is None else np.packbits(forbidden).tobytes()
        examples.topology["identity"] = (rows.tobytes() + cols.tobytes() + barred).hex()
        if Y is not None:
            examples.labels = matchings(Y, rows, cols, forbidden)
        return examples

    def unpack(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return matchings."""
        from structsolve.examples.stacking import pieces  # compiled: not to list structures

        return pieces(flat.astype(np.int64), examples.label_offsets)

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return the scores or marginals of pairs."""
        flat = np.asarray(flat).reshape(-1)
        shapes = [_table_shape(examples, i) for i in range(examples.n)]
        return [flat[a : a + r * c].reshape(r, c) for a, (r, c) in zip(examples.offsets, shapes)]

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        return {"kind": "matching", "n_features": self.layout.n_features}, {}

    def allowed(self, examples: Examples, i: int) -> np.ndarray:
        """Return the pairs of an example that are not forbidden."""
        shape, mask = _table_shape(examples, i), examples.topology["forbidden"]
        if mask is None:
            return np.ones(shape, dtype=bool)
        return mask[examples.offsets[i] : examples.offsets[i + 1]].reshape(shape) == 0


def _table_shape(examples: Examples, i: int) -> tuple[int, int]:
    return int(examples.topology["rows"][i]), int(examples.topology["cols"][i])
