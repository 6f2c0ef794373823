"""The powers of each structure, as listed in docs/predicting.rst, and errors for missing ones."""

import numpy as np
import pytest
from checks import refused
from outside_cases import TREE, network

from structsolve import StructuredSVM, get_structure, registry
from structsolve.structure.ask import ask_power, make_layout
from structsolve.surrogates import Slack
from structsolve.surrogates.task import Task

# Nodes with several parents.
GRAPH = {"a": ["c", "d"], "b": ["d", "e"], "c": ["f", "g"], "d": ["g", "h"]}
BOTH, KBEST, NONE = {"kbest", "max-marginals"}, {"kbest"}, set()
CASES = [
    ("chain", {}, BOTH),
    ("tree", {}, BOTH),
    ("multiclass", {}, BOTH),
    ("ordinal", {}, BOTH),
    ("ordinal", {"thresholds": True}, KBEST),
    ("multilabel", {}, BOTH),
    ("multilabel", {"oracle": "trws"}, {"max-marginals"}),
    ("mrf", {}, BOTH),
    ("mrf", {"oracle": "lp"}, NONE),
    ("factor-graph", {"oracle": "exact"}, BOTH),
    ("factor-graph", {"oracle": "trws"}, NONE),
    ("mrf", {"oracle": "trws"}, NONE),
    ("permutation", {"kind": "ranking"}, BOTH),
    ("permutation", {"kind": "matching"}, BOTH),
    ("semi-markov", {}, KBEST),
    ("alignment", {}, KBEST),
    ("dependency", {"projective": True}, KBEST),
    ("cky", {}, KBEST),
    ("dependency", {"projective": False}, KBEST),
    ("flow", {"network": network()}, KBEST),
    ("dag", {"hierarchy": TREE, "labels": "leaf-union"}, BOTH),
    ("dag", {"hierarchy": GRAPH, "labels": "closed"}, BOTH),
    ("dag", {"hierarchy": GRAPH, "labels": "leaf-union"}, NONE),
    ("dag", {"hierarchy": GRAPH, "labels": "single-leaf"}, BOTH),
]


@pytest.mark.parametrize("name, params, powers", CASES)
def test_powers(name, params, powers):
    structure = registry.default().find("structures", name).factory(**params)
    X, Y = structure.sample(0, n=6, size=4)
    space, examples = structure.make_space(X, Y)
    layout = make_layout(space, examples)
    binds = {power: ask_power(space, power) for power in BOTH}
    given = {power for power, bind in binds.items() if bind and bind(layout) is not None}
    assert given == powers
    # The 0-1 loss needs only the k best if it does not decompose.
    task = Task(space, examples, "zero-one")
    if "kbest" in powers:
        assert Slack(search="exact").bind(task).exact
    else:
        with pytest.raises(ValueError, match="search 'exact' needs|k-best"):
            Slack(search="exact").bind(task)


def test_missing_powers_say_why():
    structure = get_structure("dag", hierarchy=GRAPH, labels="leaf-union")
    X, Y = structure.sample(0, n=6)
    model = StructuredSVM(structure, tol=1, max_iter=1).fit(X, Y)
    refused("no k-best power: .* integer program", model.predict_kbest, X, 2)
    refused("does not give: .* would take one per label", model.decision_function, X)
    graph = get_structure("mrf", edges=[[0, 1], [1, 2], [2, 0]], oracle="trws")
    X, Y = np.zeros((4, 3, 1)), np.eye(4, 3, dtype=int)
    model = StructuredSVM(graph, tol=1, max_iter=1).fit(X, Y)
    refused("no k-best power: it needs an exact oracle", model.predict_kbest, X, 2)
    refused("does not give: it needs an exact oracle", model.decision_function, X)
