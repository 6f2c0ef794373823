"""Operators of a space bound to the sizes of a batch, kept for batches of the same sizes."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import registry
from ..examples.packed import Examples
from ..lp.ask import ask_oracle, without_warm_starts
from ..operators import KBest, Loss, Oracle, Parts, Projection
from ..part_layout import PartLayout
from ..projections.choose import named_projection
from ..structure.ask import ask_loss, ask_parts, ask_power, make_layout
from ..surrogates.base import Surrogate
from ..surrogates.task import Asked, Task, bind_surrogate
from ..utils.parallel import shares
from ..utils.suggest import a_type
from ._loops import check_labels
from ._sheets import first_of_ranges, places_of
from .each_size import OfEachSize, of_each_size
from .scores import Scores

# Batches whose operators are kept, per space.
KEPT = 8
# Sums of the gradients of shared blocks: ranges of examples, independent of the threads.
SUMS = 16


class Binding:
    """Operators for one batch, by their arguments, and memory of threads.

    Parameters
    ----------
    space : Space
    examples : Examples
        Its arrays must not change; see :func:`binding_of`.
    kept : Kept
        The factories of the space, from other batches.
    """

    # Of the class, since each new set of lengths makes an object.
    _bounds: np.ndarray | None = None
    _each: OfEachSize | bool | None = False  # not known yet

    def __init__(self, space: Any, examples: Examples, kept: Kept):
        self.space, self.examples, self._kept = space, examples, kept
        self._layouts: dict[bool, PartLayout] = {}
        self.version, self.rooms = kept.version, kept.rooms
        self._bound: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def _layout(self, training: bool) -> PartLayout:
        # A layout takes longer than its use, so only that of the operators asked for is made.
        if training not in self._layouts:
            self._layouts[training] = make_layout(self.space, self.examples, training)
        return self._layouts[training]

    def _of_each_size(self) -> Any:
        if self._each is False:
            self._each = of_each_size(self.space, self.examples, self._kept)
        return self._each

    def named(self, call: Callable[[Any], Any], bind: Callable[[], Any], bound: Any = None) -> Any:
        """Return a call's result; errors by operators of each size come again, naming examples.

        Parameters
        ----------
        call : callable
            Takes what is bound.
        bind : callable
            Binds it, after an error to this batch alone.
        bound : object, optional
            What it bound before.

        Returns
        -------
        object
        """
        try:
            return call(bind() if bound is None else bound)
        except ValueError:
            each, self._each = self._each, None
            if not each:
                raise
        return call(bind())

    @property
    def layout(self) -> PartLayout:
        """The sizes of the examples: a layout of any operator."""
        return self._layout(True in self._layouts)

    @property
    def places(self) -> Any:
        """The positions of blocks in theta, which all batches of the space share."""
        kept = self._kept
        return kept.once("places", lambda: places_of(self.layout, self.space.layout.blocks))

    @property
    def bounds(self) -> np.ndarray:
        """First example of each range whose gradients of shared blocks have a sum, and the end."""
        if self._bounds is None:
            self._bounds = first_of_ranges(self.examples.offsets, shares(SUMS, taper=True))
        return self._bounds

    def oracle(self, oracle: Any = None) -> Oracle:
        """Return the oracle for prediction.

        Parameters
        ----------
        oracle : str or structsolve.lp.Backend, optional
            See :func:`structsolve.batch.argmax`.

        Returns
        -------
        Oracle
        """
        each = self._of_each_size() if oracle is None else None
        known: Oracle | None = None if each is None else each.oracle()
        if known is not None:
            return known
        key = "oracle", fingerprint(oracle)
        if key not in self._bound:
            bind = self._kept.once(key, lambda: ask_oracle(self.space, _cold(oracle)))
            self._bound[key] = bind(self._layout(False))
        return self._bound[key]

    def parts(self) -> Parts:
        """Return the parts of labels.

        Returns
        -------
        Parts
        """
        if "parts" not in self._bound:
            self._bound["parts"] = ask_parts(self.space)(self._layout(False))
        return self._bound["parts"]

    def loss(self, loss: Any) -> Loss:
        """Return a task loss.

        Parameters
        ----------
        loss : str or loss object

        Returns
        -------
        Loss

        Raises
        ------
        ValueError
            If the structure does not have it.
        """
        key = "loss", fingerprint(loss)
        if key not in self._bound:
            bind = self._kept.once(key, lambda: ask_loss(self.space, loss))
            self._bound[key] = bind(self._layout(False))
        return self._bound[key]

    def kbest(self) -> KBest:
        """Return the operator of the k best labels.

        Returns
        -------
        KBest

        Raises
        ------
        ValueError
            Where the structure has none of these examples.
        """
        if "kbest" not in self._bound:
            bind = self._kept.once("kbest", lambda: ask_power(self.space, "kbest"))
            bound = None if bind is None else bind(self._layout(False))
            if bound is None:
                why = getattr(self.space, "no_powers", {}).get("kbest", "")
                raise ValueError(
                    f"structure {self.space.structure.name!r} cannot list the k best labels"
                    f"{': ' if why else ''}{why}"
                )
            self._bound["kbest"] = bound
        return self._bound["kbest"]

    def projection(self, name: str) -> Projection:
        """Return a projection.

        Parameters
        ----------
        name : str
            "entropy", "euclidean", or what plugins name.

        Returns
        -------
        Projection

        Raises
        ------
        ValueError
            Where the structure has none of these examples.
        """
        key = "projection", name
        if key not in self._bound:
            bind = self._kept.once(key, lambda: named_projection(self.space, name))
            self._bound[key] = bind(self._layout(False))
        return self._bound[key]

    def surrogate(self, surrogate: Any, loss: Any, oracle: Any, labels: np.ndarray) -> Surrogate:
        """Return a surrogate, and check its true labels.

        Most surrogates are bound without labels.  Surrogates that read their task's labels are
        bound to each set of labels.

        Parameters
        ----------
        surrogate : str or surrogate object
        loss : str or loss object
        oracle : str or structsolve.lp.Backend, or None
        labels : ndarray of int32

        Returns
        -------
        Surrogate

        Raises
        ------
        ValueError
            If they do not fit together, or naming the example whose label is wrong.
        """
        if oracle is None and isinstance(surrogate, str) and isinstance(loss, str):
            each = self._of_each_size()
            known = None if each is None else each.surrogate(surrogate, loss)
            if known is not None:
                check_labels(self.layout, labels, known[0])
                self.space.check_labels(labels, self.examples)
                return known[1]
        key = "surrogate", fingerprint(surrogate), fingerprint(loss), fingerprint(oracle)
        with self._lock:
            return self._surrogate(key, surrogate, loss, oracle, labels)

    def _surrogate(
        self, key: Any, surrogate: Any, loss: Any, oracle: Any, labels: np.ndarray
    ) -> Surrogate:
        task, bound = self._bound.get(key, (None, None))
        if task is None:
            asked = self._kept.once(key[2:], lambda: Asked(self.space, loss, _cold(oracle)))
            layout = self._layout(True)
            task = _LabelledTask(self.space, self.examples, loss, oracle, layout, asked)
        check_labels(task.layout, labels, task.parts.n_states)
        task.loss.check_truths(labels)
        self.space.check_labels(labels, self.examples)
        if bound is not None and not task.reads_labels:
            return bound
        if bound is not None and np.array_equal(task.own_labels, labels):
            return bound
        made = self._kept.once(key[:2], lambda: _made(surrogate))
        task.own_labels, task.reads_labels = labels, False
        bound = bind_surrogate(made, task)
        self._bound[key] = task, bound
        return bound


class _LabelledTask(Task):
    """A task with the labels of one call, which records whether they were read."""

    own_labels: np.ndarray | None = None
    reads_labels = False

    @property
    def labels(self) -> np.ndarray | None:
        if not self.reads_labels and self.own_labels is not None:
            self.own_labels, self.reads_labels = self.own_labels.copy(), True
        return self.own_labels

    @labels.setter
    def labels(self, labels: np.ndarray | None) -> None:
        self.own_labels = labels


def _made(surrogate: Any) -> Any:
    """Return a surrogate object whose answers do not depend on earlier ones."""
    surrogate = registry.default().object_of("surrogates", surrogate)
    if getattr(surrogate, "warm_start", False):
        surrogate = copy.copy(surrogate)
        surrogate.warm_start = False
    return surrogate


def _cold(oracle: Any) -> Any:
    """Return a backend of linear programs whose answers do not depend on earlier ones."""
    return None if oracle is None else without_warm_starts(oracle)


class Kept:
    """Operators of a space, and the bindings of its last batches.

    Copies and pickles of it are empty.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bindings: OrderedDict[Any, Binding] = OrderedDict()
        self.asked: dict[Any, Any] = {}
        # Free memory of threads, for all batches: those of new sizes need no other.
        self.rooms: list[Any] = []
        self.version = registry.default().version

    def __reduce__(self) -> Any:
        return Kept, ()

    def once(self, key: Any, ask: Callable[[], Any]) -> Any:
        """Return a cached result; the first call computes it.

        Parameters
        ----------
        key : hashable
        ask : callable

        Returns
        -------
        object
        """
        if key not in self.asked:
            self.asked[key] = ask()
        return self.asked[key]

    def refresh(self, version: int) -> None:
        """Clear the cache if the set of plugins has changed.

        Parameters
        ----------
        version : int
            The registry's.
        """
        if version != self.version:
            with self.lock:
                self.version = version
                self.bindings.clear()
                self.asked = {}


def binding_of(space: Any, scores: Any) -> Binding:
    """Return the binding of scores' examples; the last few batches of each space are cached.

    Batches are equal if their sizes and graphs are equal.

    Parameters
    ----------
    space : Space
    scores : Scores

    Returns
    -------
    Binding

    Raises
    ------
    TypeError
        If ``scores`` are none, or ``scores.examples``.
    """
    if not isinstance(scores, Scores):
        raise TypeError(f"scores is {a_type(scores)}, expected structsolve.batch.Scores")
    kept: Kept = vars(space).get("_batches") or vars(space).setdefault("_batches", Kept())
    places, examples = scores.places, scores.examples
    kept.refresh(registry.default().version)
    if places is not None and places.space is space:
        binding: Binding | None = places.binding
        if binding is None or binding.version != kept.version:
            binding = places.binding = Binding(space, examples, kept)
        return binding
    if not isinstance(examples, Examples):
        raise TypeError(
            f"scores: examples is {a_type(examples)}, expected Examples: sizes and "
            "graphs, as pack_sizes() of the space gives them"
        )
    key = (
        fingerprint(examples.offsets),
        fingerprint(examples.edge_offsets),
        None if examples.label_offsets is examples.offsets else fingerprint(examples.label_offsets),
        fingerprint(examples.topology) if examples.topology else None,
    )
    with kept.lock:
        binding = kept.bindings.get(key)
        if binding is not None:
            kept.bindings.move_to_end(key)
            return binding
    binding = Binding(space, _sizes_alone(examples), kept)
    with kept.lock:
        kept.bindings[key] = binding
        while len(kept.bindings) > KEPT:
            kept.bindings.popitem(last=False)
    return binding


def _sizes_alone(examples: Examples) -> Examples:
    """Return examples without features and labels, with private arrays."""
    own = Examples(
        np.array(examples.offsets),
        edge_offsets=None if examples.edge_offsets is None else np.array(examples.edge_offsets),
        topology={
            name: np.array(value) if isinstance(value, np.ndarray) else value
            for name, value in examples.topology.items()
        },
    )
    if examples.label_offsets is not examples.offsets:
        own.label_offsets = np.array(examples.label_offsets)
    return own


class _Same:
    """An object that equals only itself; it is kept, so no other object gets its id."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def fingerprint(value: Any) -> Any:
    """Return a hashable object that is equal for equal values.

    Parameters
    ----------
    value : object
        Arrays, numbers, strings and containers of them; objects with parameters by name
        (:class:`structsolve.utils.params.Params`); of others it is the object itself that counts.

    Returns
    -------
    hashable
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return type(value), value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufSU":
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return type(value), *map(fingerprint, value)
    if isinstance(value, dict):
        return dict, *((name, fingerprint(one)) for name, one in value.items())
    if hasattr(value, "get_params"):
        return type(value), fingerprint(value.get_params(deep=False))
    return _Same(value)
