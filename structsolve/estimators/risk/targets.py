"""What is averaged over the training labels, and how an average becomes a label."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ...examples.packed import Examples
from ...lp.ask import ask_oracle
from ...structure.ask import ask_loss, ask_parts, make_layout

# Bytes of averages that are held at a time.
CHUNK_BYTES = 1 << 26


class PartTargets:
    """Indicators ``mu(y_i)`` of a structure's labels, under a loss that is linear in them.

    ``sum_i w_i L(y, y_i) = <mu(y), A sum_i w_i mu(y_i)>``: weights enter through one vector, and
    the structure's own oracle finds the best y.

    Parameters
    ----------
    space : Space
    examples : Examples
        Training examples, with labels.
    loss : str or loss object
    """

    def __init__(self, space: Any, examples: Examples, loss: Any):
        from scipy.sparse import csr_matrix

        from ._decode import encoded

        self.space, self.examples, self.loss_given = space, examples, loss
        self.sizes = shape_of(examples)
        if not self.loss.has_costs:
            raise ValueError(
                f"loss {loss!r} of structure {space.structure.name!r} is not linear in the parts "
                "of both labels, so that a weighted sum of it cannot be minimised by the "
                "structure's oracle; use a loss that is, such as 'hamming'"
            )
        self.size = space.layout.theta_size(*self.sizes)
        parts = ask_parts(space)(self.layout)
        data, indices, indptr = encoded(parts, examples.labels)
        if indices.size and (indices.min() < 0 or indices.max() >= self.size):
            raise ValueError("a label has parts beyond those of the structure")
        self.mu = csr_matrix((data, indices, indptr), shape=(examples.n, self.size))

    # Operators, and what binds them, are made when they are needed: pickles go without them.

    @cached_property
    def layout(self) -> Any:
        """Where the parts of the training examples lie."""
        return make_layout(self.space, self.examples)

    @cached_property
    def loss(self) -> Any:
        """The native loss of the training examples."""
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
        """The indicators with a last column of ones: their averages are those of the weights."""
        from scipy.sparse import csr_matrix, hstack

        return hstack([self.mu, csr_matrix(np.ones((self.n, 1)))]).tocsr()

    def scores(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return part scores, and constants, of the risk that rows of weights estimate."""
        return self.scores_of((self.mu.T @ weights.T).T, weights.sum(axis=1))

    def scores_of(self, nu: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of weighted sums of the indicators, and the sums of the weights."""
        from ._decode import risk_scores

        return risk_scores(self.loss, np.ascontiguousarray(nu), np.ascontiguousarray(total))

    def costs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what each part costs against each training label, and constants."""
        from ._decode import label_costs

        return label_costs(self.loss, self.examples.labels, self.size)

    def check_shape(self, examples: Examples) -> None:
        """Refuse new examples of another shape than the training examples."""
        for what, offsets, expected in (
            ("nodes", examples.offsets, self.sizes[0]),
            ("edges", examples.edge_offsets, self.sizes[1]),
        ):
            counts = np.zeros(1) if offsets is None else np.diff(offsets)
            wrong = np.flatnonzero(counts != expected)
            if wrong.size:
                raise ValueError(
                    f"example {wrong[0]}: found {counts[wrong[0]]} {what}, expected {expected} as "
                    "in training: labels of other shapes have no average"
                )

    def rows_together(self) -> int:
        """Return how many rows of scores to hold at a time."""
        return max(1, CHUNK_BYTES // (8 * max(self.size, self.n)))

    def decode(
        self, scores: Any, examples: Examples, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of least risk, one after the other, and the risks.

        Parameters
        ----------
        scores : callable
            Gives part scores and constants of the examples ``first .. last - 1``.
        """
        from ._decode import decode_scores

        oracle = self._bind_oracle(make_layout(self.space, replace(examples, labels=None)))
        labels, risks = [], []
        for first in range(0, examples.n, self.rows_together()):
            last = min(first + self.rows_together(), examples.n)
            theta, constants = scores(first, last)
            some, values = decode_scores(oracle, theta, first, n_jobs)
            labels.append(some)
            risks.append(constants - values)
        return np.concatenate(labels), np.concatenate(risks)

    def unpack(self, labels: np.ndarray, examples: Examples) -> Any:
        """Return decoded labels in the form users give y."""
        return self.space.unpack(labels, examples)

    def losses(self, labels: np.ndarray) -> np.ndarray:
        """Return the losses of decoded labels against the training labels."""
        from ...structure.loss_values import losses

        return losses(self.loss, self.examples.labels, labels)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the training labels, for a model file."""
        examples = self.examples
        meta: dict[str, Any] = {}
        arrays = {"labels": examples.labels, "offsets": examples.offsets}
        arrays["label_offsets"] = examples.label_offsets
        if examples.edge_offsets is not None:
            arrays["edge_offsets"] = examples.edge_offsets
        for name, value in examples.topology.items():
            if isinstance(value, np.ndarray):
                arrays[f"topology_{name}"] = value
            elif value is None or isinstance(value, (bool, int, float, str)):
                meta[name] = value
            else:
                raise ValueError(
                    f"structure {self.space.structure.name!r} keeps a {type(value).__name__} per "
                    "data set, which model files do not hold"
                )
        return meta, arrays

    @classmethod
    def of_state(
        cls, space: Any, loss: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> PartTargets:
        """Rebuild targets from :meth:`state`."""
        check_state(arrays)
        topology = dict(meta)
        for name, value in arrays.items():
            if name.startswith("topology_"):
                topology[name.removeprefix("topology_")] = value
        examples = Examples(
            arrays["offsets"],
            None,
            arrays["labels"],
            arrays["label_offsets"],
            arrays.get("edge_offsets"),
            None,
            np.ones(len(arrays["offsets"]) - 1),
            topology,
        )
        # The states of labels index tables: a damaged file must not.
        n_states = ask_parts(space)(make_layout(space, examples)).n_states
        for i in range(examples.n if n_states else 0):
            if (examples.label(i) >= n_states).any():
                raise ValueError(f"example {i}: found a label beyond those of the structure")
        return cls(space, examples, loss)


def check_state(arrays: dict[str, np.ndarray]) -> None:
    """Refuse labels and offsets of a file that do not fit each other."""
    for name in ("offsets", "label_offsets", "edge_offsets"):
        given = arrays.get(name)
        if given is not None and (
            given.ndim != 1 or not len(given) or given[0] != 0 or (np.diff(given) < 0).any()
        ):
            raise ValueError(f"its {name} are no offsets")
    labels, ends = arrays["labels"], arrays["label_offsets"]
    if labels.dtype != np.int32 or labels.shape != (int(ends[-1]),):
        raise ValueError("its labels do not fit their offsets")
    if len(ends) != len(arrays["offsets"]) or (labels < 0).any():
        raise ValueError("its labels do not fit their offsets")


def shape_of(examples: Examples) -> tuple[int, int]:
    """Return the numbers of nodes and edges that all examples have; refuse several shapes."""
    found = []
    for what, offsets in (("nodes", examples.offsets), ("edges", examples.edge_offsets)):
        counts = np.zeros(1, dtype=np.int64) if offsets is None else np.diff(offsets)
        wrong = np.flatnonzero(counts != counts[0])
        if wrong.size:
            raise ValueError(
                f"example {wrong[0]}: found {counts[wrong[0]]} {what}, example 0 has {counts[0]}; "
                "expected examples of one shape: parts of other nodes cannot be averaged"
            )
        found.append(int(counts[0]))
    return found[0], found[1]


def example_rows(kernel: Any, examples: Examples, dense: bool) -> Any:
    """Return one row of features per example: those of its nodes, one after the other."""
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
