"""``structsolve fit --normalization RULE``: its option, checks and the model; imports little."""

from __future__ import annotations

import argparse
from typing import Any

import structsolve
from structsolve.cli.options import UsageError, path_settings

#: For messages.
ABOUT = "hierarchies"
#: Options that only this estimator takes.
OWN = ("normalization",)
#: The option that stands for ``--estimator hierarchical``.
CHOSEN_BY = "normalization"


def add_options(group: Any) -> None:
    """Add the option of :data:`OWN`.

    Parameters
    ----------
    group : argument group of argparse
    """
    group.add_argument(
        "--normalization", metavar="RULE", help="HierarchicalSVM: rho:2, maxmin, ..."
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
    if not hierarchy:
        option = "--estimator hierarchical" if args.normalization is None else "--normalization"
        raise UsageError(f"{option} is for hierarchies; give --hierarchy FILE with it")
    if args.normalization == "learned" and (args.validation or args.validation_split):
        raise UsageError("--validation: this estimator trains without validation; use score")


def make_model(args: argparse.Namespace, structure: Any) -> Any:
    """Make the estimator, not fitted.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    structure : Structure or str

    Returns
    -------
    HierarchicalSVM, HierarchicalSVMCV or None
        None if the hierarchy is in the data, which are not read yet.
    """
    if isinstance(structure, str):
        return None
    chooses = args.alphas is not None
    estimator = structsolve.HierarchicalSVMCV if chooses else structsolve.HierarchicalSVM
    return estimator(
        structure.hierarchy,
        normalization="none" if args.normalization is None else args.normalization,
        labels=structure.labels,
        close=args.close,
        structure_name=args.structure,
        **path_settings(args),
    )


def report(model: Any, data: Any, args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the scores of ``structsolve score`` for tables of levels.

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
    Report or None
        The hierarchical scores, and the share of right paths; None for other labels.
    """
    if getattr(getattr(model, "space_", None), "levels", None) is None:
        return None
    from structsolve.plugins.dag.metrics import hierarchical_scores  # heavy

    report = hierarchical_scores(data.y, model.predict(data.X))
    report["right_paths"] = float(model.score(data.X, data.y, metric="accuracy"))
    return report


def figures(
    model: Any, data: Any, truth: list[Any], guess: list[Any], args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Return the hierarchical scores of single leaves, for ``structsolve score``.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
        What the shell has read.
    truth, guess : list of list
    args : Namespace
        Options of ``score``.

    Returns
    -------
    report : dict
        With ``hierarchical``, or empty.
    lines : list of str
        Empty: the report's table has a row for it.
    """
    if not getattr(getattr(model, "space_", None), "single", False):
        return {}, []
    from structsolve.plugins.dag.metrics import HierarchicalScorer  # heavy

    row = {
        name: HierarchicalScorer(name)(model, data.X, data.y)
        for name in ("precision", "recall", "f1")
    }
    return {"hierarchical": {**row, "support": len(truth)}}, []
