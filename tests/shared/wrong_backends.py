"""LP backends that each break one promise, with the message."""

import numpy as np
from kit_collector import collector

from structsolve.lp import Highs
from structsolve.lp.base import Answer, Program
from structsolve.testing import check_backend

KITS, wrong = collector()


def changed(answer, **changes):
    """An answer with another x or dual, without a start."""
    return Answer(**{"x": answer.x, "dual": answer.dual, **changes})


class Bent(Highs):
    """HiGHS whose programs get other arguments and return other answers."""

    def __init__(self, before=None, after=None, **options):
        super().__init__(**options)
        self.before, self.after = before, after

    def program(self, polytope):
        return BentProgram(super().program(polytope), self, polytope)


class BentProgram(Program):
    def __init__(self, own, backend, polytope):
        self.own, self.backend, self.polytope = own, backend, polytope

    def solve(self, c, upper=None, start=None, sides=None):
        given = {"upper": upper, "start": start, "sides": sides}
        if self.backend.before:
            c, given = self.backend.before(self, c, given)
        answer = self.own.solve(c, **given)
        return self.backend.after(self, answer) if self.backend.after else answer


def backend(message, **options):
    """Collect a function that runs before or after a program of HiGHS."""

    def collect(function):
        side = "after" if function.__code__.co_argcount == 2 else "before"

        def make():
            return Bent(**{side: function}, **options)

        KITS.append((check_backend, function.__name__, make, (), {}, message))
        return function

    return collect


@backend(r"solve .* maximises c x .*this is the minimum: negate the costs")
def Minimises(program, c, given):
    return -c, given


@backend(r"gives the row duals of the maximum.*-dual gives the right one: flip the sign")
def DualsTurned(program, answer):
    return answer and changed(answer, dual=-answer.dual)


@backend(r"gives the row duals of the maximum")
def DualsOfAnotherUnit(program, answer):
    return answer and changed(answer, dual=2 * answer.dual)


@backend(r"gives \d+ finite row duals, or None")
def DualsOfVariables(program, answer):
    return answer and changed(answer, dual=np.zeros(len(answer.x)))


@backend(r"gives \d+ finite row duals, or None")
def DualsNotFinite(program, answer):
    return answer and changed(answer, dual=np.nan * answer.dual)


@backend(r"keeps the upper bounds \(those given with the call\)")
def IgnoresUpperBounds(program, c, given):
    return c, {**given, "upper": None}


@backend(r"solve after one with other upper bounds .* maximises c x")
def KeepsUpperBounds(program, c, given):
    program.kept = given["upper"] if given["upper"] is not None else getattr(program, "kept", None)
    return c, {**given, "upper": program.kept}


@backend(r"solve with sides .* keeps the sides of the polytope")
def IgnoresSides(program, c, given):
    return c, {**given, "sides": None}


@backend(r"solve after one with sides .* maximises c x")
def KeepsSides(program, c, given):
    program.sides = given["sides"] or getattr(program, "sides", None)
    if program.sides and program.own.solve(c, sides=program.sides) is None:
        program.sides = program.sides[:0]
    return c, {**given, "sides": program.sides}


@backend(r"returns None if and only if no point satisfies all rows")
def AnswersWithoutAPoint(program, answer):
    if answer is None:
        answer = program.own.solve(np.zeros(program.polytope.size))
    return answer


@backend(r"returns None if and only if no point satisfies all rows")
def GivesUpInSilence(program, answer):
    program.calls = getattr(program, "calls", 0) + 1
    return None if program.calls == 3 else answer


@backend(r"solve .* answers without an exception.*RuntimeError\(.infeasible")
def RaisesWithoutAPoint(program, answer):
    if answer is None:
        raise RuntimeError("infeasible")
    return answer


@backend(r"maximises c x .*set accurate = False, or tighten the solver's tolerance")
def ToleranceTooWide(program, answer):
    polytope = program.polytope
    if answer is None:
        return None
    middle = program.own.solve(np.zeros(polytope.size)).x
    return changed(answer, x=answer.x + 3e-3 * (middle - answer.x), dual=None)


@backend(r"keeps the (rows|lower bounds) of the polytope")
def RowsViolated(program, answer):
    return answer and changed(answer, x=0.99 * answer.x)


@backend(r"keeps the lower bounds of the polytope")
def BoundsViolated(program, answer):
    if answer is None:
        return None
    kernel = np.linalg.svd(program.polytope.A.toarray())[2][-1]
    return changed(answer, x=answer.x + 0.1 * kernel, dual=None)


@backend(r"answers with \d+ finite numbers x")
def OneNumberTooFew(program, answer):
    return answer and changed(answer, x=answer.x[:-1])


@backend(r"answers with \d+ finite numbers x")
def NotANumber(program, answer):
    return answer and changed(answer, x=answer.x * np.nan)


@backend(r"does not change costs and bounds")
def WritesIntoCosts(program, c, given):
    c *= 2
    return c, given


@backend(r"solve .* (maximises c x|again)")
def FirstCostsForEver(program, c, given):
    program.first = getattr(program, "first", c.copy())
    return program.first, given


@wrong(check_backend, r"is integer, so integer variables are integers|maximises c x")
def IntegerAlone():
    made = Bent(after=_between)
    made.integer = True
    return made


def _between(program, answer):
    other = program.own.solve(np.ones(program.polytope.size))
    return answer and changed(answer, x=0.5 * (answer.x + other.x), dual=None)


@wrong(check_backend, r"accurate breaks a promise: it is a bool")
def AccurateInWords():
    return type("InWords", (Highs,), {"accurate": "yes"})()
