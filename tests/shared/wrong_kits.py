"""LP backends, surrogates, solvers and losses that each break one promise, with the message."""

import os
import tempfile
from dataclasses import replace

import numpy as np
from python_structures import PyChainSpace, py_chain

from structsolve.io.reader import Reader
from structsolve.lp import Highs
from structsolve.lp.base import Answer, Program
from structsolve.search.hull import ConvexHull
from structsolve.search.scalar import Binary, Bisecting
from structsolve.solvers import BCFW, SGD, CuttingPlane
from structsolve.structure.losses import CostMatrix
from structsolve.surrogates import Margin, Slack
from structsolve.testing import (
    check_backend,
    check_loss,
    check_metric,
    check_reader,
    check_search,
    check_solver,
    check_surrogate,
)
from structsolve.utils.params import Params

#: Kit, name of the fault, what makes it, and the message that it must be met with.
KITS = []


def changed(answer, **changes):
    """An answer with another x or dual, without a start."""
    return Answer(**{"x": answer.x, "dual": answer.dual, **changes})


def wrong(kit, message, *args, **options):
    """Collect a faulty factory; the kit gets its result as its first argument."""

    def collect(make):
        KITS.append((kit, make.__name__, make, args, options, message))
        return make

    return collect


# -- backends -------------------------------------------------------------------------------------


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


# -- losses ---------------------------------------------------------------------------------------


@wrong(check_loss, r"can be built.*unknown loss 'hammming'")
def LossOfNobody():
    return "hammming"


class ByObject(Params):
    """A loss object."""

    def __init__(self, answer=None):
        self.answer = answer

    def bind(self, space):
        return self.answer


@wrong(check_loss, r"can be built.*bind.space. returned a NoneType, expected a callable")
def LossThatBindsNothing():
    return ByObject()


@wrong(check_loss, r"can be built.*what bind.space. returned made a list, expected a ")
def LossThatIsNone():
    return ByObject(lambda layout: [])


@wrong(check_loss, r"can be built.*(0 for the true|diagonal)", "multiclass")
def MatrixWithCostsOfTheTruth():
    return CostMatrix(np.ones((3, 3)))


# -- solvers --------------------------------------------------------------------------------------


def over(new, old):
    """A method that passes itself and the old one to a function."""
    return lambda run, *given: new(run, old, *given)


def bent_run(solver_class, **changes):
    """A solver whose runs have other methods; each gets the method that it replaces."""

    class Liar(solver_class):
        name = "liar"

        def start(self, start):
            run = super().start(start)
            methods = {name: over(new, getattr(type(run), name)) for name, new in changes.items()}
            run.__class__ = type("LiarRun", (type(run),), methods)
            return run

    return Liar()


def changes_record(**factors):
    def step(run, old):
        record = old(run)
        for key, factor in factors.items():
            if record.get(key) is not None:
                record[key] = record[key] * factor
        return record

    return step


@wrong(
    check_solver,
    r"reports the objective of its weights|gap that is primal minus dual",
    "multiclass",
)
def PrimalTooSmall():
    return bent_run(
        BCFW,
        certify=changes_record(primal=0.9, gap=0),
        step=lambda run, old: _uncertified(old(run)),
    )


def _uncertified(record):
    return {**record, "certified": False}


@wrong(check_solver, r"has a gap that is primal minus dual|dual below the primal", "multiclass")
def DualTooLarge():
    return bent_run(BCFW, step=changes_record(dual=1.5), certify=changes_record(dual=1.5))


@wrong(check_solver, r"has a gap that is primal minus dual", "multiclass")
def GapOfItsOwn():
    return bent_run(CuttingPlane, step=changes_record(gap=0.5))


@wrong(check_solver, r"certifies at least the objective of its weights", "multiclass")
def CertifiesTooMuch():
    def step(run, old):
        record = old(run)
        return {**record, "primal": 0.5 * record["primal"], "gap": None, "certified": True}

    return bent_run(CuttingPlane, step=step)


@wrong(check_solver, r"has finite weights", "multiclass")
def WeightsNotFinite():
    return bent_run(SGD, weights=lambda run, old: old(run) * np.nan)


@wrong(check_solver, r"weights breaks a promise: it returns a copy", "multiclass")
def WeightsShared():
    def weights(run, old):
        if not hasattr(run, "shared"):
            run.shared = old(run)
        run.shared[:] = old(run) if np.isfinite(run.shared).all() else np.nan
        return run.shared

    return bent_run(BCFW, weights=weights)


@wrong(check_solver, r"restore breaks a promise: it restores all of a state.*\(rng\)", "chain")
def StateForgetsTheGenerator():
    def restore(run, old, meta, arrays):
        state = run.given.rng.bit_generator.state
        old(run, meta, arrays)
        run.given.rng.bit_generator.state = state

    return bent_run(SGD, restore=restore)


@wrong(check_solver, r"state .* returns values that JSON can hold", "multiclass")
def StateNotPlain():
    def state(run, old):
        meta, arrays = old(run)
        return {**meta, "more": {1, 2}}, arrays

    return bent_run(BCFW, state=state)


@wrong(check_solver, r"continues from a state|describes the run", "multiclass")
def NoState():
    def state(run, old):
        raise NotImplementedError

    return bent_run(BCFW, state=state)


@wrong(check_solver, r"gives the same result for the same seed|bit for bit", "chain")
def RandomOfItsOwn():
    class Random(SGD):
        name = "random"

        def start(self, start):
            return super().start(replace(start, rng=np.random.default_rng()))

    return Random()


@wrong(check_solver, r"does not change the solver's parameters", "multiclass")
def SolverChanges():
    class Changes(BCFW):
        name = "changes"

        def start(self, start):
            setattr(self, self._param_names()[0], self.get_params()[self._param_names()[0]] or 1)
            self.passes = getattr(self, "passes", 0) + 1
            return super().start(start)

        def __repr__(self):
            return f"Changes({getattr(self, 'passes', 0)})"

    return Changes()


@wrong(check_solver, r"does not change examples \(nodes\)", "multiclass")
def ExamplesScaled():
    def step(run, old):
        run.given.problem.examples.nodes[...] *= 1.0 + 1e-9
        return old(run)

    return bent_run(BCFW, step=step)


@wrong(check_solver, r"closes the gap in \d+ passes", "multiclass")
def NeverArrives():
    def stays(run, old):
        problem = run.given.problem
        primal, calls = problem.primal(np.zeros(problem.dim), run.given.alpha)
        counts = {"certified": True, "oracle_calls": calls}
        return {"primal": primal, "dual": 0.0, "gap": primal, **counts}

    return bent_run(BCFW, step=stays, certify=stays, weights=lambda run, old: 0 * old(run))


@wrong(check_solver, r"state after pass \d+ breaks a promise.*bit for bit", "chain")
def StateLosesATerm():
    def state(run, old):
        meta, arrays = old(run)
        return {**meta, "b_total": 0.0}, arrays

    return bent_run(BCFW, state=state)


@wrong(check_solver, r"restore breaks a promise: it (restores all|has the weights)", "multiclass")
def StateNotAllTaken():
    def restore(run, old, meta, arrays):
        old(run, {**meta, "window_start": 0, "passes": 0}, arrays)

    return bent_run(BCFW, restore=restore)


def loses_the_best(run, old):
    meta, arrays = old(run)
    return {**meta, "best_primal": np.inf}, arrays


@wrong(check_solver, r"best weights and their primal are part of it|bit for bit", "multiclass")
def StateLosesTheBestPrimal():
    return bent_run(BCFW, state=loses_the_best)


@wrong(check_solver, r"best weights and their primal are part of it|bit for bit", "chain")
def StateLosesTheBestOfSteps():
    return bent_run(SGD, state=loses_the_best)


@wrong(check_solver, r"best weights and their primal are part of it|bit for bit", "chain")
def StateLosesTheBestOfCuts():
    return bent_run(CuttingPlane, state=loses_the_best)


@wrong(check_solver, r"weights breaks a promise: it returns a copy", "multiclass")
def WeightsAlive():
    return bent_run(BCFW, weights=lambda run, old: run.best_w)


@wrong(check_solver, r"weights breaks a promise: it returns a copy", "chain")
def WeightsOfTheLoop():
    return bent_run(BCFW, weights=lambda run, old: run.loop.w)


@wrong(check_solver, r"step breaks a promise: it counts its oracle calls", "multiclass")
def CallsNotCounted():
    def none(run, old):
        return {**old(run), "oracle_calls": 0}

    return bent_run(BCFW, step=none, certify=none)


@wrong(check_solver, r"step breaks a promise: it counts its oracle calls", "chain")
def CallsOfCertificatesNotCounted():
    return bent_run(CuttingPlane, step=lambda run, old: {**old(run), "oracle_calls": 1})


@wrong(check_solver, r"certifies some records", "multiclass")
def NeverCertified():
    return bent_run(BCFW, step=lambda run, old: _uncertified(old(run)))


def without_weights(start):
    """The start of a run, with equal examples."""
    problem = start.problem
    space, examples = problem._given
    bare = replace(examples, sample_weight=None)
    return replace(start, problem=type(problem)(space, bare, **problem._settings))


@wrong(check_solver, r"respects sample_weight", "chain")
def SampleWeightsIgnored():
    class Alike(BCFW):
        name = "alike"

        def start(self, start):
            return super().start(without_weights(start))

    return Alike()


@wrong(check_solver, r"respects sample_weight", "multiclass")
def SampleWeightsInThePrimalAlone():
    class Steps(SGD):
        name = "steps"

        def start(self, start):
            run = super().start(without_weights(start))
            old = type(run)

            def step(run):
                record = old.step(run)
                primal, calls = start.problem.primal(run.weights(), start.alpha)
                told = {"dual": None, "gap": None, "certified": False}
                calls += record["oracle_calls"]
                return {**record, **told, "primal": primal, "oracle_calls": calls}

            run.__class__ = type("StepsRun", (old,), {"step": step})
            return run

    return Steps()


@wrong(
    check_solver,
    r"start breaks a promise: it refuses problems that it declares .*needs_dual",
    "chain",
)
def CheckSkipped():
    class Unchecked(BCFW):
        name = "unchecked"

        def check(self, problem):
            pass

    return Unchecked()


@wrong(check_solver, r"refuses problems that it declares .*free_coordinates = False", "multiclass")
def InterceptPenalisedAnyway():
    class Unchecked(BCFW):
        name = "unchecked"
        needs_dual = False

        def check(self, problem):
            if not problem.surrogate.affine:
                super().check(problem)

    return Unchecked()


@wrong(check_solver, r"refuses problems that it declares .*needs_(convex|weights) = True", "chain")
def KernelsTaken():
    class Unchecked(SGD):
        name = "unchecked"

        def check(self, problem):
            pass

        check_kernel = check

    return Unchecked()


def closed(run, old):
    record = old(run)
    primal, _ = run.given.problem.primal(run.weights(), run.given.alpha)
    return {**record, "primal": primal, "dual": primal, "gap": 0.0, "certified": True}


@wrong(check_solver, r"training by 'liar': step breaks a promise: it has a dual below", "chain")
def DualIsThePrimal():
    return bent_run(CuttingPlane, step=closed, certify=closed)


@wrong(check_solver, r"(respects sample_weight|gets close to the optimum).*in \d+ passes", "chain")
def StandsStill():
    def stays(run, old):
        primal, calls = run.given.problem.primal(run.weights(), run.given.alpha)
        return {"primal": primal, "dual": None, "gap": None, "oracle_calls": calls}

    def weights(run, old):
        return np.zeros(run.given.problem.dim)

    return bent_run(SGD, step=stays, certify=stays, weights=weights)


# -- surrogates -----------------------------------------------------------------------------------


@wrong(check_surrogate, r"bind .* makes a native surrogate of a task.*AttributeError")
def BindsNothing():
    class Nothing(Margin):
        def bind(self, task):
            return task.nothing

    return Nothing()


def of_space(surrogate, message, **methods):
    """Collect a surrogate of a chain whose operators are wrong."""
    name = "".join([type(surrogate).__name__, "Of", *(m.__name__ for m in methods.values())])

    def make():
        return surrogate

    make.__name__ = name
    KITS.append((check_surrogate, name, make, (py_chain(**methods),), {}, message))


def SecondBest(self, examples, i, theta):
    return self.ranked(examples, i, theta)[0][:2][-1]


def TheWorst(self, examples, i, theta):
    return self.ranked(examples, i, theta)[0][-1]


def PartsTurned(self, examples, i, label):
    mu = PyChainSpace.parts(self, examples, i, label)
    return {**mu, "transition": mu["transition"].T}


of_space(
    Margin(), r"is convex: no cut lies above the bound elsewhere|is at least 0", argmax=SecondBest
)
of_space(
    Margin(), r"is convex: no cut lies above the bound elsewhere|is at least 0", argmax=TheWorst
)
of_space(Slack(), r"is convex|is at least 0|is exact|at least its cut", argmax=TheWorst)
of_space(
    Margin(),
    r"is convex|is exact, so its bound|at least its cut|at least 0|slope",
    parts=PartsTurned,
)


# -- readers and metrics --------------------------------------------------------------------------

ROWS = tempfile.NamedTemporaryFile("w+", suffix=".rows")  # noqa: SIM115  it goes with the process
ROWS.write("1 a\n2 b\n3 a\n")
ROWS.flush()


class Rows(Reader):
    """A number and a label on each line."""

    endings = (".rows",)

    def __init__(self, shift=None):
        self.shift = shift

    def fit(self, path):
        self.shift = 1.0
        return self.read(path)

    def read(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                rows = [line.split() for line in file]
            return [[float(row[0]) + self.shift] for row in rows], [row[1] for row in rows]
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}: {error}") from None


def reader(message, **methods):
    """Collect a reader with other methods or attributes."""
    name = "Reader" + "".join(
        part.title() for key in methods for part in (key, getattr(methods[key], "__name__", ""))
    )
    name = name.replace("<Lambda>", "")

    def make():
        return type(name, (Rows,), methods)()

    KITS.append((check_reader, f"{name}{len(KITS)}", make, (ROWS.name,), {}, message))


def keeps_elsewhere(self, path):
    self.other = 2.0
    return Rows.fit(self, path)


def forgets(self, path):
    X, y = Rows.read(self, path)
    return [[row[0] + getattr(self, "other", 0.0)] for row in X], y


def learns(self, path):
    self.shift += 1e-9
    return Rows.read(self, path)


def bare(self, path):
    with open(path, "rb") as file:
        return [[float(line.split()[0]) + self.shift] for line in file], list("aba")


def nameless(self, path):
    try:
        return bare(self, path)
    except (ValueError, IndexError):
        raise ValueError("a line is broken") from None


def silent(self, path):
    return Rows.read(self, path) if os.path.exists(path) else ([], [])


reader(r"fit gives a label for each example", fit=lambda self, path: ([[1.0], [2.0]], ["a"]))
reader(r"fit gives a label for each example", fit=lambda self, path: ([[1.0], [2.0]], None))
reader(r"stores all that it learned in its parameters", fit=keeps_elsewhere, read=forgets)
reader(r"read gives the same result as fit|does not change parameters", read=learns)
reader(r"raises a ValueError for a file that is (cut|noise)|names the file", read=bare)
reader(r"names the file that it cannot read", read=nameless)
reader(r"raises if there is no file", read=silent)
reader(r"endings is a tuple, lower case, with the dot", endings=(".ROWS",))
reader(r"endings is a tuple", endings=".rows")
reader(r"sniff returns True or False", sniff=classmethod(lambda cls, path, head: None))


def metric(message, structure="chain"):
    """Collect a scorer."""

    def collect(function):
        KITS.append((check_metric, function.__name__, lambda: function, (structure,), {}, message))
        return function

    return collect


def _right(model, X, y):
    return float(np.mean([np.mean(np.equal(a, b)) for a, b in zip(model.predict(X), y)]))


@metric(r"greater is better")
def LessIsBetter(model, X, y):
    return 1 - _right(model, X, y)


@metric(r"gives a finite float")
def MetricOfAll(model, X, y):
    return np.array([_right(model, X, y)])


@metric(r"gives a finite float")
def MetricNotFinite(model, X, y):
    return float("nan")


@metric(r"answers for labels of the structure.*(Type|Value)Error")
def MetricOfNumbers(model, X, y):
    return float(np.mean(model.predict(X)[0] - y))


@metric(r"gives the same twice")
def MetricAtRandom(model, X, y):
    return _right(model, X, y) + float(np.random.default_rng().normal())


@metric(r"does not depend on the order")
def MetricOfTheFirst(model, X, y):
    return _right(model, X[:1], y[:1])


@metric(r"does not depend on the order")
def MetricOfOne(model, X, y):
    return float(np.array_equal(model.predict(X[:1])[0], y[0]))


@metric(r"is less for other labels than for the predicted ones")
def MetricOfNothing(model, X, y):
    return float(len(X))


@metric(r"does not change X and y")
def MetricCorrects(model, X, y):
    value = _right(model, X, y)
    y[0] = model.predict(X[:1])[0]
    return value


@metric(r"does not change X and y")
def MetricSorts(model, X, y):
    value = _right(model, X, y)
    for label in y:
        label.sort()
    return value


@metric(r"does not change the model")
def MetricFits(model, X, y):
    value = _right(model, X, y)
    model.fit(X, [label[::-1] for label in y])
    return value


# -- searches: what they declare is not what they do -----------------------------------------------


def search(message, structure="chain"):
    """Collect a search."""

    def collect(kind):
        KITS.append((check_search, kind.__name__, kind, (structure,), {}, message))
        return kind

    return collect


@search(r"makes at most max_calls oracle calls")
class SearchOfOneCall(ConvexHull):
    max_calls = 1


@search(r"is fractional, so it finds the best mixture|no mixture exceeds|returns a label")
class SearchOfMixtures(Bisecting):
    fractional = True


@search(r"gives a bound that no label exceeds|counts, so it finds the best label")
class SearchThatCounts(Binary):
    counting = True


@search(r"names itself if it refuses")
class SearchWithoutAName(Bisecting):
    def extra_bytes(self, plane, labels=None):
        raise ValueError("not this one")


@search(r"is bound to a task, or refuses it with a ValueError.*RuntimeError")
class SearchThatRaises(ConvexHull):
    def extra_bytes(self, plane, labels=None):
        raise RuntimeError("no memory")


@search(r"keeps (name|max_calls|tol) in a copy")
class SearchCopiedHalf(ConvexHull):
    def __init__(self, max_calls=7):
        super().__init__(max_calls)

    def __reduce__(self):
        return type(self), (9,)

    def __deepcopy__(self, memo):
        return type(self)(9)
