"""Kits besides check_structure: what ships passes, and faults get helpful messages."""

import numpy as np
import pytest
from checks import refused
from kit_faults import NOTHING, said, table
from python_structures import PyChainStructure
from wrong_kits import KITS

import structsolve
from structsolve import registry
from structsolve.io.npz import write_npz
from structsolve.io.reader import Reader
from structsolve.plugins.dependency import ConlluSentence, write_conllu
from structsolve.solvers import BCFW
from structsolve.surrogates import Margin
from structsolve.testing import (
    BrokenPromise,
    check_backend,
    check_loss,
    check_metric,
    check_reader,
    check_search,
    check_solver,
    check_structure,
    check_surrogate,
)


@pytest.mark.parametrize("backend", ["lp", "ilp", "lp:1e-4", "cvxpy:CLARABEL"])
def test_backends_pass(backend):
    check_backend(backend, random_state=3)


@pytest.mark.parametrize("surrogate", registry.default().names("surrogates"))
def test_surrogates_pass(surrogate):
    options = {"micro-f1": "micro-f1:0", "generalized": "generalized:1,1", "beta": "beta:0.5"}
    check_surrogate(options.get(surrogate, surrogate), n_cases=2, size=2)


def test_surrogates_of_other_structures_and_losses_pass():
    check_surrogate("margin", "multiclass", loss="zero-one")
    check_surrogate("slack", "permutation", n_cases=1)
    check_surrogate(Margin(), PyChainStructure(), n_cases=1, size=2)


# Pair steps are for kernel models, which the kit lacks: tests/plugins/multiclass/test_smo.py.
@pytest.mark.parametrize("solver", sorted({*registry.default().names("solvers")} - {"smo"}))
def test_solvers_pass(solver):
    check_solver(
        solver,
        "multiclass" if solver in ("interior-point", "smoothing") else "chain",
        surrogate="crf" if solver in ("gbcfw", "lbfgs", "sdca") else "margin",
    )


@pytest.mark.parametrize("structure", ["chain", "multilabel", "multiclass", PyChainStructure()])
@pytest.mark.parametrize("search", registry.default().names("searches"))
def test_searches_pass(search, structure):
    lacks = {"exact": ("multilabel",), "angular": ()}.get(search)
    if lacks is not None and (structure in lacks or isinstance(structure, PyChainStructure)):
        refused("takes no psi on structure", check_search, search, structure)
    else:
        check_search(search, structure)


@pytest.mark.parametrize("kit, make, args, options, message", [
    pytest.param(*(entry[0], *entry[2:]), id=entry[1]) for entry in KITS if entry[0] is check_search
])  # fmt: skip
def test_false_declarations_of_searches_are_told(kit, make, args, options, message):
    refused(message, kit, make(), *args, error=BrokenPromise, **options)


def test_readers_pass(tmp_path):
    (tmp_path / "a.csv").write_text("size,kind\n1.5,a\n-2,b\n3,a\n")
    (tmp_path / "a.arff").write_text(
        "@relation r\n@attribute x numeric\n@attribute k {a,b}\n@data\n1,a\n2,b\n"
    )
    write_npz(tmp_path / "a.npz", np.eye(3), np.array([0, 1, 0]))
    for name in ("csv", "arff", "npz"):
        check_reader(name, tmp_path / f"a.{name}")


def test_readers_of_words_and_letters_pass(tmp_path):
    (tmp_path / "a.conll").write_text("He PRP B-NP\nran VBD B-VP\n\nYes UH O\n")
    (tmp_path / "a.crfsuite").write_text("B\tw=a\tlen:2\nI\tw=b\n\nO\tw=a\n")
    (tmp_path / "a.fasta").write_text(">p\nACA\n")
    (tmp_path / "labels.fasta").write_text(">p\nHHE\n")
    words = ConlluSentence.of(["He", "ran"], ["PRON", "VERB"], heads=[2, 0])
    write_conllu(tmp_path / "a.conllu", [words])
    check_reader("conll", tmp_path / "a.conll")
    check_reader("crfsuite", tmp_path / "a.crfsuite")
    check_reader("conllu:dependency", tmp_path / "a.conllu")
    check_reader(f"fasta:target={tmp_path / 'labels.fasta'}", tmp_path / "a.fasta")


class Pairs(Reader):
    """A number and a label on each line; the lines report the position of reading."""

    def read(self, path):
        X, y = [], []
        for number, label in map(str.split, self.lines(path)):
            X.append([float(number)])
            y.append(label)
        return X, y


class LatePairs(Pairs):
    """Converts numbers when lines are read, so errors have no line."""

    def read(self, path):
        lines = list(self.lines(path))
        return [[float(line.split()[0])] for line in lines], [line[-1:] for line in lines]


def test_a_reader_may_leave_places_to_its_lines(tmp_path):
    path = tmp_path / "a.pairs"
    path.write_text("1 a\n-22 b\n")  # cut in half it ends in "-"
    check_reader(Pairs(), path)
    refused("names the file", check_reader, LatePairs(), path, error=BrokenPromise)


@pytest.mark.parametrize("metric, structure", [
    ("accuracy", "chain"), ("macro-f1", "tree"), ("sequence-accuracy", "chain"),
    ("micro-f1", "multilabel"),
])  # fmt: skip
def test_metrics_pass(metric, structure):
    check_metric(metric, structure)


def test_a_slow_solver_passes_where_it_is_given_time():
    textbook = BCFW(max_steps=1, cached_passes=0, steps="frank-wolfe")
    check_solver(textbook, "chain", tol=0.05)
    refused(r"closes the gap in 20 passes.*tol=0.05, passes=20\)", check_solver, textbook, "chain",
            tol=0.05, passes=20, error=BrokenPromise)  # fmt: skip


@pytest.mark.parametrize("loss", ["hamming", "zero-one", structsolve.ClassWeights({0: 2.0})])
def test_losses_pass(loss):
    check_loss(loss, "chain", n_cases=1)


@pytest.mark.parametrize("kit, make, args, options, message", [
    pytest.param(kit, make, args, options, message, id=name)
    for kit, name, make, args, options, message in KITS
])  # fmt: skip
def test_what_is_wrong_is_told(kit, make, args, options, message):
    with pytest.raises(BrokenPromise, match=message) as caught:
        kit(make(), *args, **options)
    case = caught.value.case
    assert case is None or f"To see it again: {kit.__name__}(" in str(caught.value)


def test_the_table_tells_what_no_kit_says():
    lines, missed = table([("check_structure", "none", said(check_structure, "multiclass"), "x")])
    assert lines[2:] == [f"| none | check_structure | {NOTHING} |"]
    assert missed == [f"none: {NOTHING}\n    expected x"]


def test_names_that_nobody_knows():
    refused("unknown lp backend 'simplex'", check_backend, "simplex")
    refused("unknown surrogate 'hinge'", check_surrogate, "hinge")
    refused("unknown solver 'newton'", check_solver, "newton")


@pytest.mark.parametrize("given", [None, 5, Margin])
def test_what_is_no_object_is_refused(given):
    for kit, name in ((check_solver, "solver"), (check_surrogate, "surrogate")):
        shown = f"^{name} is {given!r}, expected a name .*known: .* or an? .*object"
        refused(shown, kit, given, error=TypeError)


@pytest.mark.parametrize("n_cases", [0, -1, None, 1.0])
def test_no_cases_check_nothing(n_cases):
    for kit, what in ((check_structure, "chain"), (check_loss, "hamming"), (check_surrogate, "lp")):
        refused(
            f"^n_cases is {n_cases}, expected an integer of at least 1", kit, what, n_cases=n_cases
        )
