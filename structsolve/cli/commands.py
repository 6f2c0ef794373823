# Commands of the shell: fit, predict, score, plugins, demo, bench.
from __future__ import annotations

import argparse
import importlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any

import structsolve
from structsolve.cli import messages, output
from structsolve.cli.formats import check_format, guess, parameters, reads, settings
from structsolve.cli.options import UsageError, check_outputs, class_weight, reader_options
from structsolve.cli.outside import (
    ask_scores,
    families,
    formats,
    refuse_scores,
    scores,
    settle_estimator,
)
from structsolve.io._text import atomic_write
from structsolve.protocols import ShellModule, require
from structsolve.structure.pack import structure_of
from structsolve.utils.suggest import a_type
from structsolve.utils.values import is_flat


def fit(args: argparse.Namespace) -> None:
    """Train a model on a file and save it.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Raises
    ------
    ValueError
        For malformed data, and options that do not fit.
    """
    # Heavy: scikit-learn, and all plugins.
    from structsolve.cli import models

    settle_estimator(args)
    check_format(args.format)
    format = args.format or models.file_format(args) or guess(args.data)
    params, selecting = settings(format, reader_options(args))
    brings = getattr(reads(format), "brings", ())
    models.check_options(args, brings)
    models.check_data_options(args, format, selecting)
    if params is not None:
        params = _reader_params(args, format, params)
    # The data may contain the structure's parameters.
    late = models.brings_structure(args, brings)
    chosen = None if late else models.make_structure(args)
    models.check_model(args, "multiclass" if chosen is None else chosen)
    if args.history and not args.history.endswith((".csv", ".json")):
        raise UsageError(f"--history: found {args.history!r}; expected an ending .csv or .json")
    inputs = {f"--{name}": getattr(args, name) for name in ("validation", "hierarchy", "network")}
    outputs = {f"--{name}": getattr(args, name) for name in ("model", "history", "checkpoint")}
    check_outputs(inputs | {"the data": args.data}, outputs)
    recipe = _new_recipe(args, format, chosen, params, selecting)
    start = time.perf_counter()
    data = recipe.fit(args.data, models.needs_labels(args))
    if late:
        chosen = models.make_structure(args, _brought(recipe, args))
    if chosen is None:
        chosen = _usual_structure(data, args)
        _warn_of_one_label(data.y, args.data)
    models.settle_labels(chosen, data.y, args)
    weights = class_weight(args.class_weight, data.y)
    args.class_weight = ["balanced"] if weights == "balanced" else weights
    recipe.label_sets = getattr(chosen, "label_sets", False)
    messages.say("read", messages.size_text(data, recipe.pictures), start)

    options: dict[str, Any] = {}
    if args.validation or args.validation_split:
        options["validation"] = _validation(recipe, args)
    model = models.make_model(args, chosen)
    margin = isinstance(model, structsolve.StructuredSVM)
    if margin and data.weights is not None:
        options["sample_weight"] = data.weights
    elif data.weights is not None and any(weight != 1 for weight in data.weights):
        raise UsageError(
            f"{args.data}: found weights, which --estimator {args.estimator} does not take"
        )
    start = time.perf_counter()
    model.fit(data.X, data.y, **options)
    _say_trained(model, getattr(chosen, "name", chosen), args, start)
    model.metadata_ = recipe.metadata()
    model.save(args.model)
    if not os.path.exists(args.model):
        raise RuntimeError(f"save() of {type(model).__name__} wrote no file {args.model}")
    if args.history:
        messages.write_history(args.history, model.history_)
    if "validation" in options:
        score = model.score(*options["validation"])
        messages.say("validated", f"score {score:.4f} on {args.validation or args.data}")
    messages.say("saved", args.model)


def _reader_params(args: argparse.Namespace, format: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the reader's parameters: those of ``--option``, and of options of their own."""
    own = getattr(formats().get(format), "OWN", ())
    params = {**{name: getattr(args, name) for name in own}, **params}
    if params.get("structure") is not None:
        raise UsageError("--option structure: give --structure NAME")
    if "structure" in parameters(reads(format)):
        params["structure"] = args.structure
    return params


def _new_recipe(
    args: argparse.Namespace,
    format: str,
    structure: Any,
    params: dict[str, Any] | None,
    selecting: Any,
) -> Any:
    """Return how to read the data for a structure; None where the data decide it."""
    from structsolve.cli.data import Recipe  # heavy

    return Recipe(
        format,
        zero_based=args.zero_based,
        flat=getattr(structure, "single_node", False),
        label_sets=getattr(structure, "label_sets", False),
        named=args.hierarchy is not None,
        pictures=getattr(structure, "label_axes", 1) == 2,
        reader=params,
        missing=args.missing,
        selecting=selecting,
    )


def _brought(recipe: Any, args: argparse.Namespace) -> Any:
    """Return the hierarchy that the data contain."""
    brought = (recipe.reader or {}).get("hierarchy")
    if brought is None:
        raise UsageError(
            f"structure {args.structure} needs --hierarchy FILE; {args.data} contains none"
        )
    return brought


def _usual_structure(data: Any, args: argparse.Namespace) -> str:
    """Return the structure that data have if none is named."""
    if data.reader is not None and data.reader.structure_name:
        return data.reader.structure_name
    shape: tuple[int, ...] = getattr(data.y, "shape", ())
    if len(shape) == 2:
        raise UsageError(
            f"{args.data}: found {shape[1]} labels a row; expected --structure multilabel, or "
            "another with several labels"
        )
    return "chain" if data.sequences else "multiclass"


def _warn_of_one_label(y: Any, path: str) -> None:
    """Warn of sequences whose nodes all have the same label, such as a column of "_"."""
    flat = isinstance(y, list) and all(map(is_flat, y))
    if flat and len(labels := {*chain.from_iterable(y)}) == 1:
        warnings.warn(
            f"{path}: found the same label everywhere, {labels.pop()!r}; --label-column gives the "
            "column of labels, and --structure the structure",
            stacklevel=3,
        )


def _validation(recipe: Any, args: argparse.Namespace) -> tuple[Any, Any]:
    """Return X and y of the examples to validate with."""
    recipe.selecting = {"split": args.validation_split} if args.validation_split else {}
    path = args.validation or args.data
    held_out = recipe.read(path)
    if held_out.y is None:
        raise ValueError(f"{path}: found no labels; expected some to validate with")
    return held_out.X, held_out.y


def _say_trained(model: Any, name: str, args: argparse.Namespace, start: float) -> None:
    """Say what was trained, in how many passes."""
    margin = isinstance(model, structsolve.StructuredSVM)
    if args.alphas is not None and margin:
        messages.say_scores(model)
    told = getattr(families().get(args.estimator), "trained_text", None)
    if told is not None:
        text = told(model)
    elif not margin:
        text = type(model).__name__
    else:
        solver = model.solver_.name if args.solver == "auto" else args.solver
        passes = messages.passes_text(model.history_)
        text = f"{args.surrogate}, {solver}: {passes}, {model.stop_reason_}"
    messages.say("trained", f"{name}, {text}", start)


def predict(args: argparse.Namespace) -> None:
    """Label a file with a saved model.

    Parameters
    ----------
    args : Namespace
        Options of ``predict``.

    Raises
    ------
    ValueError
        For malformed data, and options that do not fit.
    """
    check_outputs({"the data": args.data, "the model": args.model}, {"--output": args.output})
    model, steps = _load(args)
    if (own := _own_shell(model, steps)) is not None:
        own.predict(model, args)
        return
    if args.top is not None:
        raise UsageError(f"--top: {a_type(model)} has none; --kbest K gives the K best")
    recipe = _recipe(model, args, steps)
    for option, given, method in (
        ("--kbest", args.kbest is not None, "predict_kbest"),
        ("--marginals", args.marginals, "predict_marginals"),
    ):
        if given and not hasattr(model, method):
            raise UsageError(f"{option}: {a_type(model)} has none")
    if args.marginals and not hasattr(model, "predict_proba"):
        warnings.warn(
            "--marginals: the model was not trained to give probabilities; these are marginals of "
            "exp(score), whose scale is arbitrary. Train with --surrogate crf",
            stacklevel=2,
        )
    if args.kbest is not None and args.kbest < 1:
        raise UsageError(f"--kbest: found {args.kbest}; expected at least 1")
    if args.columns and not getattr(reads(recipe.format), "annotates", ""):
        raise UsageError(f"--columns: {recipe.format} data have no columns to repeat")
    data = recipe.read(args.data)
    if args.kbest:
        blocks = output.kbest_text(model, data, args.kbest)
    else:
        blocks = output.labels_text(model, data, args)
    if args.output is None:
        messages.out().writelines(blocks)
        return
    with atomic_write(args.output) as handle:
        handle.writelines(blocks)


def score(args: argparse.Namespace) -> None:
    """Compare a saved model's predictions with a file's labels.

    Parameters
    ----------
    args : Namespace
        Options of ``score``.

    Raises
    ------
    ValueError
        For malformed data, and options that do not fit.
    """
    from structsolve.evaluation.metrics import sequence_error, token_report  # heavy
    from structsolve.evaluation.tokens import without_void  # heavy

    model, steps = _load(args)
    if (own := _own_shell(model, steps)) is not None:
        own.score(model, args)
        return
    scorer = None if args.metric is None else _scorer(args)
    data = _recipe(model, args, steps).read(args.data)
    if data.y is None:
        raise ValueError(f"{args.data}: found no labels; expected some to compare with")
    if scorer is not None:
        value = float(scorer(model, data.X, data.y))
        text = json.dumps({args.metric: value}, indent=2) if args.json else ""
        print(text or f"{args.metric} {value:.6g} of {len(data.y)} examples", file=messages.out())
        return
    unused = f": labels of {args.data} are no sequences or classes, and scored whole; leave it out"
    for module in scores():
        report = ask_scores(module, "report", model, data, args)
        if report is not None:
            refuse_scores(args, unused, module)
            print(output.report_text(report, args), file=messages.out())
            return
    # Without classes, the numbers of a matching are places in its own example.
    structured = data.sequences and not hasattr(model, "classes_")
    structured = structured or output.are_structured(model, (), data.y)
    predicted = model.predict(data.X)
    if structured or output.are_structured(model, predicted):
        refuse_scores(args, unused)
        print(output.whole_labels_text(model, data, args, predicted), file=messages.out())
        return
    unknown = [i for i, one in enumerate(data.y) if one is None]
    if unknown:
        raise ValueError(
            f"{args.data}: example {unknown[0]} has no labels, expected all to compare"
        )
    guess = output.predictions(model, data, predicted)
    whole = data.sequences or getattr(structure_of(model), "label_rows", False)
    truth = output.as_lists(data.y if whole else data.split(data.y))
    if getattr(structure_of(model), "label_axes", 1) == 2:  # files may have lists of rows
        truth = [[*chain.from_iterable(one)] if not is_flat(one) else one for one in truth]
    truth, guess = without_void(model, data.X, data.y, truth, guess)
    report = token_report(truth, guess)
    if whole or data.lengths:
        report["sequence_error"] = sequence_error(truth, guess)
    lines: list[str] = []
    for module in scores():
        more, told = ask_scores(module, "figures", model, data, truth, guess, args) or ({}, [])
        report |= more
        lines += told
    print(output.report_text(report, args, lines), file=messages.out())


def _scorer(args: argparse.Namespace) -> Any:
    """Return the score that ``--metric`` names."""
    from structsolve.evaluation.scorers import get_scorer  # heavy

    text = f": --metric {args.metric} prints one score alone; arguments of it go behind its name"
    refuse_scores(args, f"{text} (name:arguments), else leave out one of the two")
    try:
        return get_scorer(args.metric)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None


def info(args: argparse.Namespace) -> None:
    """Print the largest weights of a saved model.

    Parameters
    ----------
    args : Namespace
        Options of ``info``.

    Raises
    ------
    ValueError
        For models without weights by name.
    """
    if args.top < 0:
        raise UsageError(f"--top: found {args.top}; expected at least 0")
    loaded = structsolve.load(args.model, mmap=True)
    model = loaded[-1] if hasattr(loaded, "steps") else loaded
    if not hasattr(model, "info"):
        text = "; load it, and call info(feature_names=...) of the step that has them"
        where = f" at the end of the pipeline {args.model}" if model is not loaded else ""
        hint = text if where else ""
        raise UsageError(f"info: {a_type(model)}{where} has no weights by name{hint}")
    if model is not loaded:
        names = _names_of_steps(loaded, model)
    else:
        saved = (getattr(model, "metadata_", None) or {}).get("shell") or {}
        factory = reads(saved.get("format", ""))
        reader = None if factory is None else factory(**(saved.get("reader") or {}))
        names = getattr(reader, "feature_names", None)
    tables = model.info(args.top or None, names)
    text = json.dumps(tables, indent=2, default=str) if args.json else str(tables)
    print(text, file=messages.out())


def _names_of_steps(pipeline: Any, model: Any) -> Any:
    """Return the names of the features that the steps of a pipeline make; None if they do not say.

    Warns
    -----
    UserWarning
        Without names.
    """
    steps = [*_single_steps(pipeline[:-1])]
    for k, step in enumerate(steps):
        if k and hasattr(step, "n_features_in_"):
            continue  # reads columns, whose names are not known behind the first step
        try:
            names = type(pipeline)([(str(i), one) for i, one in enumerate(steps[k:])])
            names = names.get_feature_names_out()
        except (AttributeError, TypeError, ValueError):
            continue
        if len(names) == model.n_features_in_:
            return names
    warnings.warn(
        "features have numbers, as the pipeline's steps do not tell their names; to give some, "
        "load it and call pipeline[-1].info(feature_names=...)",
        stacklevel=2,
    )
    return None


def _single_steps(pipeline: Any) -> Iterator[Any]:
    for _, step in pipeline.steps:
        if hasattr(step, "steps"):
            yield from _single_steps(step)
        elif step not in (None, "passthrough"):
            yield step


def plugins(args: argparse.Namespace) -> None:
    """List the installed plugins.

    Parameters
    ----------
    args : Namespace
        Options of ``plugins``.
    """
    print(output.plugins_text(structsolve.list_plugins()), file=messages.out())


def _load(args: argparse.Namespace) -> tuple[Any, Any]:
    """Return the model, and the steps before it if the file holds a pipeline."""
    from structsolve.cli.steps import split  # heavy

    check_format(args.format)
    model, steps = split(structsolve.load(args.model, mmap=True), args.model)
    if args.n_jobs is not None:
        model.set_params(n_jobs=args.n_jobs)
    if args.oracle is not None:
        if "oracle" not in model.get_params():
            raise UsageError(f"--oracle: {a_type(model)} has none")
        model.set_params(oracle=args.oracle)
    return model, steps


def _own_shell(model: Any, steps: Any = None) -> Any:
    """Return the module with ``predict`` and ``score`` of the shell that an estimator names."""
    module = getattr(model, "shell", None)
    if module is None:
        return None
    if steps is not None:
        raise UsageError(
            f"the pipeline ends in {a_type(model)}, which reads files itself; predict "
            "from Python: structsolve.load(FILE).predict(X)"
        )
    try:
        own = importlib.import_module(module)
    except (ImportError, AttributeError) as error:  # of what is no name
        what = f"{type(model).__name__}: shell is {module!r}, expected the name of a module"
        raise ImportError(f"{what} ({error})") from error
    require(own, ShellModule, f"{type(model).__name__}: the module {module!r}")
    return own


def _recipe(model: Any, args: argparse.Namespace, steps: Any) -> Any:
    from structsolve.cli.data import Recipe  # heavy

    return Recipe.of_model(model, args.data, args.format, reader_options(args), steps)
