"""Solvers that give up on a program, or print: fits are kept, standard output stays clean."""

import logging

import numpy as np
import pytest
from data import chains
from programs import in_fork

from structsolve import StructuredSVM
from structsolve.io.npz import write_npz
from structsolve.lp import Highs
from structsolve.lp.base import Backend, GaveUp, Program

X, Y = chains(12)


class Moody(Backend):
    """HiGHS that gives up on some of its programs; numbers count all calls."""

    name = "moody"

    def __init__(self, fails=(7,), error=GaveUp):
        self.fails, self.error = fails, error
        self.asked = 0

    def program(self, polytope):
        inner = Highs().program(polytope)

        class Own(Program):
            def solve(own, *args, **kwargs):
                self.asked += 1
                if self.asked in self.fails:
                    raise self.error("moody gave up")
                return inner.solve(*args, **kwargs)

        return Own()


class OwnError(Exception):
    """As solvers have."""


@pytest.mark.parametrize("error", [GaveUp, ValueError, RuntimeError, OwnError])
def test_highs_solves_what_a_backend_gives_up_on(error, caplog):
    settings = {"alpha": 0.1, "tol": 1e-3}
    plain = StructuredSVM("chain", oracle=Highs(), **settings).fit(X, Y)
    with caplog.at_level(logging.WARNING, "structsolve.lp"):
        model = StructuredSVM("chain", oracle=Moody((7, 20), error), **settings).fit(X, Y)
    assert model.stop_reason_ == "converged"
    assert model.history_[-1]["primal"] == pytest.approx(plain.history_[-1]["primal"], rel=2e-3)
    told = [r.getMessage() for r in caplog.records if "moody gave up" in r.getMessage()]
    assert len(told) == 1 and "HiGHS solves such programs" in told[0]


def test_the_first_program_of_all():
    model = StructuredSVM("chain", oracle=Moody((1,)), max_iter=3, tol=1).fit(X, Y)
    assert model.history_
    with pytest.raises(ValueError, match="example 0: moody gave up"):
        StructuredSVM("chain", oracle=Moody((1,), ValueError)).fit(X, Y)


def test_weights_are_kept_where_nobody_solves_it(monkeypatch):
    whole = type(Highs().program.__self__).program
    asked = [0]

    def program(self, polytope):
        inner = whole(self, polytope)
        solve = inner.solve

        def own(*args, **kwargs):
            asked[0] += 1
            if asked[0] > 150:
                raise GaveUp("HiGHS gave up on a program")
            return solve(*args, **kwargs)

        inner.solve = own
        return inner

    monkeypatch.setattr(Highs, "program", program)
    with pytest.warns(UserWarning, match="best weights so far are kept: .*HiGHS gave up"):
        model = StructuredSVM("chain", oracle=Highs(), tol=0, alpha=1e-3).fit(X, Y)
    assert model.stop_reason_ == "failed" and "HiGHS gave up" in model.history_[-1]["failed"]
    assert np.isfinite(model.flat_weights()).all() and model.flat_weights().any()


def test_nothing_but_predictions_reaches_standard_output(tmp_path):
    pytest.importorskip("cvxpy")
    data, model = tmp_path / "x.npz", tmp_path / "m.structsolve"
    write_npz(data, X, Y)
    StructuredSVM("chain", oracle="cvxpy:HIGHS", max_iter=2, tol=1).fit(X, Y).save(model)
    command = ["predict", str(model), str(data), "--oracle"]
    module = "import runpy; runpy.run_module('structsolve', run_name='__main__')"
    script = (
        "from structsolve.cli.main import main; import sys; print('before');"
        "status = main(sys.argv[1:]); print('after'); sys.exit(status)"
    )
    # cvxpy prints, too, where it is to be verbose.
    for code, more, around in ((module, ",verbose=true", []), (script, "", ["before", "after"])):
        status, out, error = in_fork(code, *command, f"cvxpy:HIGHS{more}")
        assert status == 0, error
        words = out.split()
        assert [words[0], words[-1]] == around or not around
        words = words[1:-1] if around else words
        assert len(words) == sum(map(len, Y)) and set(words) <= {"0", "1", "2"}, out
        assert "HiGHS" in error  # what it prints goes there
