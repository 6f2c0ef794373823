"""``structsolve fit --estimator risk``: options, checks and the model; imports little."""

from __future__ import annotations

import argparse
from typing import Any

import structsolve
from structsolve.cli.options import UsageError, class_weight, kernel_params, refuse

#: For messages.
ABOUT = "conditional risk"
#: Options that only this estimator takes.
OWN = ("feature_map", "joint_kernel")
#: Options that it does not take.
REFUSED = (
    "surrogate",
    "solver",
    "max_iter",
    "tol",
    "oracle",
    "checkpoint",
    "history",
    "scale_features",
    "scoring",
    "early_stopping",
    "cache_size",
)


def add_options(group: Any) -> None:
    """Add the options of :data:`OWN`.

    Parameters
    ----------
    group : argument group of argparse
    """
    group.add_argument(
        "--feature-map", metavar="NAME:N", help="risk: N features for the kernel, nystroem or rff"
    )
    group.add_argument(
        "--joint-kernel", action="store_true", help="risk: couple neighbours in --hierarchy"
    )


def check(args: argparse.Namespace, hierarchy: bool) -> None:
    """Refuse options that the estimator does not take, before data are read.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    hierarchy : bool
        Whether a hierarchy is given, or comes with the data.

    Raises
    ------
    UsageError
        The message names the option.
    """
    if args.validation or args.validation_split:
        raise UsageError("--validation: this estimator trains without validation; use score")
    if "path" in (args.alphas or ()):
        raise UsageError("--alphas: path excludes other values and --estimator risk")
    if args.joint_kernel and not hierarchy:
        raise UsageError("--joint-kernel is for hierarchies; give --hierarchy FILE with it")
    refuse(args, ": --estimator risk has none, it solves one linear system", *REFUSED)


def make_model(args: argparse.Namespace, structure: Any) -> Any:
    """Make the estimator, not fitted.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    structure : Structure or str

    Returns
    -------
    ConditionalRiskMinimizer or None
        None if a parameter is in the data, which are not read yet.
    """
    if args.joint_kernel and isinstance(structure, str):
        return None
    return structsolve.ConditionalRiskMinimizer(
        structure,
        loss=args.loss or "hamming",
        class_weight=class_weight(args.class_weight),
        alpha="auto" if args.alpha is None else args.alpha,
        alphas=args.alphas,
        cv=args.cv,
        kernel=args.kernel or "rbf",
        kernel_params=kernel_params(args.kernel_param),
        feature_map=args.feature_map or "auto",
        joint_kernel=structure.hierarchy if args.joint_kernel else None,
        fit_intercept=not args.no_intercept,
        n_jobs=args.n_jobs,
        random_state=args.random_state,
    )


def trained_text(model: Any) -> str:
    """Return what training gave, for the line "trained".

    Parameters
    ----------
    model : ConditionalRiskMinimizer
        Fitted.

    Returns
    -------
    str
    """
    losses = getattr(model, "cv_losses_", None)
    told = "" if losses is None else f", held-out loss {losses.min():.4g}"
    return f"conditional risk: alpha {model.alpha_:g}{told}"


class MeanLoss(dict):
    """The mean loss of continuous labels: a dict that prints as a line."""

    def __str__(self) -> str:
        return f"mean {self.name} loss {self['loss']:.6g} of {self['examples']} examples"

    name = ""


def report(model: Any, data: Any, args: argparse.Namespace) -> MeanLoss | None:
    """Return the mean loss of continuous labels, which only their loss can compare.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
        What the shell has read.
    args : Namespace
        Options of ``score``.

    Returns
    -------
    MeanLoss or None
        None for other labels.
    """
    if not hasattr(model, "risk_bound") or not isinstance(model.loss, str):
        return None
    if model.loss not in getattr(model.space_.structure, "continuous_losses", ()):
        return None
    made = MeanLoss(loss=-float(model.score(data.X, data.y)), examples=len(data.y))
    made.name = model.loss
    return made
