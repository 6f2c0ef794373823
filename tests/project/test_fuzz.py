"""A few thousand cases of the fuzzer; ``.ci/fuzz`` runs a million."""

import inspect
import os
import re

import numpy as np
import pytest
from doc_code import ROOT
from fuzz import files, natives, seeds
from fuzz.targets import TARGETS
from programs import fuzzed

#: Cases per target.
CASES = {"natives": 1500, "api": 250, "sparse": 250, "models": 250, "checkpoints": 250,
         "readers": 750, "operators": 40, "batch": 250, "latent": 20, "weighted": 50, "extreme": 50,
         "shell": 50, "decode": 100}  # fmt: skip
#: Cases that once were faults: trees whose classes are numbers (1681); the harness took differences
#: of booleans (3280).
KEPT = {"models": [range(1681, 1682), range(3280, 3281)]}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in processes that fork")
def test_no_input_crashes():
    """One process for all, whose children are the batches."""
    work = [(target, range(count)) for target, count in CASES.items()]
    work += [(target, cases) for target, kept in KEPT.items() for cases in kept]
    # The others: tests/project/test_certificates.py, test_torch_fuzz.py and test_dask.py.
    assert set(CASES) == set(TARGETS) - {"certificates", "liars", "torch", "jax", "dask"}
    # Valid arguments are among them, or only the first check would be tested.
    for target, count, refused in fuzzed(work):
        assert count == 1 or refused < count, target


def test_every_compiled_callable_is_in_the_harness():
    """Each new native class must be added here: `fuzz.objects` says how to make its objects."""
    reached, missing, unmade = {label for label, *_ in natives._targets()}, [], set()
    for module in seeds.compiled():
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__ or not callable(value):
                continue
            label = f"{module.__name__}.{name}"
            labels = [label] * (not name.startswith("__"))  # Cython's own helpers
            if inspect.isclass(value):
                if label not in seeds.live():
                    unmade.add(label.removeprefix("structsolve."))
                own = (key for key in vars(value) if not key.startswith("_"))
                labels += [f"{label}.{key}" for key in own if callable(getattr(value, key))]
            missing += [each for each in labels if each not in reached]
    assert not missing, "no case calls these"
    assert unmade == UNMADE, "no case has objects of these classes, or does by now"


#: Classes whose objects no case is given: room of one call, and operators of rare settings.
UNMADE = {
    "batch._abreast.Abreast", "batch._passes.Room", "batch._passes.Pass", "batch._passes.EachSize",
    "batch._loops._Gradients", "batch._sheets.Place",
    "batch._distribution.Numbers", "batch._sheets.Sheet",
    "estimators.decode.Room", "plugins.risk._decode._Scratch",
    "plugins.extreme.weights._strips.Strips", "plugins.extreme.weights.feature_lists.Space",
    "plugins.mrf.cuts._oracle.CutFirstOracle", "plugins.mrf._direct.WeightedModel",
    "plugins.mrf._oracle.EasyFirstOracle",
    "plugins.multilabel._projections.LabelSetMaxMin", "potentials.calls._Parts",
    "search.psi.PythonPsi", "search.psi.RatioPsi", "solvers._nslack.RowScratch",
    "solvers._pairs.PairTables", "solvers._polyhedron.TooManyRows", "solvers.passes.Scratch",
    "structure.adapter.Vector", "plugins.latent.row_loss.RowLoss",
    "algorithms.minimum_cut.MinimumCut", "surrogates.calls.CutCall",  # tuples that are returned
}  # fmt: skip


def test_cases_do_not_depend_on_those_before_them():
    """Damage puts values into a file; the next damage must not change them (models, 120446)."""
    before = repr(files._VALUES)
    rng = np.random.default_rng(0)
    for _ in range(100):
        meta, arrays = {"a": [1, {"b": []}], "c": {}}, {"w": np.zeros(2)}
        for _ in range(4):
            files._damage(rng, meta, arrays)
    assert repr(files._VALUES) == before


def test_typed_arguments_of_compiled_callables_are_never_none():
    """Cython accepts None for any class or memoryview, and would read at address 0."""
    paths = [*ROOT.glob("structsolve/**/*.pyx"), *ROOT.glob("plugins/**/*.pyx")]
    headers = [*ROOT.glob("structsolve/**/*.pxd"), *ROOT.glob("plugins/**/*.pxd")]
    kinds = set()
    for path in [*paths, *headers]:
        kinds |= set(re.findall(r"^(?:cdef|ctypedef) class (\w+)", path.read_text(), re.M))
    faults = []
    signature = re.compile(r"^( *)def (\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\):", re.M)
    for path in paths:
        for indent, function, arguments in signature.findall(path.read_text()):
            if len(indent) > 4 or function in ("piece", "add"):
                continue  # inside another function, which calls it
            for argument in re.split(r",(?![^\[]*\])", arguments):
                typed = re.match(r"\s*(?:const )?(\w+)(\[[^\]]*\])? (\w+)(.*)", argument, re.S)
                if typed and (typed[2] or typed[1] in kinds):
                    rest = typed[4].replace(" ", "")
                    if "notNone" not in rest and "=None" not in rest:
                        faults.append(f"{path.relative_to(ROOT)}: {function}({argument.strip()})")
    assert not sorted(set(faults) - MAY_BE_NONE)


#: Arguments that may be None, those of label sets not both; those of Python's operators go on to
#: a class that refuses it.
MAY_BE_NONE = {
    "plugins/mrf/_oracle.pyx: __init__(Plans plans)",
    "plugins/multilabel/_oracle.pyx: __init__(MaxMarginals best)",
    "plugins/multilabel/_oracle.pyx: __init__(Oracle oracle)",
    "structsolve/batch/_loops.pyx: derivatives(const double[::1] weights)",
    "structsolve/batch/_distribution.pyx: gradients_of(const double[::1] weights)",
    "structsolve/batch/_distribution.pyx: gradients_of(double[::1] values)",
    "structsolve/batch/_loops.pyx: gradients(const double[::1] weights)",
    "structsolve/lp/cones.pyx: __init__(KBest kbest)",
    "structsolve/projections/game.pyx: __init__(NodeRows rows)",
    "structsolve/structure/python_operators.pyx: __init__(PartLayout layout)",
    "structsolve/structure/python_projection.pyx: __init__(PartLayout layout)",
}
