"""The base class of spaces: a structure on given data, how to pack, to unpack and to mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..examples.packed import Examples
from ..examples.stacking import pieces
from ..potentials.weight_layout import WeightLayout
from .space_operators import SpaceOperators

if TYPE_CHECKING:
    from ..protocols import DeviceOperations


class Space(SpaceOperators):
    """A structure on given data: classes, blocks of weights, and how to pack and unpack.

    Parameters
    ----------
    structure : Structure
    layout : WeightLayout

    Attributes
    ----------
    classes_ : ndarray, optional
        Sorted classes, for structures whose labels are made of classes.
    """

    classes_: np.ndarray
    structure: Any
    #: The loss that estimators train with ``loss="auto"``.
    default_loss: Any = "hamming"
    #: The loss of training for the surrogate "margin" there, if another one.
    margin_loss: Any = None
    #: ``alpha="auto"`` is checked on halves of few examples (structsolve/estimators/halves.py).
    checks_alpha: bool = False
    #: Every set of parts of the one row of nodes is the ``mu(y)`` of a label, and there are no
    #: other parts: a loss that decomposes is decided part by part.
    separate_parts: bool = False
    #: X is a list of matrices with a row of features for each node (for single nodes, one matrix),
    #: ``pack()`` checks and stacks them as :func:`~structsolve.examples.packing.stack_rows` does,
    #: and labels are arrays of ``classes_``: predictions then need not pack short examples.
    #: Operators read nothing of examples without edges but their sizes.
    plain_rows: bool = False
    #: Names along axes of the blocks, by the meaning of the axis; axes ``"class"`` have those of
    #: ``classes_``, others without names have numbers.
    axis_names: Mapping[str, Any] = MappingProxyType({})
    #: Axes, with their sizes, that each feature of X has in the rows of blocks of kind "node":
    #: ``{"class": K}`` if row ``f K + k`` belongs to feature f and class k.  Of a space with an
    #: attribute ``intercept`` that is true, the last feature is the constant.
    row_axes: Mapping[str, int] = MappingProxyType({})

    #: A metric along the last axis of the node block, as a symmetric positive definite matrix M of
    #: at most 256 rows: training penalises ``||w M^-1||^2`` of each feature's weights in place of
    #: ``||w||^2``, so that combinations which M shrinks cost more.
    node_mix: np.ndarray | None = None

    #: The space of all columns, if this one has fewer; what its columns stand for, see
    #: :func:`structsolve.structure.used_columns.with_used_columns`.
    whole: Space | None = None
    column_entries: Any
    column_norms: np.ndarray

    def __init__(self, structure: Any, layout: WeightLayout):
        self.structure = structure
        self.layout = layout

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Check X and Y and pack them into contiguous arrays.

        The core handles users' example weights.  It also converts labels and offsets of any integer
        type to the arrays of the compiled loops.

        Parameters
        ----------
        X, Y : data as users give it; Y None at prediction
        unseen : {"error", "extra"}
            Refuse labels that were not seen in training, or map them to one extra state (scoring).

        Returns
        -------
        Examples

        Raises
        ------
        ValueError
            If X or Y does not fit the space; the message names the example.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement pack()")

    def suited_to(self, examples: Examples) -> tuple[Space, Examples]:
        """Return the space, and its examples, with the parameters that training data decide.

        :class:`~structsolve.StructuredSVM` calls it after ``make_space()``, but not with a kernel.
        Where it is not called, such parameters need a meaning of their own.

        Parameters
        ----------
        examples : Examples
            Packed training data, with labels and weights.

        Returns
        -------
        space : Space
            By default this one.
        examples : Examples
        """
        return self, examples

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return examples of given sizes, without features, for scores computed elsewhere.

        Parameters
        ----------
        sizes : int or sequence
            For structures with one row per example, the number of examples; else the sizes of all
            examples, in the structure's units.
        **topology
            Further arguments of the structure: graphs, in the form of X.

        Returns
        -------
        Examples

        Raises
        ------
        ValueError
            If sizes do not fit; the message names the example.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement pack_sizes(), which makes examples without "
            "features; use those of pack()"
        )

    def device_operations(self) -> DeviceOperations | None:
        """Return operations of torch, for layers whose scores lie on a device such as a GPU.

        Returns
        -------
        module or object, or None
            With the functions ``pays``, ``log_partition``, ``best`` and ``score`` of
            ``structsolve/plugins/chain/_device.py``, for padded sequences.  None, the default: the
            layers copy scores to the host.
        """
        return None

    def unpacked_oracle(self, bind: Any) -> Callable[[Any, int], Any] | None:
        """Return a factory of oracles of single small examples that are not packed.

        For the latency of one prediction, where X is a list of pairs ``(matrix, topology)``: the
        matrices and labels must be as ``plain_rows`` says, and there must be no scores of edges.

        Parameters
        ----------
        bind : callable
            ``layout -> oracle`` of packed examples, of whichever plugin gives it: where that is not
            the space's own, the factory must not replace it.

        Returns
        -------
        callable or None
            ``(topology, n_nodes) -> oracle``, whose ``argmax(0, ...)`` labels that example just as
            an oracle of the packed one does; it needs no layout.  The callable returns None for
            examples that must be packed, such as invalid ones.  Here None.
        """
        return None

    def groups(self, examples: Examples, loss: Any) -> list[tuple[Space, Examples, np.ndarray]]:
        """Return groups of parts that no score connects; BCFW trains each by itself.

        The labels of the whole space are all combinations of the groups' labels, and the loss is
        the sum of the groups' losses.

        Parameters
        ----------
        examples : Examples
            With labels.
        loss : str or loss object
            As users give it.

        Returns
        -------
        list of tuple
            For each group its space, the examples with the labels of the group (the same rows of
            features), and an array of int of shape (dim of the group,): the places of its weights
            in those of this space, -1 for padding.  By default [], which means one group.
        """
        return []

    def unpack(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return labels in the form users give Y.

        Parameters
        ----------
        flat : ndarray of int32
            Encoded labels of all examples, concatenated.
        examples : Examples

        Returns
        -------
        list or ndarray
            Here a list of the results of ``unpack_one`` for each example.
        """
        each = pieces(flat, examples.label_offsets)
        return [self.unpack_one(label, examples, i) for i, label in enumerate(each)]

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return one label in the form users give it, for ``predict_kbest``.

        Parameters
        ----------
        label : ndarray of int32
            Encoded.
        examples : Examples
        i : int
            Number of the example that has the label.

        Returns
        -------
        object
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement unpack_one()")

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs.

        Returns
        -------
        state : dict
            JSON values; here ``n_features`` and ``intercept``.
        arrays : dict of str to ndarray
            Here ``classes``, if the space has ``classes_``.
        """
        state = {"n_features": self.layout.n_features, "intercept": self.layout.intercept}
        return state, {"classes": self.classes_} if hasattr(self, "classes_") else {}

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of an example (for tests with few labels).

        Parameters
        ----------
        examples : Examples
        i : int

        Returns
        -------
        ndarray of int32 of shape (number of labels, size of a label)
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement enumerate_labels()")

    def contains(self, label: np.ndarray, examples: Examples, i: int) -> bool:
        """Return whether an encoded label is one of this space.

        Training calls it for every true label; errors name the example.  Override it if ``pack()``
        accepts labels that the oracle never returns, such as label sets beyond a budget.

        Parameters
        ----------
        label : ndarray of int32
            Encoded.
        examples : Examples
        i : int
            Number of the example that has the label.

        Returns
        -------
        bool
            Here always True: ``pack()`` is trusted.
        """
        return True

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse encoded labels that are outside of this space.

        Called with the true labels before training, and with every batch whose labels do not come
        from ``pack()``.  Override it if checks of single labels are too slow.

        Parameters
        ----------
        flat : ndarray of int32
            The labels of all examples, concatenated; each number is a state.
        examples : Examples

        Raises
        ------
        ValueError
            The message names the example; here if :meth:`contains` is False.
        """
        if type(self).contains is Space.contains:
            return
        for i, label in enumerate(pieces(flat, examples.label_offsets)):
            if not self._inside(label, examples, i):
                raise ValueError(
                    f"example {i}: the true label is no label of structure "
                    f"{self.structure.name!r} (contains() is False); correct the label, or leave "
                    "the example out"
                )

    def _inside(self, label: np.ndarray, examples: Examples, i: int) -> bool:
        """Return what contains() answers; an exception, or another answer, names it."""
        name = f"example {i}: contains() of structure {self.structure.name!r}"
        try:
            inside = self.contains(label, examples, i)
        except Exception as error:
            raise ValueError(f"{name} raised {type(error).__name__}: {error}") from error
        if not isinstance(inside, (bool, np.bool_, int)):
            raise TypeError(f"{name} returned {inside!r}, expected a bool")
        return bool(inside)

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return node scores or marginals in a form like Y's.

        Parameters
        ----------
        flat : ndarray of float64 of shape (number of nodes, K)
            Rows of the node block of all examples.
        examples : Examples

        Returns
        -------
        list or ndarray
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement unpack_scores(), which gives node "
            "scores and marginals a form like that of y"
        )

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return additive score masks for hard constraints at prediction.

        Parameters
        ----------
        examples : Examples
        allowed, forbidden : object, optional
            The arguments of ``predict``.

        Returns
        -------
        dict of str to ndarray
            By block name, 0 and -inf.  A shared block's mask has the block's shape, the node
            block's one row per node of all examples.

        Raises
        ------
        ValueError
            If the structure does not support constraints, or they do not fit the examples.
        """
        if allowed is None and forbidden is None:
            return {}
        raise ValueError(
            f"structure {self.structure.name!r} takes neither allowed labels nor forbidden "
            "transitions at prediction"
        )


def inherits(one: Any, base: type, *names: str) -> bool:
    """Return whether an object has the methods of a base class, none overridden.

    Parameters
    ----------
    one : object
    base : type
    *names : str
        Of the methods.

    Returns
    -------
    bool
    """
    own = vars(one)
    return all(getattr(type(one), n) is getattr(base, n) and n not in own for n in names)
