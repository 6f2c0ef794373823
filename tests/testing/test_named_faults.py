"""Errors name what is wrong, and the plugin by its distribution."""

import json
import re

import numpy as np
import pytest
from checks import refused
from data import classes
from python_structures import PyChainSpace, PyChainStructure
from shell import TableReader, shell
from sklearn.base import clone

import structsolve
from structsolve import ExtremeSVM, LatentSVM, Named, StructuredSVM, get_scorer, registry
from structsolve.batch.padded import _Kind
from structsolve.examples.packed import Examples
from structsolve.io.reader import Reader
from structsolve.lp import ask_oracle
from structsolve.plugins.chain import ChainSpace, ChainStructure
from structsolve.structure.ask import make_layout
from structsolve.testing import BrokenPromise, check_structure

# -- who answered -----------------------------------------------------------------------------

INTEGER = """
from structsolve import hookimpl

@hookimpl
def structsolve_oracle(space):
    return {answer} if space.structure.name == "chain" else None
"""


@pytest.mark.parametrize(
    "answer, message",
    [
        ("3", "returned int from structsolve_oracle, expected a callable that takes a layout"),
        ("lambda layout: 3", "returned int from structsolve_oracle, expected .*operators.Oracle"),
        ("lambda layout: 1 / 0", "failed in structsolve_oracle: ZeroDivisionError"),
    ],
)
def test_a_wrong_answer_is_told_by_distribution(install, monkeypatch, answer, message):
    install("three", INTEGER.format(answer=answer), version="2.1")
    monkeypatch.setattr(registry, "_registry", None)
    space, examples = structsolve.get_structure("chain").make_space([[[0.0]]], [["a"]])
    with pytest.raises((TypeError, RuntimeError), match=message) as caught:
        ask_oracle(space)(make_layout(space, examples))
    assert str(caught.value).startswith("plugin 'three' (structsolve-three 2.1) ")


def test_a_wrong_method_of_a_space_is_told_by_its_plugin(registered):
    class Space(PyChainSpace):
        argmax = property()  # none, so that make_oracle() is asked

        def make_oracle(self):
            return 3

    Space.__module__ = "fake_plugin_0"
    registered(name="rings", structsolve_metrics=lambda: [*()])
    structure = PyChainStructure()
    space, _ = structure.make_space(*structure.sample(0))
    space.__class__ = Space
    refused(
        "plugin 'rings' returned int from structsolve_oracle", ask_oracle, space, error=TypeError
    )


# -- what a model lacks -----------------------------------------------------------------------


def test_methods_that_are_not_there_say_why():
    X, y = classes(20)
    for model in (StructuredSVM("multiclass"), StructuredSVM("multiclass", max_iter=2).fit(X, y)):
        for name, message in (
            (
                "partial_fit",
                "partial_fit needs a solver that does not store examples.*solver='sgd'",
            ),
            ("predict_proba", "predict_proba needs surrogate='crf'.*predict_marginals"),
        ):
            assert not hasattr(model, name) and getattr(model, name, None) is None
            refused(message, getattr, model, name, error=AttributeError)
    assert hasattr(clone(model).set_params(solver="sgd"), "partial_fit")
    assert hasattr(clone(model).set_params(surrogate="crf"), "predict_proba")
    assert "one pass over a batch" in StructuredSVM.partial_fit.__doc__
    with pytest.raises(AttributeError, match="use solver='memoir'"):
        ExtremeSVM(solver="dual").partial_fit  # noqa: B018
    with pytest.raises(AttributeError, match="LatentSVM has no partial_fit"):
        LatentSVM().partial_fit  # noqa: B018


def test_crf_of_a_structure_without_a_quick_entropy():
    message = "'py-chain', PythonProjection, lacks: it has no term.. and slope.."
    X, Y = PyChainStructure().sample(0)
    model = StructuredSVM(PyChainStructure(), surrogate="crf", solver="lbfgs")
    refused(f"solver 'lbfgs' needs the entropy of states.*{message}", model.fit, X, Y)
    model.set_params(surrogate="margin")
    refused("needs a smooth surrogate, and 'margin' is not smooth", model.fit, X, Y)


def test_structures_of_many_rows_are_known_by_what_they_pack():
    class Cky(PyChainSpace):
        def pack_sizes(self, sizes, **topology):  # a single number is one example of that size
            return Examples(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    structure = PyChainStructure()
    space, _ = structure.make_space(*structure.sample(0))
    space.__class__ = Cky
    assert not _Kind(space).one_row
    for name, one_row in (("chain", False), ("multiclass", True), ("permutation", True)):
        structure = structsolve.get_structure(name)
        assert _Kind(structure.make_space(*structure.sample(0))[0]).one_row is one_row


def test_a_topology_that_is_no_dict():
    class Space(PyChainSpace):
        def pack(self, X, Y=None, unseen="error"):
            examples = super().pack(X, Y, unseen)
            examples.topology = [len(x) for x in X]
            return examples

    structure = PyChainStructure()
    X, Y = structure.sample(0)
    model = StructuredSVM(structure, max_iter=1, tol=1).fit(X, Y)
    model.space_.__class__ = Space
    told = "pack.. gave topology: found list, expected a dict"
    refused(told, model.predict, X)

    class Structure(PyChainStructure):
        def make_space(self, *given, **more):
            space, _ = super().make_space(*given, **more)
            space.__class__ = Space
            return space, space.pack(*given[:2])

    told = "make_space breaks a promise: it gives a dict as topology.*Found list"
    refused(told, check_structure, Structure(), n_cases=1, solvers=(), error=BrokenPromise)


# -- files ------------------------------------------------------------------------------------


class Lines(Reader):
    """A number and a label on each line."""

    endings = (".table.txt",)

    def read(self, path):
        rows = [json.loads(line) for line in self.lines(path) if json.loads(line)["x"]]
        return [[row["x"]] for row in rows], [row["y"] for row in rows]


@pytest.mark.parametrize("ending", ["csv", "arff", "fasta", "npz", "table.txt"])
def test_a_missing_file_is_a_missing_file(table, tmp_path, capsys, ending):
    missing = tmp_path / f"gone.{ending}"
    status, _, err = shell(capsys, "fit", missing, "--model", tmp_path / "m.structsolve")
    assert status == 2 and "No such file" in err and str(missing) in err and "plugin" not in err


@pytest.mark.parametrize(
    "line, message",
    [
        ("{nonsense", "line 2: plugin 'lines' failed in structsolve_readers: JSONDecodeError"),
        ('{"y": 1}', "line 2: plugin 'lines' failed in structsolve_readers: KeyError: 'x'"),
        ("\udcff", "line 2: found byte 0xff at position 1; expected UTF-8 text"),
    ],
)
def test_a_readers_error_has_file_and_line(tmp_path, capsys, registered, line, message):
    registered(name="lines", structsolve_readers=lambda: [Named("lines", Lines)])
    path = tmp_path / "a.table.txt"
    path.write_text(f'{{"x": 1, "y": 0}}\n{line}\n', errors="surrogateescape")
    status, _, err = shell(capsys, "fit", path, "--model", tmp_path / "m.structsolve")
    assert status == 2 and f"{path}, {message}" in err


def test_errors_behind_the_lines_have_the_file(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(TableReader, "fit", lambda self, path: 1 / 0)
    status, _, err = shell(capsys, "fit", table, "--model", tmp_path / "m.structsolve")
    assert status == 2 and f"{table}: plugin 'fake_plugin_0' failed in structsolve_readers" in err


# -- metrics ----------------------------------------------------------------------------------


def share(least=0):
    """Return the share of first labels above a number."""
    return lambda model, X, Y: float(np.mean([y[0] == p[0] for y, p in zip(Y, model.predict(X))]))


def test_the_shell_scores_by_metrics_of_plugins(table, tmp_path, capsys, registered):
    registered(structsolve_metrics=lambda: [Named("first-right", share)])
    model = tmp_path / "m.structsolve"
    assert shell(capsys, "fit", table, "--model", model, "--alpha", "0.01")[0] == 0
    score = ("score", model, table, "--metric")
    assert shell(capsys, *score, "first-right")[:2] == (0, "first-right 1 of 2 examples\n")
    assert shell(capsys, *score, "first-right:least=2")[0] == 0
    status, out, _ = shell(capsys, *score, "macro-f1", "--json")
    assert status == 0 and json.loads(out) == {"macro-f1": 1.0}
    status, _, err = shell(capsys, *score, "macro-f2")
    assert status == 2 and "--metric: name is 'macro-f2' (did you mean 'macro-f1'?)" in err
    loaded = structsolve.load(model)
    X, y = [[[1.0, 0.0]]], [["b"]]
    assert get_scorer("first-right:2")(loaded, X, y) == loaded.score(X, y, metric="first-right")


# -- parts ------------------------------------------------------------------------------------


class Twice(ChainSpace):
    """The compiled oracle of chains, with parts that count transitions twice."""

    def parts(self, examples, i, label):
        mu = PyChainSpace.parts(self, examples, i, label)
        return {**mu, "transition": 2 * mu["transition"]}


def test_parts_at_odds_with_the_oracle_are_told_as_such():
    class Structure(PyChainStructure):
        name, space_class = "twice", Twice

        def make_space(self, X, Y, classes=None, fit_intercept=True):
            space, examples = ChainStructure.make_space(self, X, Y, classes, fit_intercept)
            space.__class__ = Twice
            return space, examples

    with pytest.raises(BrokenPromise) as caught:
        check_structure(Structure(), n_cases=1, solvers=(), only=["oracle"])
    message = "rises by ([12]) with theta.* .block 'transition'., which .* counts ([24]) times"
    assert "Oracle.argmax or Parts.encode breaks a promise" in str(caught.value)
    counts = re.search(message, str(caught.value)).groups()
    assert int(counts[1]) == 2 * int(counts[0])


def test_parts_in_python_are_told_beside_the_oracle():
    class Space(PyChainSpace):
        def parts(self, examples, i, label):
            mu = super().parts(examples, i, label)
            return {**mu, "transition": mu["transition"].T}

    class Structure(PyChainStructure):
        def make_space(self, *given, **more):
            space, examples = super().make_space(*given, **more)
            space.__class__ = Space
            return space, examples

    told = (
        r"Oracle.argmax breaks .*counted by parts\(\): it, or argmax\(\), is wrong. To see it again"
    )
    refused(told, check_structure, Structure(), n_cases=1, only=["oracle"], error=BrokenPromise)
