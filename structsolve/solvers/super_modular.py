"""Linear constraints that keep tables super-modular, so that decoding is one minimum cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.params import Params


class SuperModular(Params):
    """Keep the tables of a block super-modular, so that the best labeling is a minimum cut.

    A table ``g`` of scores of ordered states is super-modular if all its second differences satisfy

        ``g[a, b] + g[a + 1, b + 1] - g[a, b + 1] - g[a + 1, b] >= 0``

    for a, b = 0 .. K - 2.  Such a table favours equal states at both ends of an edge.  With
    two states, this is one inequality.  States are ordered as in ``classes_``.

    Parameters
    ----------
    block : str
        Name of a block of square tables of weights, such as ``"pair"`` of ``"mrf"`` and
        ``"multilabel"``, ``"transition"`` of ``"chain"``: one for all edges, one for each edge, or
        one for each feature of edges, which must then be at least 0.

    See Also
    --------
    LinearConstraint, WeightBounds

    Notes
    -----
    In symmetric tables only ``g[a, b]`` with ``a <= b`` is a weight; rows are folded onto these.
    Features must be at least 0, because only sums with non-negative factors keep the inequality.
    Franc [1]_ trains max-sum classifiers in this way.  Schlesinger and Flach [2]_ and Ishikawa [3]_
    show that the best labeling of ordered states is then a minimum cut.

    References
    ----------
    .. [1] V. Franc.  Learning max-sum classifiers.  Lecture slides, Czech Technical University.
    .. [2] D. Schlesinger, B. Flach.  Transforming an arbitrary MinSum problem into a binary one.
       TU Dresden, 2006.
    .. [3] H. Ishikawa.  Exact optimization for Markov random fields with convex priors.  IEEE
       PAMI 25, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.mrf import MRFStructure, grid_edges
    >>> from structsolve.solvers import BCFW, SuperModular
    >>> Y = [np.indices((4, 4)).sum(0).ravel() % 2] * 2                 # chequerboards
    >>> X = [np.eye(2)[y] for y in Y]
    >>> solver = BCFW(constraints=[SuperModular("pair")])
    >>> model = StructuredSVM(MRFStructure(grid_edges(4, 4)), solver=solver, alpha=0.1).fit(X, Y)
    >>> g = model.coef_["pair"]
    >>> bool(g[0, 0] + g[1, 1] - 2 * g[0, 1] > -1e-9)
    True
    """

    def __init__(self, block: str):
        self.block = block

    def rows(self, layout: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the inequalities as rows over the flat w.

        Parameters
        ----------
        layout : WeightLayout

        Returns
        -------
        rows : scipy.sparse CSR of shape (rows, dim)
        lower, upper : ndarray of shape (rows,)
            0 and infinity.

        Raises
        ------
        ValueError
            If the block has no square tables.
        """
        import scipy.sparse as sp  # heavy

        block = layout.block(self.block)
        positions = layout.view(np.arange(layout.dim), self.block)
        unread = layout.unread(self.block)
        if len(block.shape) < 2 or block.shape[-1] != block.shape[-2]:
            raise ValueError(
                f"SuperModular: the block {self.block!r} has shape {tuple(block.shape)}, expected "
                "square tables of scores of state pairs, such as 'pair' of structure 'mrf'"
            )
        K = block.shape[-1]
        if block.symmetric:  # entries below the diagonal share the weights above it
            a, b = np.indices((K, K))
            a, b = np.minimum(a, b), np.maximum(a, b)
            positions, unread = positions[..., a, b], unread[..., a, b]
        columns, used = [], np.ones((*positions.shape[:-2], K - 1, K - 1), dtype=bool)
        for i, j in ((0, 0), (1, 1), (0, 1), (1, 0)):
            columns.append(positions[..., i : K - 1 + i, j : K - 1 + j])
            used &= ~unread[..., i : K - 1 + i, j : K - 1 + j]
        if block.symmetric:  # (b, a) and (a, b) give the same inequality
            used &= np.triu(np.ones((K - 1, K - 1), dtype=bool))
        four = np.stack(columns, axis=-1)[used]
        n = len(four)
        signs = np.tile([1.0, 1.0, -1.0, -1.0], n)
        rows = sp.csr_matrix(
            (signs, (np.repeat(np.arange(n), 4), four.ravel())), shape=(n, layout.dim)
        )
        return rows, np.zeros(n), np.full(n, np.inf)

    def check_examples(self, layout: Any, examples: Any) -> None:
        """Refuse negative edge features, which reverse the inequality of a super-modular table.

        Parameters
        ----------
        layout : WeightLayout
        examples : Examples

        Raises
        ------
        ValueError
            If an edge feature is negative; names the example, the edge and the feature.
        """
        if layout.block(self.block).kind != "edge" or examples.edges is None:
            return
        edges = examples.edges
        if hasattr(edges, "indptr"):
            entries = edges.tocoo()
            wrong = np.flatnonzero(~(entries.data >= 0))
            row, column = entries.row[wrong], entries.col[wrong]
        else:
            row, column = np.nonzero(~(np.asarray(edges) >= 0))
        if not len(row):
            return
        first = int(np.lexsort((column, row))[0])
        e, k = int(row[first]), int(column[first])
        i = int(np.searchsorted(examples.edge_offsets, e, side="right")) - 1
        raise ValueError(
            f"example {i}, edge {e - examples.edge_offsets[i]}: feature {k} is {edges[e, k]:g}; "
            f"SuperModular({self.block!r}) needs edge features of at least 0, because a negative "
            "factor makes a super-modular table sub-modular; shift the features, or replace f by "
            "max(f, 0) and max(-f, 0)"
        )
