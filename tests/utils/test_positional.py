"""Arguments that were once taken by position: still taken, with a warning that names them."""

import inspect
import warnings

import pytest
from checks import refused
from sklearn.base import clone

from structsolve import Problem, get_structure
from structsolve.io.archives import ArchiveReader
from structsolve.io.tables import TableReader
from structsolve.plugins.chain.fasta import FastaReader
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax
from structsolve.plugins.grid import GridStructure
from structsolve.plugins.mrf import MRFStructure
from structsolve.solvers import BCFW, SGD, ConsensusADMM
from structsolve.surrogates import BiCriteria
from structsolve.testing import check_solver
from structsolve.utils.positional import positional_deprecated

CLASSES = [
    ArchiveReader,
    BCFW,
    BiCriteria,
    ConsensusADMM,
    FastaReader,
    GridStructure,
    MRFStructure,
    Memoir,
    OneVsSome,
    SGD,
    SampledSoftmax,
    TableReader,
]


@pytest.mark.parametrize("kind", CLASSES)
def test_all_arguments_by_position(kind):
    names = list(inspect.signature(kind).parameters)
    values = [f"value of {name}" for name in names]
    with pytest.warns(FutureWarning, match=rf"{kind.__name__}\(\) takes .* by name") as told:
        made = kind(*values)
    assert told[0].filename == __file__ and names[-1] in str(told[0].message)
    given = dict(zip(names, values))
    assert made.get_params(deep=False) == kind(**given).get_params(deep=False) == given
    refused("positional", kind, *values, None, error=TypeError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        refused("multiple values", kind, *values, error=TypeError, **{names[-1]: 1})


@pytest.mark.parametrize("kind", CLASSES)
def test_names_alone_do_not_warn(kind):
    if kind is not BiCriteria:
        assert clone(kind()).get_params(deep=False) == kind().get_params(deep=False)
    refused(f"{kind.__name__} has no parameter 'nothing'", kind, error=TypeError, nothing=1)


def test_functions():
    @positional_deprecated
    def shifted(x, by=0, *, factor=1, more=0):
        return factor * x + by + more

    assert shifted(2, 1, factor=3) == shifted(2, by=1, factor=3) == 7
    with pytest.warns(FutureWarning, match=r"shifted\(\) takes factor, more by name") as told:
        assert shifted(2, 1, 3, 4) == 11
    assert told[0].filename == __file__
    refused("from 1 to 2 positional arguments", shifted, 1, 2, 3, 4, 5, error=TypeError)
    assert str(inspect.signature(shifted)) == "(x, by=0, *, factor=1, more=0)"


def test_problems_and_kits():
    space, examples = get_structure("multiclass").make_space([[0.0], [1.0]], ["a", "b"])
    with pytest.warns(FutureWarning, match=r"Problem\(\) takes penalize_intercept, gram by name"):
        problem = Problem(space, examples, "hamming", "margin", False, False)
    assert problem.penalty is not None and not problem.potentials.has_gram
    with pytest.warns(FutureWarning, match=r"check_solver\(\) takes surrogate by name"):
        check_solver("sgd", "multiclass", "hamming", "margin")
