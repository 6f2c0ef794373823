"""Solvers that each break one promise, with the message."""

from dataclasses import replace

import numpy as np
from kit_collector import collector

from structsolve.solvers import BCFW, SGD, CuttingPlane
from structsolve.testing import check_solver

KITS, wrong = collector()


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
