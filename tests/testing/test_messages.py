"""Everything that a message calls known, expected or advised is so."""

import re

import networkx as nx
import numpy as np
import pytest
from checks import plugged, plugin_of, refused
from python_structures import PyChainStructure, SubsetStructure, py_chain

from structsolve import CostMatrix, Named, StructuredSVM, get_structure, registry
from structsolve.examples.labels import first_difference
from structsolve.structure.ask import ask_loss, loss_names, make_layout
from structsolve.surrogates.task import Task
from structsolve.testing import BrokenPromise
from structsolve.testing._case import Case
from structsolve.utils.params import Params

TREE = nx.DiGraph([("all", "a"), ("all", "b"), ("a", "c"), ("a", "d")])
STRUCTURES = {
    "chain": {},
    "tree": {},
    "mrf": {},
    "grid": {},
    "multiclass": {},
    "multilabel": {},
    "ordinal": {},
    "permutation": {},
    "dependency": {},
    "cky": {},
    "dag": {"hierarchy": TREE},
    "dag-leaf": {"hierarchy": TREE, "labels": "single-leaf"},
    "python": PyChainStructure(),
    "functions": SubsetStructure(),
    "own-hamming": py_chain(
        loss=lambda self, examples, i, truth, label: float((truth != label).any()),
        loss_averaged=True,
        make_loss=lambda self, loss: None,
    ),
}


class Strange(Params):
    """A loss that does not exist."""


def cases():
    for name, given in STRUCTURES.items():
        structure = given
        if isinstance(given, dict):
            structure = get_structure(name.partition("-")[0], **given)
        yield name, structure


@pytest.fixture(scope="module", params=list(cases()), ids=lambda case: case[0])
def bound(request):
    """A space and its packed examples."""
    structure = request.param[1]
    return structure.make_space(*structure.sample(0, n=4, size=3))


def everything():
    return [*registry.default().loss_names(), "nope", Strange(), CostMatrix([[0.0]])]


def test_unknown_losses(bound):
    space, examples = bound
    layout, there = make_layout(space, examples), loss_names(space)
    assert there
    for name in there:
        ask_loss(space, name)(layout)
    for loss in everything():
        try:
            ask_loss(space, loss)
        except ValueError as error:
            text = str(error)
            if "unknown loss" not in text:
                assert not isinstance(loss, str)  # its numbers do not fit
                continue
            known = re.search(r"known: (\[.*?\])", text)[1]
            assert known == repr(there) and loss not in there
            objects = text.partition(known)[2]
            assert isinstance(loss, str) or type(loss).__name__ not in objects


def fails(space, examples, surrogate, loss):
    """Return the error of binding, or None."""
    try:
        registry.default().make("surrogates", surrogate).bind(Task(space, examples, loss))
    except ValueError as error:
        return str(error)
    return None


def test_advice_can_be_taken(bound):
    space, examples = bound
    for surrogate in registry.default().names("surrogates"):
        for loss in loss_names(space):
            text = fails(space, examples, surrogate, loss)
            for what in ("loss", "surrogate") if text else ():
                advice = re.search(rf"use {what}=((?:'[^']+'(?:, | or )?)+)", text)
                names = re.findall("'([^']+)'", advice[1]) if advice else []
                assert (loss if what == "loss" else surrogate) not in names, text
                taken = [
                    fails(space, examples, *((surrogate, n) if what == "loss" else (n, loss)))
                    for n in names
                ]
                assert not taken or None in taken, (text, taken)


def test_lists_that_differ_late():
    names = [f"n{k}" for k in range(40)]
    assert first_difference([*names[:30], "x"], names) == "number 30 is 'x', expected 'n30'"
    tree = nx.DiGraph([("n0", name) for name in names[1:]])
    X, Y = np.zeros((4, 1)), [["n1"], ["n2"], ["n3"], ["n4"]]
    model = StructuredSVM(get_structure("dag", hierarchy=tree), solver="sgd")
    wrong = [*sorted(names)[:-1], "x"]
    refused(r"number \d+ is ", model.partial_fit, X, Y, classes=wrong)


def test_differences_that_are_not_shown_are_told_by_type():
    case = Case(PyChainStructure(), 0, 0, 2)
    with pytest.raises(BrokenPromise, match=r"array\(\[0\]\) of type .*int64, expected array.*str"):
        case.fail("state", "is kept", None, np.array([0]), repr(np.array([0])))


def test_another_class_of_the_same_name():
    class Oracle:
        def __init__(self, layout):
            pass

    def structsolve_oracle(space):
        return Oracle if space.structure.name == "chain" else None

    module = plugin_of("namesakes", structsolve_oracle=structsolve_oracle)
    with plugged(module):
        expected = r"returned \S+\.Oracle from structsolve_oracle, expected structsolve.operators"
        X, Y = get_structure("chain").sample(0)
        refused(expected, StructuredSVM("chain").fit, X, Y, error=TypeError)


def test_names_that_differ_are_told_at_once():
    """Not only when the model is saved, after training."""

    def structsolve_structures():
        return [Named("a", lambda: PyChainStructure())]

    module = plugin_of("misnamed", structsolve_structures=structsolve_structures)
    with plugged(module):
        expected = "structure 'a': its plugin made a .* with name = 'py-chain', expected 'a'"
        refused(expected, StructuredSVM("a").fit, [[[0.0]]], [[1]])


def test_advice_on_powers_can_be_taken(bound):
    """Methods named in a message work, and so does the oracle that it advises."""
    structure = bound[0].structure
    if hasattr(bound[0], "loss"):  # without a polytope, or a loss to train with
        return
    X, Y = structure.sample(0, n=4, size=3)
    model = StructuredSVM(structure, solver="sgd", max_iter=1, tol=9).fit(X, Y)
    asks = {
        "decision_function": lambda: model.decision_function(X),
        "predict_kbest": lambda: model.predict_kbest(X, 2),
    }
    for oracle in (None, "lp"):
        model.set_params(oracle=oracle)
        for method, ask in asks.items():
            try:
                ask()
            except ValueError as error:
                text = str(error)
            else:
                continue
            assert method == "predict_kbest" or "predict" in text
            if "predict_kbest do" in text:
                asks["predict_kbest"]()
            advised = "set_params(oracle=None)" in text
            model.set_params(oracle=None)
            try:
                ask()
            except ValueError:
                assert not advised, text
            else:
                assert advised, text
            model.set_params(oracle=oracle)
