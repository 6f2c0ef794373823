"""Indicators of training labels: their weighted averages, and labels of least risk."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.lp.ask import ask_oracle
from structsolve.plugins.risk._decode import decode_scores, encoded, label_costs, risk_scores
from structsolve.plugins.risk.shapes import (
    counts_of,
    refuse_losses,
    refuse_parts,
    refuse_sizes,
    refuse_weights,
)
from structsolve.structure.ask import ask_loss, ask_parts, loss_advice, make_layout
from structsolve.structure.loss_values import losses
from structsolve.utils.suggest import a_type

# Maximum bytes of averages in memory.
AVERAGE_BYTES = 1 << 26


class PartTargets:
    """Indicators ``mu(y_i)`` of a structure's labels, under a loss that is linear in them.

    ``sum_i w_i L(y, y_i) = <mu(y), A sum_i w_i mu(y_i)>``: weights enter through one vector, and
    the structure's oracle finds the best y.

    Parameters
    ----------
    space : Space
    examples : Examples
        Training examples, with labels.
    loss : str or loss object

    Raises
    ------
    ValueError
        If the loss is not linear in the indicators of both labels, or examples differ in their
        numbers of nodes or edges, in what these are, or in their weights (the first is named).
    """

    def __init__(self, space: Any, examples: Examples, loss: Any):
        from scipy.sparse import csr_matrix  # heavy

        self.space, self.examples, self.loss_given = space, examples, loss
        counts = counts_of(examples)
        self.sizes = tuple(int(count[0]) for _, count in counts)
        refuse_sizes(
            counts,
            self.sizes,
            "example 0 has {}; expected examples of one shape: parts of different nodes cannot be "
            "averaged",
        )
        refuse_weights(examples, examples, "example 0")
        if not self.loss.has_costs:
            raise ValueError(
                f"loss {loss!r} of structure {space.structure.name!r} is not linear in the parts "
                "of both labels, so that a weighted sum of it cannot be minimised by the "
                f"structure's oracle; {loss_advice(space, self.layout, lambda one: one.has_costs)}"
            )
        self.size = space.layout.theta_size(*self.sizes[:2])
        self.check_parts(examples)
        refuse_losses(self.loss, loss, examples, self.size)
        parts = ask_parts(space)(self.layout)
        data, indices, indptr = encoded(parts, examples.labels)
        if indices.size and (indices.min() < 0 or indices.max() >= self.size):
            raise ValueError("a label has parts beyond those of the structure")
        self.mu = csr_matrix((data, indices, indptr), shape=(examples.n, self.size))

    # Operators and their factories are made on demand; pickles omit them.

    @cached_property
    def layout(self) -> Any:
        """The PartLayout of the training examples."""
        return make_layout(self.space, self.examples, training=True)

    @cached_property
    def loss(self) -> Any:
        """The native loss, bound to the training examples."""
        loss = ask_loss(self.space, self.loss_given)(self.layout)
        loss.check_truths(self.examples.labels)
        return loss

    @cached_property
    def _bind_oracle(self) -> Any:
        return ask_oracle(self.space)

    def __getstate__(self) -> dict[str, Any]:
        made = ("layout", "loss", "_bind_oracle")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @property
    def n(self) -> int:
        """Number of training examples."""
        return self.examples.n

    @cached_property
    def mu_and_one(self) -> Any:
        """The indicators and a last column of ones, whose average is the sum of the weights."""
        from scipy.sparse import csr_matrix, hstack  # heavy

        return hstack([self.mu, csr_matrix(np.ones((self.n, 1)))]).tocsr()

    def scores(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return part scores and constants of the risks that the weights estimate.

        The risk of y is ``constant - <theta, mu(y)>``.

        Parameters
        ----------
        weights : ndarray of shape (t, n)
            Weights of the training examples at t examples.

        Returns
        -------
        theta : ndarray of shape (t, size of theta)
        constants : ndarray of shape (t,)
        """
        return self.scores_of((self.mu.T @ weights.T).T, weights.sum(axis=1))

    def scores_of(self, nu: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return part scores and constants from averages; see :meth:`scores`.

        Parameters
        ----------
        nu : ndarray of shape (t, size of theta)
            Weighted sums of the indicators.
        total : ndarray of shape (t,)
            Sums of the weights.

        Returns
        -------
        theta : ndarray of shape (t, size of theta)
        constants : ndarray of shape (t,)
        """
        return risk_scores(self.loss, np.ascontiguousarray(nu), np.ascontiguousarray(total))

    def costs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the cost of each part against each training label, and constants.

        Returns
        -------
        costs : ndarray of shape (n, size of theta)
        constants : ndarray of shape (n,)
        """
        return label_costs(self.loss, self.examples.labels, self.size)

    def check_shape(self, examples: Examples) -> None:
        """Refuse new examples of another shape than the training examples.

        Parameters
        ----------
        examples : Examples

        Raises
        ------
        ValueError
            The message names the first example with another number of nodes or edges, or others.
        """
        refuse_sizes(
            counts_of(examples),
            self.sizes,
            "expected {} as in training: labels of different shapes have no average",
        )
        self.check_parts(examples)

    def check_parts(self, examples: Examples) -> None:
        """Refuse examples whose nodes or edges are others than those of the first of training.

        Parameters
        ----------
        examples : Examples
            Of the shape of the training examples.

        Raises
        ------
        ValueError
            The message names the first example that differs.
        """
        theta, _ = risk_scores(self.loss, np.ones((1, self.size)), np.ones(1))
        edges = bool(theta[0, self.space.layout.theta_size(self.sizes[0], 0) :].any())
        refuse_parts(examples, self.examples, edges)

    def decode(
        self, scores: Any, examples: Examples, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of least risk, one after the other, and their risks.

        Parameters
        ----------
        scores : callable
            Called with first and last; returns part scores and constants of the examples
            ``first`` to ``last - 1``.
        examples : Examples
            The examples to label.
        n_jobs : int or None
            Threads.

        Returns
        -------
        labels : ndarray of int32
        risks : ndarray of shape (n,)
        """
        oracle = self._bind_oracle(make_layout(self.space, replace(examples, labels=None)))
        together = max(1, AVERAGE_BYTES // (8 * max(self.size, self.n)))
        labels, risks = [], []
        for first in range(0, examples.n, together):
            theta, constants = scores(first, min(first + together, examples.n))
            some, values = decode_scores(oracle, theta, first, n_jobs)
            labels.append(some)
            risks.append(constants - values)
        return np.concatenate(labels), np.concatenate(risks)

    def unpack(self, labels: np.ndarray, examples: Examples) -> Any:
        """Return decoded labels in the form of ``y``.

        Parameters
        ----------
        labels : ndarray of int32
            From :meth:`decode`.
        examples : Examples

        Returns
        -------
        Labels in the form of ``y``.
        """
        return self.space.unpack(labels, examples)

    def losses(self, labels: np.ndarray) -> np.ndarray:
        """Return the losses of decoded labels against the training labels.

        Parameters
        ----------
        labels : ndarray of int32
            One label per training example, one after the other.

        Returns
        -------
        ndarray of shape (n,)
        """
        return losses(self.loss, self.examples.labels, labels)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the training labels, for a model file.

        Returns
        -------
        meta : dict
        arrays : dict of str to ndarray

        Raises
        ------
        ValueError
            If the structure keeps data that files cannot hold.
        """
        examples = self.examples
        meta: dict[str, Any] = {}
        names = ("labels", "offsets", "label_offsets", "edge_offsets")
        arrays = {name: getattr(examples, name) for name in names}
        if examples.edge_offsets is None:
            del arrays["edge_offsets"]
        for name, value in examples.topology.items():
            if isinstance(value, np.ndarray):
                arrays[f"topology_{name}"] = value
            elif value is None or isinstance(value, (bool, int, float, str)):
                meta[name] = value
            else:
                raise ValueError(
                    f"structure {self.space.structure.name!r} keeps {a_type(value)} per "
                    "data set, which model files do not hold"
                )
        return meta, arrays

    @classmethod
    def of_state(
        cls, space: Any, loss: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> PartTargets:
        """Return the targets of :meth:`state`.

        Parameters
        ----------
        space : Space
        loss : str or loss object
        meta : dict
        arrays : dict of str to ndarray

        Returns
        -------
        PartTargets

        Raises
        ------
        ValueError
            If the arrays do not fit together.
        """
        _check_state(arrays)
        topology = dict(meta)
        for name, value in arrays.items():
            if name.startswith("topology_"):
                topology[name.removeprefix("topology_")] = value
        examples = Examples(
            arrays["offsets"],
            labels=arrays["labels"],
            label_offsets=arrays["label_offsets"],
            edge_offsets=arrays.get("edge_offsets"),
            sample_weight=np.ones(len(arrays["offsets"]) - 1),
            topology=topology,
        )
        # Labels index tables: those of a damaged file must be within range.
        n_states = ask_parts(space)(make_layout(space, examples)).n_states
        for i in range(examples.n if n_states else 0):
            if (examples.label(i) >= n_states).any():
                raise ValueError(f"example {i}: found a label beyond those of the structure")
        return cls(space, examples, loss)


def _check_state(arrays: dict[str, np.ndarray]) -> None:
    """Refuse labels and offsets of a file that do not fit each other."""
    for name in ("offsets", "label_offsets", "edge_offsets"):
        given = arrays.get(name)
        if given is not None and (
            given.ndim != 1 or not len(given) or given[0] != 0 or (np.diff(given) < 0).any()
        ):
            raise ValueError(f"its {name} are no valid offsets")
    labels, ends = arrays["labels"], arrays["label_offsets"]
    if (
        labels.shape != (int(ends[-1]),)
        or len(ends) != len(arrays["offsets"])
        or (labels < 0).any()
    ):
        raise ValueError("its labels do not fit their offsets")


def example_rows(kernel: Any, examples: Examples, dense: bool) -> Any:
    """Return one row of features per example: its nodes' features, concatenated.

    Parameters
    ----------
    kernel : Kernel
    examples : Examples
        All with the same number of nodes.
    dense : bool
        Whether users gave dense features.

    Returns
    -------
    ndarray or CSR of float64 of shape (n, nodes * n_features)

    Raises
    ------
    ValueError
        If there are no features, or several rows of kernel values per example.
    """
    if examples.nodes is None:
        raise ValueError("X has no node features, which the weights are computed from")
    X = kernel.rows(examples.nodes, examples.offsets, dense or kernel.precomputed)
    nodes = X.shape[0] // max(examples.n, 1)
    if nodes == 1:
        return X
    if kernel.precomputed:
        raise ValueError(
            f"kernel='precomputed': found {nodes} nodes per example, expected one row of kernel "
            "values per example"
        )
    reshaped = X.reshape((examples.n, nodes * X.shape[1]))
    return reshaped.tocsr() if hasattr(reshaped, "tocsr") else reshaped
