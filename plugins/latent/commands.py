"""``structsolve fit --n-hidden N``: its option, checks and the model; imports little."""

from __future__ import annotations

import argparse
from typing import Any

import structsolve
from structsolve.cli.options import UsageError, refuse, svm_settings

#: For messages.
ABOUT = "hidden states"
#: Options that only this estimator takes.
OWN = ("n_hidden",)
#: The option that stands for ``--estimator latent``.
CHOSEN_BY = "n_hidden"
#: Options that it does not take.
REFUSED = ("kernel", "kernel_param", "cache_size", "early_stopping", "alphas", "scale_features")


def add_options(group: Any) -> None:
    """Add the option of :data:`OWN`.

    Parameters
    ----------
    group : argument group of argparse
    """
    group.add_argument(
        "--n-hidden", type=int, metavar="N", help="LatentSVM: N hidden states in every class"
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
    if args.class_weight is not None:
        raise UsageError("--class-weight: not with --n-hidden; give a --loss or weigh examples")
    refuse(args, ": --n-hidden trains a LatentSVM, which has none", *REFUSED)


def make_model(args: argparse.Namespace, structure: Any) -> Any:
    """Make the estimator, not fitted.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    structure : Structure or str

    Returns
    -------
    LatentSVM
    """
    n_hidden = 1 if args.n_hidden is None else args.n_hidden
    loss = args.loss or "hamming"
    return structsolve.LatentSVM(structure, n_hidden=n_hidden, loss=loss, **svm_settings(args))
