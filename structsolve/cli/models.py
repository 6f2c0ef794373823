# Models of the shell: the structure and the estimator that the options of `fit` name.
from __future__ import annotations

import argparse
import contextlib
import inspect
from collections.abc import Sequence
from typing import Any

import structsolve
from structsolve import registry
from structsolve.cli.formats import parameters, reads
from structsolve.cli.options import UsageError, class_weight, path_settings, refuse, verbosity
from structsolve.cli.outside import families, formats
from structsolve.estimators.common import generator_of
from structsolve.evaluation.scorers import get_scorer_names
from structsolve.io import guess_format
from structsolve.io.graphs import read_hierarchy, read_network
from structsolve.protocols import Estimator, require
from structsolve.solvers.problem import Problem
from structsolve.structure.ask import loss_names
from structsolve.utils.suggest import did_you_mean

# Options that an estimator with a name of its own takes if it has the parameter.
OF_PARAMETERS = (
    "surrogate",
    "solver",
    "oracle",
    "alpha",
    "max_iter",
    "tol",
    "checkpoint",
    "n_jobs",
    "random_state",
    "kernel",
    "cache_size",
    "early_stopping",
    "scale_features",
    "class_weight",
    "loss",
)
# Options for which it has none.
OF_OTHERS = ("alphas", "cv", "scoring", "history", "kernel_param")

# Files for parameters of structures: names of options, and of parameters.
FILES = ("hierarchy", "network")
OF_STRUCTURES = (*FILES, "labels", "close")


def _file_params(structure: str | None) -> tuple[str, ...]:
    """Parameters of a structure that are read from files."""
    if structure is None:
        return ()
    factory = registry.default().factory_of("structures", structure)
    return tuple(getattr(factory, "file_params", ()))


def _structure_with(param: str, args: argparse.Namespace) -> str:
    """Name of the structure that takes such a file: the one given, or the first."""
    name = args.structure or registry.default().first_with(param)
    if name is None:
        raise UsageError(f"--{param}: no plugin has a structure that takes it")
    return str(name)


def _behind(args: argparse.Namespace, option: str) -> dict[str, Any]:
    """Parameters behind a name, as of ``dag:labels=closed``; refuse those that options set, too."""
    text = getattr(args, option) or ""
    named = registry.default().split(f"{option}s", text)[2]
    for name in named:
        flag = "no_intercept" if name == "fit_intercept" else name
        if flag in args.given or getattr(args, flag, None) is True:
            told = flag.replace("_", "-")
            raise UsageError(f"--{told} and --{option} {text}: expected one of them")
    return named


def file_format(args: argparse.Namespace) -> str | None:
    """Return the format that the structure requires, unless the file's holds any structure.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Returns
    -------
    str or None
        None if it takes any.
    """
    if args.structure is None:
        return None
    factory = registry.default().factory_of("structures", args.structure)
    own: str | None = getattr(factory, "file_format", None)
    with contextlib.suppress(ValueError):  # an ending that no format has
        if own and getattr(reads(guess_format(args.data)), "any_structure", False):
            return None
    return own


def brings_structure(args: argparse.Namespace, brings: Sequence[str]) -> bool:
    """Return whether the structure is made from its data files, such as a hierarchy in them.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    brings : sequence of str
        Parameters that the format's reader finds in data.

    Returns
    -------
    bool
    """
    return any(
        param in brings and getattr(args, param) is None for param in _file_params(args.structure)
    )


def check_model(args: argparse.Namespace, structure: Any) -> None:
    """Refuse names and numbers that the estimator does not take, before data are read.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    structure : Structure or str
        A name if the data decide.

    Raises
    ------
    ValueError
        As the estimator raises it.
    """
    known = registry.default()
    if not isinstance(structure, str):
        structure.check_params()
    if args.loss is not None:
        _check_loss(args.loss, structure)
    model = make_model(args, structure)
    if model is None:
        return
    margin = isinstance(model, structsolve.StructuredSVM)
    ours = hasattr(model, "_check_settings")  # estimators of other packages check in fit()
    if ours and (args.estimator == "margin" or args.estimator in families()):
        model._check_settings()
        model._kernel()
    if args.kernel is None:
        refuse(args, " is for kernels; give --kernel NAME with it", "cache_size")
    if margin:
        generator_of(args.random_state)
        solver = known.find("solvers", args.solver).factory()
        known.make("surrogates", args.surrogate)
        if args.kernel is not None:
            solver.check_kernel()
        model._check_combination(bool(args.validation or args.validation_split))
        problem = None if args.kernel else _problem_of(structure, args)
        if problem is not None:
            solver.check(problem)
    if args.oracle is not None:
        oracle = known.make("lp_backends", args.oracle)
        getattr(oracle, "check", lambda: None)()


def _problem_of(structure: Any, args: argparse.Namespace) -> Problem | None:
    """Return a problem on the structure's own examples; None if they do not fit the options."""
    with contextlib.suppress(NotImplementedError, ValueError):
        made = registry.get_structure(structure) if isinstance(structure, str) else structure
        space, examples = made.make_space(*made.sample(0))
        return Problem(space, examples, args.loss or "hamming", args.surrogate)
    return None


def _check_loss(loss: str, structure: Any) -> None:
    """Refuse a loss that neither a plugin nor the structure, on its own examples, knows."""
    known = {*registry.default().loss_names(), *registry.default().names("losses"), "auto"}
    if not isinstance(structure, str):
        # Examples of its own may not fit its parameters, or there may be none.
        with contextlib.suppress(NotImplementedError, ValueError):
            space, _ = structure.make_space(*structure.sample(0))
            known |= {*loss_names(space)}
    if loss.partition(":")[0] not in known and not registry.default().has("losses", loss):
        raise UsageError(
            f"--loss {loss!r}: unknown{did_you_mean(loss, known)}; expected one of "
            f"{sorted(known - {'auto'})}"
        )


def _check_scoring(scoring: str | None) -> None:
    """Refuse a score that neither structsolve nor scikit-learn has."""
    if scoring is None or registry.default().has("metrics", scoring):
        return
    from sklearn import metrics  # heavy

    ours = get_scorer_names()
    known = [*ours, *metrics.get_scorer_names()]
    if scoring not in known:
        raise UsageError(
            f"--scoring {scoring!r}: unknown{did_you_mean(scoring, known)}; expected one of "
            f"{', '.join(ours)}, or scikit-learn's for a label a row"
        )


def check_options(args: argparse.Namespace, brings: Sequence[str] = ()) -> None:
    """Refuse options that exclude each other, before data are read.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    brings : sequence of str
        Parameters that the format's reader finds in data, such as "hierarchy".

    Raises
    ------
    UsageError
        The message names the options.
    """
    if args.hierarchy is None and not brings_structure(args, brings):
        text = " is for hierarchies; give --hierarchy FILE with it"
        refuse(args, text, "labels", "close")
    for param in FILES:
        file, takes = getattr(args, param), param in _file_params(args.structure)
        if file is not None and args.structure is not None and not takes:
            names = registry.default().names("structures")
            known = " or ".join(name for name in names if param in _file_params(name))
            raise UsageError(f"--{param} is for structure {known}; found {args.structure}")
        if file is None and takes and param not in brings:
            raise UsageError(f"structure {args.structure} needs --{param} FILE")
    if args.hierarchy is not None and args.network is not None:
        raise UsageError("--hierarchy and --network: expected one of them")
    named = _behind(args, "structure")
    args.labels, args.close = named.get("labels", args.labels), named.get("close", args.close)
    class_weight(args.class_weight)
    if args.alphas is not None and args.alpha is not None:
        raise UsageError("--alpha and --alphas: expected one of them")
    for option, given in (("cv", args.cv), ("scoring", args.scoring)):
        if given is not None and args.alphas is None:
            raise UsageError(f"--{option} chooses among --alphas; found none")
    _check_scoring(args.scoring)
    if args.alphas is not None and (args.validation or args.validation_split):
        raise UsageError(
            "--alphas and --validation: expected one of them; --alphas chooses by folds of the "
            "data (--cv)"
        )
    if "path" in (args.alphas or ()) and len(args.alphas) > 1:
        raise UsageError("--alphas: path excludes other values")
    for name, family in families().items():
        if name != args.estimator:
            text = f" is for {family.ABOUT}; give --estimator {name} with it"
            if args.estimator != "margin":
                text = f": --estimator {args.estimator} has none"
            refuse(args, text, *family.OWN)
    if args.estimator in families():
        given = args.hierarchy is not None or brings_structure(args, brings)
        families()[args.estimator].check(args, given)


def check_data_options(args: argparse.Namespace, format: str, selecting: dict[str, Any]) -> None:
    """Refuse options that do not apply to the data's format.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    format : str
    selecting : dict
        Parameters that choose examples, see :func:`settings`.

    Raises
    ------
    UsageError
        The message names the option.
    """
    for name, module in formats().items():
        getattr(module, "check", lambda _: None)(args)
        if name != format:
            refuse(args, f" is for {name} data; found {format}", *module.OWN)
    if format != "svmlight":
        refuse(args, f" is for svmlight data; found {format}", "zero_based")
    if getattr(reads(format), "named_features", False):
        refuse(args, f" is for data with numbers; found {format}", "missing")
    if args.validation or args.validation_split:
        text = "selects examples of the data, not those to validate with: `structsolve convert`"
        for name in ("where", "rows"):
            if selecting.get(name) is not None:
                raise UsageError(f"--{name} {text} writes the ones wanted to a file")
    if args.validation_split and "split" not in parameters(reads(format)):
        raise UsageError(f"--validation-split: {format} data have no named parts")


def make_structure(args: argparse.Namespace, hierarchy: Any = None) -> Any:
    """Make the structure that the options name; a hierarchy's labels may still change.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    hierarchy : dict, optional
        The hierarchy in the data, if the options name no file.

    Returns
    -------
    Structure or None
        None if the data decide.
    """
    if args.hierarchy is not None or hierarchy is not None:
        return structsolve.get_structure(
            _structure_with("hierarchy", args),
            hierarchy=read_hierarchy(args.hierarchy) if hierarchy is None else hierarchy,
            labels=args.labels or "single-leaf",
            close=args.close,
        )
    if args.network is not None:
        name = _structure_with("network", args)
        return structsolve.get_structure(name, network=read_network(args.network))
    return structsolve.get_structure(args.structure) if args.structure else None


def settle_labels(structure: Any, y: Any, args: argparse.Namespace) -> None:
    """Read a matrix of indicators as label sets, unless the options set the kind of labels.

    Parameters
    ----------
    structure : Structure
        Changed in place.
    y : array or list
        The labels.
    args : Namespace
        Options of ``fit``.
    """
    sets = args.labels is None and getattr(y, "ndim", 1) == 2
    if sets and hasattr(structure, "hierarchy"):
        structure.labels = "closed"


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
    family = families().get(args.estimator)
    if family is not None:
        return family.make_model(args, structure)
    if args.estimator != "margin":
        return _make_named(args, structure)
    chooses = args.alphas is not None
    estimator = structsolve.StructuredSVMCV if chooses else structsolve.StructuredSVM
    return estimator(structure, **path_settings(args))


def needs_labels(args: argparse.Namespace) -> bool:
    """Return whether the estimator needs labels; hidden Markov models learn without.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Returns
    -------
    bool
    """
    if args.estimator == "margin" or args.estimator in families():
        return True
    y = inspect.signature(_class_named(args)[1].fit).parameters.get("y")
    return y is None or y.default is inspect.Parameter.empty


def _class_named(args: argparse.Namespace) -> tuple[str, Any]:
    """Return the name and the class of a plugin's estimator, which can be trained and saved."""
    name = registry.default().split("estimators", args.estimator)[0]
    estimator = registry.default().class_of("estimators", name)
    require(estimator, Estimator, f"estimator {name!r}")
    return name, estimator


def _make_named(args: argparse.Namespace, structure: Any) -> Any:
    """Make an estimator of a plugin: it takes the options whose parameters it has."""
    name, estimator = _class_named(args)
    named = _behind(args, "estimator")
    if "structure" in named:
        raise UsageError(f"--estimator {args.estimator}: give --structure NAME")
    takes = inspect.signature(estimator).parameters
    text = f": --estimator {name} has no such parameter"
    if args.validation or args.validation_split:
        raise UsageError(f"--validation{text}")
    refuse(args, text, *OF_OTHERS, *(option for option in OF_PARAMETERS if option not in takes))
    given = {
        option: getattr(args, option)
        for option in OF_PARAMETERS
        if option in takes
        and (option in args.given or getattr(args, option) != args.default_of(option))
    }
    if "class_weight" in given:
        given["class_weight"] = class_weight(given["class_weight"])
    if "structure" in takes:
        given["structure"] = structure
    else:  # its name says how data are read; the rest is a parameter, or none
        refuse(args, text, *(option for option in OF_STRUCTURES if option not in takes))
        own = [name for name in OF_STRUCTURES if name in takes and hasattr(structure, name)]
        given |= {name: getattr(structure, name) for name in own}
    if "fit_intercept" in takes:
        given["fit_intercept"] = not args.no_intercept
    else:
        refuse(args, text, "no_intercept")
    given |= {"verbose": verbosity(args)} if "verbose" in takes else {}
    given = {name: value for name, value in given.items() if name not in named}
    return registry.default().make("estimators", args.estimator, **given)
