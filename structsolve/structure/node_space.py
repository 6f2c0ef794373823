"""Spaces whose labels give nodes classes: packing, masks of nodes and of transitions."""

from __future__ import annotations

from reprlib import repr as brief
from typing import TYPE_CHECKING, Any

import numpy as np

from ..examples import labels
from ..examples.kinds import one_kind
from ..examples.packed import Examples
from ..examples.stacking import pieces
from ..potentials.weight_layout import WeightLayout
from ..utils.suggest import a_type
from .base import Space, Structure, node_loss
from .weighted_labels import split_weights, weigh_nodes

if TYPE_CHECKING:
    from ..operators import Loss
    from ..protocols import Binder


class NodeSpace(Space):
    """A space whose labels give every node one of ``classes_``; one node block ``(K,)``.

    Chains, plain classes and graphs share it.  Subclasses define how X becomes nodes (``stack``),
    the form of users' labels (``flatten``, ``unpack``), and, if ``classes_`` are not sorted, how
    labels become numbers (``encode``).

    Parameters
    ----------
    structure : Structure
    layout : WeightLayout
    classes : ndarray
        Sorted.
    """

    def __init__(self, structure: Structure, layout: WeightLayout, classes: np.ndarray):
        super().__init__(structure, layout)
        self.classes_ = classes

    def stack(self, X: Any) -> Examples:
        """Pack X.

        Parameters
        ----------
        X : data as users give it

        Returns
        -------
        Examples
            Without labels.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement stack()")

    def flatten(self, Y: Any, offsets: np.ndarray) -> np.ndarray:
        """Return all labels, concatenated, not encoded.

        Parameters
        ----------
        Y : labels as users give them
        offsets : ndarray of int64 of shape (n + 1,)
            Nodes of example i are ``offsets[i]`` to ``offsets[i + 1]``.

        Returns
        -------
        ndarray of shape (number of nodes,)
        """
        return labels.flatten(Y, offsets)

    def encode(self, flat: np.ndarray, offsets: np.ndarray, unseen: str = "error") -> np.ndarray:
        """Return flat labels as numbers of classes.

        Parameters
        ----------
        flat : ndarray
            As ``flatten`` returns it.
        offsets : ndarray of int64 of shape (n + 1,)
        unseen : {"error", "extra"}
            As for ``pack``; the extra state is ``len(classes_)``.

        Returns
        -------
        ndarray of int32
        """
        extra = None if unseen == "error" else len(self.classes_)
        return labels.encode(flat, self.classes_, offsets, extra)

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Pack X and Y; see :meth:`Space.pack`.

        ``X``, ``Y``: label sequences may be :class:`~structsolve.WeightedLabels`.
        """
        examples = self.stack(X)
        if not isinstance(examples, Examples):
            raise TypeError(
                f"structure {self.structure.name!r}: stack() returned {a_type(examples)}, "
                "expected Examples"
            )
        if Y is not None:
            weights = None
            if not self.structure.single_node:
                Y, weights = split_weights(Y, examples.offsets)
            flat = self.flatten(Y, examples.offsets)
            examples.labels = self.encode(flat, examples.offsets, unseen)
            weigh_nodes(examples, weights)
        return examples

    def unpack(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return the classes of all nodes, one array per example.

        See :meth:`structsolve.Space.unpack`. ``flat``: ndarray of int32 of shape (number of
        nodes,).
        """
        return pieces(self.classes_[flat], examples.offsets)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return the classes of one label; for a single node, its class.

        See :meth:`structsolve.Space.unpack_one`.

        Returns
        -------
        ndarray, or class
        """
        return self.classes_[label[0]] if self.structure.single_node else self.classes_[label]

    def make_loss(self, loss: Any) -> Binder[Loss] | None:
        """Return a factory for a plugin's loss, or for a loss of nodes (:func:`node_loss`).

        Parameters
        ----------
        loss : str or object

        Returns
        -------
        callable or None
        """
        declared = super().make_loss(loss)
        return node_loss(self, loss) if declared is None else declared

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return the rows of all nodes, one array per example.

        See :meth:`structsolve.Space.unpack_scores`. ``flat``: ndarray of float64 of shape (number
        of nodes, K).
        """
        return pieces(flat, examples.offsets)

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return those of the ``K ** n_nodes`` labelings of an example that the space contains.

        See :meth:`structsolve.Space.enumerate_labels`.

        Returns
        -------
        ndarray of int32 of shape (number of labels, n_nodes)
        """
        length = int(examples.offsets[i + 1] - examples.offsets[i])
        grid = np.indices((len(self.classes_),) * length, dtype=np.int32)
        labels = np.ascontiguousarray(grid.reshape(length, len(self.classes_) ** length).T)
        if type(self).contains is Space.contains:
            return labels
        return labels[[self._inside(label, examples, i) for label in labels]]

    def allowed_mask(self, allowed: Any, examples: Examples) -> np.ndarray:
        """Return the mask of the node block for allowed labels.

        Parameters
        ----------
        allowed : sequence
            For each example None, or for each of its nodes a list of labels, a boolean for each
            class, or None for all.
        examples : Examples

        Returns
        -------
        ndarray of float64 of shape (number of nodes, K)
            0 if allowed, else -inf.

        Raises
        ------
        ValueError
            If sizes do not fit, a label is unknown, or none is allowed at a node.
        """
        if isinstance(allowed, str) or not hasattr(allowed, "__len__"):
            raise ValueError(f"allowed is {allowed!r}, expected a list with one entry per example")
        if len(allowed) != examples.n:
            raise ValueError(f"allowed has {len(allowed)} entries, expected {examples.n}")
        mask = np.full((int(examples.offsets[-1]), len(self.classes_)), -np.inf)
        row = 0
        for i, rows in enumerate(allowed):
            size = int(examples.offsets[i + 1] - examples.offsets[i])
            if rows is None:
                rows = [None] * size
            sized = hasattr(rows, "__len__") and not isinstance(rows, (str, bytes))
            if not sized or len(rows) != size:
                given = f"{len(rows)} entries" if sized else repr(rows)
                raise ValueError(
                    f"example {i}: allowed has {given} for {size} nodes; expected one "
                    "list of labels (or None for all) per node"
                )
            for v, names in enumerate(rows):
                if names is None:
                    mask[row] = 0
                elif isinstance(names, (str, bytes, dict)) or not hasattr(names, "__iter__"):
                    raise ValueError(
                        f"example {i}, node {v}: allowed is {names!r}, expected a list of labels"
                    )
                else:
                    mask[row, self._picked(list(names), f"example {i}, node {v}: allowed")] = 0
                row += 1
        return mask

    def _picked(self, names: list[Any], where: str) -> np.ndarray:
        """Which classes a node may take, by their names, or by a boolean for each."""
        try:
            named = np.asarray(names)
            given = dict.fromkeys(named.ravel().tolist())
        except (TypeError, ValueError):  # lists among labels
            raise ValueError(f"{where} is {names!r}, expected a list of labels") from None
        if named.dtype == bool and self.classes_.dtype != bool:
            if named.shape != self.classes_.shape:
                raise ValueError(
                    f"{where} has {named.size} booleans, expected one for each of the "
                    f"{len(self.classes_)} classes"
                )
            picked = named
        else:
            picked = np.isin(self.classes_, one_kind(names, where))
            if picked.any() and picked.sum() < len(given):
                known = self.classes_.tolist()
                unknown = next(name for name in given if name not in known)
                raise ValueError(f"{where} names the label {unknown!r}; known are {brief(known)}")
        if not picked.any():
            raise ValueError(
                f"{where} is {names!r}, none of which is a known class; expected at least one"
            )
        return picked

    def transition_masks(
        self, examples: Examples | None, allowed: Any, forbidden: Any, pair: str
    ) -> dict[str, Any]:
        """Return masks of nodes, and of the ``"transition"`` table that all edges share.

        Parameters
        ----------
        examples : Examples, or None without ``allowed``
        allowed : list, optional
            As for :meth:`allowed_mask`.
        forbidden : list of pairs of labels, optional
        pair : str
            Name of a pair in messages.

        Returns
        -------
        dict of str to ndarray
            By block name, 0 and -inf.

        Raises
        ------
        ValueError
            If a constraint does not fit the examples or the structure.
        """
        masks = {}
        if allowed is not None and examples is not None:
            masks["node"] = self.allowed_mask(allowed, examples)
        if forbidden is not None:
            if not self.structure.transitions:
                raise ValueError(
                    f"forbidden transitions need a {self.structure.name} with transitions=True, "
                    "and this one has no transition table"
                )
            if not hasattr(forbidden, "__iter__"):
                raise ValueError(f"forbidden is {forbidden!r}, expected a list of pairs {pair}")
            table = np.zeros((len(self.classes_),) * 2)
            index = {c: k for k, c in enumerate(self.classes_.tolist())}
            for transition in forbidden:
                try:
                    first, second = transition
                    table[index[first], index[second]] = -np.inf
                except (KeyError, TypeError, ValueError):
                    raise ValueError(
                        f"forbidden: found {transition!r}, expected pairs {pair} of known classes "
                        f"{self.classes_.tolist()[:12]}"
                    ) from None
            masks["transition"] = table
        return masks
