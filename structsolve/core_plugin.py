"""The core as a plugin: node losses, adapters for Python structures, surrogates and solvers."""

from __future__ import annotations

import inspect
from functools import partial

from . import registry, surrogates
from .evaluation.scorers import OURS, make_scorer
from .hookspecs import BOUND_BEFORE, Lazy, Named, hookimpl
from .io.archives import ArchiveReader
from .io.ndjson import NdjsonReader
from .io.tables import TableReader
from .lp import Cvxpy, Highs
from .projections.choose import node_closed_form
from .search.angular import Angular
from .search.exact import Counting
from .search.hull import ConvexHull
from .search.scalar import Binary, Bisecting, SarawagiGupta
from .solvers import (
    AROW,
    BCFW,
    GBCFW,
    LBFGS,
    SDCA,
    SGD,
    Auto,
    ConsensusADMM,
    CuttingPlane,
    PassiveAggressive,
    Perceptron,
    Smoothing,
)
from .structure.base import Space, inherits
from .structure.losses import ClassWeights, CostMatrix
from .structure.python_operators import POWERS, PythonLoss, PythonOracle, PythonParts
from .structure.python_projection import PythonProjection
from .structure.task_loss import named_losses

# The space's own methods answer: in plain Python, through adapters, or make_oracle() and so on.
# If a class of spaces has none, these call the plugin that declares its operators.


@hookimpl
def structsolve_oracle(space):
    if hasattr(space, "argmax"):
        return partial(PythonOracle, space)
    return space.make_oracle()


@hookimpl
def structsolve_power(space, power):
    if hasattr(space, "argmax"):
        method, operator = POWERS.get(power, ("", None))
        return partial(operator, space) if method and hasattr(space, method) else None
    return space.make_power(power)


@hookimpl
def structsolve_parts(space):
    if hasattr(space, "parts"):
        return partial(PythonParts, space)
    return space.make_parts()


@hookimpl
def structsolve_projection(space, regularizer):
    if hasattr(space, "project") and regularizer in getattr(space, "projections", ("entropy",)):
        return partial(PythonProjection, space, regularizer)
    return space.make_projection(regularizer)


@hookimpl
def structsolve_polytope(space, examples):
    if hasattr(space, "polytopes"):
        return lambda layout: space.polytopes(layout.examples)
    return _made_by(space, "make_polytopes", "structsolve_polytope", examples=examples)


@hookimpl
def structsolve_max_min(space, loss, layout):
    made = _made_by(space, "make_max_min", "structsolve_max_min", loss=loss, layout=layout)
    return node_closed_form(space, loss) if made is None else made


def _made_by(space, method, hook, **given):
    """Return what a method or a declaration makes, which in contract 1.0 was bound."""
    if inherits(space, Space, method):
        return registry.default().declared(hook, space=space, **given)
    own, former = getattr(space, method), given.pop(BOUND_BEFORE[hook])
    try:
        inspect.signature(own).bind(*given.values())
    except TypeError:
        return own(*given.values(), former)
    return own(*given.values())


@hookimpl
def structsolve_loss(space, loss):
    named = named_losses(space)
    if isinstance(loss, str) and loss in named:
        return named[loss].bind(space)
    if hasattr(space, "loss") and loss in getattr(space, "loss_names", ("hamming",)):
        return partial(PythonLoss, space, None)
    return space.make_loss(loss)


@hookimpl
def structsolve_losses():
    return [
        "hamming",
        "normalized-hamming",
        "zero-one",
        Named("CostMatrix", CostMatrix, "cost of each class for each true class"),
        Named("ClassWeights", ClassWeights, "errors weighed by the true class"),
    ]


@hookimpl
def structsolve_surrogates():
    return [
        Named("margin", surrogates.Margin, "margin rescaling (structured hinge)"),
        Named("lp", surrogates.LP, "margin over the linear relaxation of labels"),
        Named("unit-margin", surrogates.UnitMargin, "margins of 1 in units of the loss, 1 + h / g"),
        Named("slack", surrogates.Slack, "slack rescaling, (1 + h) g"),
        Named("generalized", surrogates.Generalized, "generalized:ALPHA,BETA, h g^BETA + g^ALPHA"),
        Named("beta", surrogates.Beta, "beta:BETA, h g^BETA + g"),
        Named("log", surrogates.Log, "loss-scaled log loss"),
        Named("probloss", surrogates.ProbLoss, "ProbLoss, convex; probloss:0 as it is printed"),
        Named("crf", surrogates.CRF, "conditional random field: log-loss"),
        Named("sparsemap", surrogates.SparseMAP, "squared norm of the node marginals"),
        Named("max-min", surrogates.MaxMin, "max-min margin (M4N)"),
        Named("micro-f1", surrogates.MicroF1, "micro-f1 or micro-f1:BACKGROUND, 1 - F1"),
    ]


@hookimpl
def structsolve_searches():
    return [
        Named("convex-hull", ConvexHull, "the hull of the label plane, by any oracle"),
        Named("angular", Angular, "within cones of the label plane, by an oracle of these"),
        Named("bisecting", Bisecting, "bisects bounds of psi"),
        Named("binary", Binary, "binary search of the multiplier"),
        Named("sarawagi", SarawagiGupta, "line search of the multiplier, only slack rescaling"),
        Named("exact", Counting, "the best label for every value of the loss"),
    ]


@hookimpl
def structsolve_lp_backends():
    def highs(tolerance=None, **settings):
        return Highs(tolerance=tolerance, **settings)

    return [
        Named("lp", highs, "linear programs by HiGHS, warm; lp:TOLERANCE,OPTION=VALUE"),
        Named("ilp", partial(highs, integer=True), "integer programs by HiGHS; ilp:..."),
        Named("cvxpy", Cvxpy, "cvxpy:SOLVER,OPTION=VALUE, by any solver that cvxpy finds"),
        Named("cvxpy-ilp", partial(Cvxpy, integer=True), "cvxpy-ilp:..., integer programs"),
    ]


@hookimpl
def structsolve_solvers():
    return [
        Named("auto", Auto, "bcfw, admm or others, whichever trains soonest: the default"),
        Named("bcfw", BCFW, "block-coordinate Frank-Wolfe with cached pairwise steps"),
        Named("gbcfw", GBCFW, "block-coordinate Frank-Wolfe for crf, sparsemap, max-min"),
        Named("sdca", SDCA, "stochastic dual coordinate ascent for crf and sparsemap"),
        Named("cutting-plane", CuttingPlane, "one-slack or n-slack cutting planes (BMRM)"),
        Named("admm", ConsensusADMM, "rounds over shards of the examples, one thread each"),
        Named("smoothing", Smoothing, "quasi-Newton steps on the smoothed margin of classes"),
        Named("lbfgs", LBFGS, "quasi-Newton steps for smooth surrogates; L1, elastic net"),
        Named("sgd", SGD, "stochastic subgradient (Pegasos) with averaging"),
        Named("perceptron", Perceptron, "averaged perceptron: quick, without a certificate"),
        Named("passive-aggressive", PassiveAggressive, "its steps by the margin, as quick"),
        Named("arow", AROW, "the same with a variance for each weight, as quick"),
    ]


@hookimpl
def structsolve_metrics():
    return [Named(name, partial(make_scorer, name)) for name in OURS]


@hookimpl
def structsolve_readers():
    return [
        Named("npz", ArchiveReader, "NumPy archives: splits, sparse labels, rankings, ..."),
        Named("csv", TableReader, "tables, one example a line"),
        Named("ndjson", NdjsonReader, "a JSON object a line: examples and labels of any form"),
    ]


@hookimpl
def structsolve_estimators():
    home = Lazy("structsolve.estimators.structured_svm:StructuredSVM")
    return [Named("StructuredSVM", home, "any structure, surrogate and loss")]
