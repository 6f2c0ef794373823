"""Compiled objects that no fitted model holds: those of other settings, and of training.

Every class of compiled modules that can be made has an object here, in `extreme`, or in a model of
`seeds`: tests/project/test_fuzz.py says which is missing.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any

import batch_cases
import numpy as np
from batch_cases import network
from python_structures import py_chain

import structsolve
import structsolve.solvers
from structsolve import Problem, TaskLoss, WeightedLabels, registry
from structsolve.algorithms.minimum_cut import CutNetwork
from structsolve.estimators.decode import Batches, Masks
from structsolve.estimators.direct import DirectBest, DirectLabels, DirectMarginals
from structsolve.features._numbering import Names, Numbering
from structsolve.lp import ask_cones, ask_oracle
from structsolve.plugins.dag.svm.sparse_tree import SparseTree
from structsolve.plugins.mrf.decoders import graph_plans
from structsolve.plugins.mrf.exact._search import ExactSearch
from structsolve.plugins.mrf.relaxation._spanning_trees import SpanningTrees
from structsolve.plugins.mrf.relaxation._tree_reweighted import TreeReweightedSums
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.potentials.mixed import MixedPotentials
from structsolve.potentials.model import LinearModel
from structsolve.potentials.shared import SharedPotentials
from structsolve.solvers.run import Start
from structsolve.structure import calls
from structsolve.structure.ask import (
    POWERS,
    ask_loss,
    ask_parts,
    ask_power,
    ask_projection,
    loss_names,
    make_layout,
)  # fmt: skip
from structsolve.structure.losses import LabelCount
from structsolve.surrogates import CutSurrogate, MaxMin

_TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")]
_ORACLES = ("exact", "mincut", "roof-duality", "trws", "expansion", "lp")
#: Settings of structures that bring other operators.
_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "chain": [{"forbidden": [(0, 1)]}, {"transitions": False, "start_end": False}],
    "cky": [{"grammar": True}],
    "dag": [
        {"labels": "single-leaf"}, {"labels": "leaf-union"}, {"roots": "on"},
        {"hierarchy": [*_TREE, ("b", "d")], "labels": "leaf-union"},
        {"hierarchy": [*_TREE, ("b", "d")]},
    ],
    "dependency": [{"projective": True}, {"single_root": False}, {"labelled": True}],
    "factor-graph": [
        {"factors": [(0, 1, 2), (2, 3)], "tables": "per-factor"},
        {"factors": [(0, 2, 1)], "n_states": [2, 3, 1], "oracle": "exact"},
    ],
    "flow": [{"network": network()}],
    "grid": [{"neighbours": 8}, {"directed": True}],
    "mrf": [{"oracle": name} for name in _ORACLES],
    "multilabel": [{"edges": "none"}, {"edges": "full"}, {"edges": "full", "oracle": "lp"}],
    "ordinal": [{"thresholds": True}],
    "semi-markov": [{"max_length": 3}],
    "path": [{"monotone": True}],
    "alignment": [{"kind": "many-to-one"}, {"kind": "ctc"}],
    "permutation": [{"kind": "ranking"}, {"weights": "scores"}, {"weights": "rank:1"}],
}  # fmt: skip


class PlainLoss(TaskLoss):
    """Errors, in Python."""

    def loss(self, space: Any, examples: Any, i: int, truth: Any, label: Any) -> float:
        return float((truth != label).sum())


class PlainMargin(CutSurrogate):
    """A surrogate in Python."""

    def cut(self, task: Any, i: int, theta: Any, truth: Any) -> Any:
        label, _, _ = calls.argmax(task.oracle, i, theta)
        index, value = calls.difference(task.parts, i, truth, label)
        return index, value, calls.loss_value(task.loss, i, truth, label)


def structures() -> list[Any]:
    """Structures with all settings whose examples can be drawn."""
    known = {"dag": {"hierarchy": _TREE}}
    made = []
    for name in registry.default().names("structures"):
        for settings in [{}, *_SETTINGS.get(name, [])]:
            with contextlib.suppress(TypeError, ValueError):  # "functions" cannot do without
                made.append(structsolve.get_structure(name, **{**known.get(name, {}), **settings}))
    # The methods' answers are wrong: refused, if a call gets that far.
    powers = ("argmax_augmented", "relax", "argmax_constrained", "argmax_counts")
    return [*made, py_chain(), py_chain(**dict.fromkeys(powers, lambda *given: None))]


@functools.cache
def _spaces() -> list[tuple[Any, Any]]:
    """Return spaces and a few of their examples."""
    spaces = []
    for structure in structures():
        with contextlib.suppress(NotImplementedError, TypeError, ValueError):
            X, Y = structure.sample(0)
            spaces.append(structure.make_space(X, Y))
            if structure.name in ("chain", "tree"):
                weighted = [WeightedLabels(y, np.arange(len(y)) + 0.5) for y in Y]
                spaces.append(structure.make_space(X, weighted))
    map_ = {"cells": np.ones((2, 3)), "costs": np.ones((2, 3))}
    spaces.append(structsolve.get_structure("path").make_space([map_], [[(0, 0), (0, 1), (1, 2)]]))
    rng = np.random.default_rng(0)
    spaces += [make(rng, 3) for make in batch_cases.KINDS.values()]
    return spaces


def operators(space: Any, examples: Any) -> list[Any]:
    """All operators that a space gives for examples."""
    layout = make_layout(space, examples)
    oracle, parts = ask_oracle(space)(layout), ask_parts(space)(layout)
    made = [layout, oracle, parts, ask_cones(space, oracle, parts)]
    ways = [functools.partial(ask_power, space, power) for power in POWERS]
    ways += [functools.partial(ask_projection, space, p) for p in ("entropy", "euclidean")]
    losses = [*loss_names(space), LabelCount(), PlainLoss()]
    ways += [functools.partial(ask_loss, space, loss) for loss in losses]
    with contextlib.suppress(Exception):  # not every structure has a polytope
        program = ask_oracle(space, "lp")(layout)
        made += [program, ask_cones(space, program, parts), Batches(program, map, 4)]
    for way in ways:
        with contextlib.suppress(Exception):  # not every structure has every power
            made.append(way()(layout))
    return made


def _problems() -> list[Any]:
    """Chains and rows under every surrogate, and each search for those that need one."""
    problems, names = [], registry.default().names("searches")
    for (space, examples), searches in ((chains(), names), (classes(), [])):
        for surrogate in registry.default().names("surrogates"):
            for search in (None, *searches):
                with contextlib.suppress(Exception):  # not every surrogate needs a search
                    settings = {} if search is None else {"search": search}
                    made = registry.default().make("surrogates", surrogate, **settings)
                    problems.append(Problem(space, examples, surrogate=made))
    plain = PlainMargin()
    given = [(chains(), {"surrogate": plain, "loss": loss}) for loss in ("hamming", PlainLoss())]
    given += [(chains(), {"surrogate": MaxMin(geometry=name)}) for name in ("entropy", "euclidean")]
    given.append((next(pair for pair in _spaces() if pair[0].structure.name == "dag"), {}))
    given.append((next(pair for pair in _spaces() if pair[0].separate_parts), {}))
    rows, soft = classes()
    soft.topology["marginals"] = np.full((6, 3), 1 / 3)
    given.append(((rows, soft), {"surrogate": "crf"}))
    return problems + [Problem(*pair, **settings) for pair, settings in given]


def chains() -> tuple[Any, Any]:
    """Short sequences."""
    structure = structsolve.get_structure("chain")
    return structure.make_space(*structure.sample(0))


def classes() -> tuple[Any, Any]:
    """Rows of three classes."""
    rng = np.random.default_rng(0)
    return structsolve.get_structure("multiclass").make_space(
        rng.normal(size=(6, 2)), [0, 1, 2] * 2
    )


def runs(problems: list[Any]) -> list[Any]:
    """Return every solver after a pass over each problem that it supports."""
    bounds = structsolve.solvers.WeightBounds("node", lower=0)
    solvers = [(name, {}) for name in registry.default().names("solvers")]
    solvers += [(name, {"constraints": [bounds]}) for name in ("bcfw", "cutting-plane", "sgd")]
    solvers += [("cutting-plane", {"slack": "n"}), ("bcfw", {"batch": 2}), ("sgd", {"batch": 2})]
    made = []
    for name, settings in solvers:
        for problem in problems:
            with contextlib.suppress(Exception):  # not every solver takes every surrogate
                solver = registry.default().make("solvers", name, **settings)
                run = solver.start(Start(problem, 0.1, np.random.default_rng(0)))
                run.step()
                made.append(run)
    return made


@functools.cache
def objects() -> list[Any]:
    """All of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problems = _problems()
        made = [each for space, examples in _spaces() for each in operators(space, examples)]
        made += problems + runs(problems) + _alone()
    return made


def _alone() -> list[Any]:
    """Return the objects made for one call."""
    one = np.ones(3)
    unary, pair = [[0, 1], [0, 2]], [[[4, 0], [0, 0.5]]]
    tree = SparseTree(np.array([-1, 0, 0], dtype=np.int32), one, one, "hamming", 2)
    chain, rows = (space.layout for space, _ in (chains(), classes()))
    model = GraphModel([2, 2], [[0, 1]], unary, pair)
    short = [
        DirectLabels(LinearModel(space, np.zeros(space.layout.dim)), ask_oracle(space))
        for space, _ in (chains(), classes())
    ]
    space, examples = chains()
    mixed = MixedPotentials(examples, space.layout, np.eye(space.layout.node.shape[-1]))
    ranks, rankings = structsolve.get_structure("permutation", weights="scores").make_space(
        [[1.0], [2.0]], [[0, 1, 2], [2, 0, 1]]
    )
    shared = SharedPotentials(rankings, ranks.layout)
    for kind, bind in (
        (DirectBest, ask_power(space, "kbest")),
        (DirectMarginals, ask_projection(space, "entropy")),
    ):
        short.append(kind(LinearModel(space, np.zeros(space.layout.dim)), bind))
    graphs = structsolve.get_structure("mrf").score_space(2)
    graph = graphs.unpacked_oracle(ask_oracle(graphs))([[0, 1], [1, 2], [2, 0]], 3)
    wide, examples = structsolve.get_structure("mrf").make_space(
        [(np.ones((3, 1)), [[0, 1], [1, 2], [2, 0]])], [[0, 1, 0]]
    )
    layout = make_layout(wide, examples)
    shape = wide.graphs(layout)
    trees = SpanningTrees(shape)
    relaxed = TreeReweightedSums(trees, graph_plans(shape, layout, 0.0), shape, layout)
    return [
        *short, graph, trees, relaxed, mixed, shared, rankings.nodes.table.native,
        CutNetwork(3, [[0, 1], [1, 2]]), model, ExactSearch(model), tree,
        tree.sums, Names(), Numbering(Names()), Masks(chain, {}),
        Masks(rows, {"node": np.zeros((6, 3))}),
    ]  # fmt: skip
