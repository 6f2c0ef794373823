# What the shell trains: the structure and the estimator that the options of `fit` name.
from __future__ import annotations

import argparse
from typing import Any

import structsolve
from structsolve import registry
from structsolve.cli.options import UsageError, kernel_params
from structsolve.io.graphs import read_hierarchy, read_network

# What files hold that structures are made of: names of options, and of parameters.
FILES = ("hierarchy", "network")

# Options of margin estimators alone, with their defaults.
MARGIN_ONLY = {"surrogate": "margin", "solver": "bcfw", "max_iter": 100, "tol": 1e-3}
MARGIN_ONLY |= {"oracle": None, "normalization": None, "checkpoint": None, "history": None}
MARGIN_ONLY |= {"early_stopping": False, "cache_size": 200, "n_hidden": None}


def _file_params(structure: str | None) -> tuple[str, ...]:
    """Parameters of a structure that are read from files."""
    if structure is None:
        return ()
    factory = registry.default().factory_of("structures", structure)
    return tuple(getattr(factory, "file_params", ()))


def _structure_with(param: str, args: argparse.Namespace) -> str:
    """Name of the structure that takes such a file: the one given, or the first there is."""
    name = args.structure or registry.default().first_with(param)
    if name is None:
        raise UsageError(f"--{param}: no plugin brings a structure that takes it")
    return str(name)


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, before data are read.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Raises
    ------
    UsageError
        It names the options.
    """
    if args.hierarchy is None:
        text = " is for hierarchies; give --hierarchy FILE with it"
        _refuse(args, text, normalization=None, labels=None, close=False)
    for param in FILES:
        file, takes = getattr(args, param), param in _file_params(args.structure)
        if file is not None and args.structure is not None and not takes:
            names = registry.default().names("structures")
            known = " or ".join(name for name in names if param in _file_params(name))
            raise UsageError(f"--{param} is for structure {known}; found {args.structure}")
        if file is None and takes:
            raise UsageError(f"structure {args.structure} needs --{param} FILE")
    if args.hierarchy is not None and args.network is not None:
        raise UsageError("--hierarchy and --network: expected one of them")
    if args.n_hidden is not None:
        if args.normalization is not None:
            raise UsageError("--n-hidden and --normalization: expected one of them")
        text = ": --n-hidden trains a LatentSVM, which has none"
        _refuse(args, text, kernel=None, kernel_param=None, cache_size=200, early_stopping=False)
    if args.estimator != "risk":
        text = " is for conditional risk; give --estimator risk with it"
        _refuse(args, text, alphas=None, cv=None, feature_map=None, joint_kernel=False)
        return
    if args.alphas is not None and args.alpha is not None:
        raise UsageError("--alpha and --alphas: expected one of them")
    if args.cv is not None and args.alphas is None:
        raise UsageError("--cv chooses among --alphas; found none")
    if args.joint_kernel and args.hierarchy is None:
        raise UsageError("--joint-kernel is for hierarchies; give --hierarchy FILE with it")
    _refuse(args, ": --estimator risk has none, it solves one linear system", **MARGIN_ONLY)


def _refuse(args: argparse.Namespace, text: str, **defaults: Any) -> None:
    """Refuse options that are not at their defaults."""
    for name, default in defaults.items():
        if getattr(args, name) != default:
            raise UsageError(f"--{name.replace('_', '-')}{text}")


def make_structure(args: argparse.Namespace) -> Any:
    """Make the structure that the options name; a hierarchy's labels may still change.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Returns
    -------
    Structure or None
        None where the data decide.
    """
    if args.hierarchy is not None:
        return structsolve.get_structure(
            _structure_with("hierarchy", args),
            hierarchy=read_hierarchy(args.hierarchy),
            labels=args.labels or "single-leaf",
            close=args.close,
        )
    if args.network is not None:
        name = _structure_with("network", args)
        return structsolve.get_structure(name, network=read_network(args.network))
    return structsolve.get_structure(args.structure) if args.structure else None


def settle_labels(structure: Any, y: Any, args: argparse.Namespace) -> None:
    """Let a matrix of indicators mean label sets, unless the options say which labels.

    Parameters
    ----------
    structure : Structure
        Changed in place.
    y : array or list
        The labels.
    args : Namespace
        Options of ``fit``.
    """
    if args.hierarchy is not None and args.labels is None and getattr(y, "ndim", 1) == 2:
        structure.labels = "closed"


def make_feature_map(args: argparse.Namespace) -> Any:
    """Make scikit-learn's features for the kernel that the options name.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Returns
    -------
    transformer or None
        None for the kernel itself.

    Raises
    ------
    UsageError
        For an unknown map, or parameters that it does not take.
    """
    if args.feature_map is None:
        return None
    from sklearn.kernel_approximation import Nystroem, RBFSampler  # heavy

    name, _, number = args.feature_map.partition(":")
    if name not in ("nystroem", "rff") or not number.isdecimal() or int(number) < 1:
        raise UsageError(
            f"--feature-map {args.feature_map!r}: expected nystroem:N or rff:N, such as "
            "nystroem:300"
        )
    params = kernel_params(args.kernel_param) or {}
    common = {"n_components": int(number), "random_state": args.random_state}
    if name == "rff":
        if (args.kernel or "rbf") != "rbf" or set(params) - {"gamma"}:
            raise UsageError("--feature-map rff: is for kernel rbf, with gamma alone")
        return RBFSampler(**params, **common)
    return Nystroem(args.kernel or "rbf", kernel_params=params or None, **common)


def make_model(args: argparse.Namespace, structure: Any) -> Any:
    """Make the estimator, not fitted.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    structure : Structure or str

    Returns
    -------
    estimator
    """
    if args.estimator == "risk":
        feature_map = make_feature_map(args)
        return structsolve.ConditionalRiskMinimizer(
            structure,
            loss=args.loss or "hamming",
            alpha=1e-2 if args.alpha is None else args.alpha,
            alphas=args.alphas,
            cv=args.cv,
            kernel=(args.kernel or "rbf") if feature_map is None else None,
            kernel_params=kernel_params(args.kernel_param) if feature_map is None else None,
            feature_map=feature_map,
            joint_kernel=structure.hierarchy if args.joint_kernel else None,
            fit_intercept=not args.no_intercept,
            n_jobs=args.n_jobs,
        )
    common = {
        "surrogate": args.surrogate,
        "solver": args.solver,
        "oracle": args.oracle,
        "alpha": 1e-3 if args.alpha is None else args.alpha,
        "max_iter": args.max_iter,
        "tol": args.tol,
        "fit_intercept": not args.no_intercept,
        "checkpoint": args.checkpoint,
        "n_jobs": args.n_jobs,
        "random_state": args.random_state,
        "verbose": int(args.verbose),
    }
    if args.n_hidden is not None:
        return structsolve.LatentSVM(
            structure, n_hidden=args.n_hidden, loss=args.loss or "hamming", **common
        )
    common |= {
        "kernel": args.kernel,
        "kernel_params": kernel_params(args.kernel_param),
        "cache_size": args.cache_size,
        "early_stopping": args.early_stopping,
    }
    if args.normalization is None:
        return structsolve.StructuredSVM(structure, loss=args.loss or "hamming", **common)
    return structsolve.HierarchicalSVM(
        structure.hierarchy,
        normalization=args.normalization,
        labels=structure.labels,
        close=args.close,
        structure_name=args.structure,
        loss=args.loss or "auto",
        **common,
    )
