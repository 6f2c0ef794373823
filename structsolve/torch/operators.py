"""Layers as custom operators, for ``torch.compile``, ``torch.export`` and ``torch.func``.

Each operator names its layer by a number, so that a traced graph holds tensors and constants alone.
"""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.library import custom_op
from torch.utils import _pytree as pytree

from .tensors import is_transformed

Tensors: TypeAlias = list[torch.Tensor]

layers: WeakValueDictionary[int, Any] = WeakValueDictionary()
_numbers = itertools.count()


def numbered(layer: Any) -> int:
    """Return the number of a layer in graphs; it is known as long as the layer exists.

    Parameters
    ----------
    layer : Layer

    Returns
    -------
    int
    """
    number = next(_numbers)
    layers[number] = layer
    return number


def traced(*tensors: Any) -> bool:
    """Return whether a call must be one of operators, not of native code.

    Parameters
    ----------
    *tensors : Tensor, dict of str to Tensor, or object

    Returns
    -------
    bool
        Under ``torch.compile`` and ``torch.export``; for tensors of ``torch.func``; for fake and
        meta tensors.
    """
    if torch.compiler.is_compiling():
        return True
    each = itertools.chain(*(t.values() if isinstance(t, dict) else (t,) for t in tensors))
    return any(is_transformed(t) or _without_numbers(t) for t in each)


def _without_numbers(tensor: Any) -> bool:
    return isinstance(tensor, FakeTensor) or (isinstance(tensor, torch.Tensor) and tensor.is_meta)


def read(layer: int, tensors: Any, names: str, lengths: Any, mask: Any) -> tuple[Any, Any]:
    """Return the layer and the batch of an operator's arguments.

    Parameters
    ----------
    layer : int
    tensors : list of Tensor
    names : str
    lengths, mask : Tensor or None

    Returns
    -------
    layer : Layer
    given : Given
    """
    own = layers.get(layer)
    if own is None:
        raise RuntimeError(
            "the layer of this graph no longer exists: keep the module, and load exported programs "
            "only in the process that made them"
        )
    return own, own.read(dict(zip(names.split("\n"), tensors)), lengths, None, mask)


def many(layer: int, tensors: Any, names: str, lengths: Any, mask: Any) -> Any:
    """Return the number of examples, from shapes.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores.
    names : str
        Their blocks, a name on each line.
    lengths, mask : Tensor or None

    Returns
    -------
    int
    """
    for of_examples in (mask, lengths):
        if of_examples is not None:
            return of_examples.shape[0]
    return node_scores(layer, tensors, names).shape[0]


def node_scores(layer: int, tensors: Any, names: str) -> torch.Tensor:
    """Return the node scores of an operator's arguments.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores.
    names : str
        Their blocks, a name on each line.

    Returns
    -------
    Tensor
    """
    each = kinds(layer, tensors, names)
    return next(t for t, kind in zip(tensors, each) if kind == "node")


def blocks(layer: int, tensors: Any, names: str) -> list[Any]:
    """Return the block of each of an operator's tensors.

    Parameters
    ----------
    layer : int
    tensors : list of Tensor
    names : str

    Returns
    -------
    list of Block
    """
    # A traced size but that of the last axis must not become a constant.
    shapes = {
        name: (1,) * (t.ndim - 1) + tuple(int(size) for size in t.shape[-1:])
        for name, t in zip(names.split("\n"), tensors)
    }
    layout = layers[layer]._batches.layout(shapes)
    own = {block.name: block for block in layout.blocks}
    return [own[name] if name in own else getattr(layout, name) for name in shapes]


@torch.compiler.assume_constant_result  # no guards on what a layer has cached
def has_positions(layer: int, axes: int) -> bool:
    """Return whether each row of a layer's node scores is that of a position.

    Parameters
    ----------
    layer : int
    axes : int
        Of the node scores.

    Returns
    -------
    bool
    """
    return bool(layers[layer]._batches.has_positions(axes))


def kinds(layer: int, tensors: Any, names: str) -> list[str]:
    """Return what each of an operator's tensors scores.

    Parameters
    ----------
    layer : int
    tensors : list of Tensor
    names : str

    Returns
    -------
    list of str
    """
    return [block.kind for block in blocks(layer, tensors, names)]


def like_scores(layer: int, tensors: Any, *_: Any) -> Tensors:
    """Return empty tensors of the form of an operator's scores.

    Parameters
    ----------
    layer : int
    tensors : list of Tensor

    Returns
    -------
    list of Tensor
    """
    return [torch.empty_like(t) for t in tensors]


def one_for_all(block: Any, tensor: torch.Tensor) -> bool:
    """Return whether all examples share a tensor: a shared block may have one for each.

    Parameters
    ----------
    block : Block
    tensor : Tensor
        Its scores.

    Returns
    -------
    bool
    """
    return bool(block.kind == "shared" and tensor.ndim == len(block.shape))


def parts_like(layer: int, tensors: Any, names: str, lengths: Any, mask: Any, *_: Any) -> Tensors:
    """Return empty tensors of the form of parts: shared blocks have one for each example.

    Parameters
    ----------
    layer : int
    tensors : list of Tensor
        Scores; a shared block may have one for each example, too.
    names : str
    lengths, mask : Tensor or None

    Returns
    -------
    list of Tensor
    """
    n = many(layer, tensors, names, lengths, mask)
    return [
        t.new_empty((n, *t.shape)) if one_for_all(block, t) else torch.empty_like(t)
        for t, block in zip(tensors, blocks(layer, tensors, names))
    ]


def labels_like(
    layer: int, tensors: Any, names: str, lengths: Any, mask: Any, *_: Any
) -> torch.Tensor:
    """Return an empty tensor of the shape of labels.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores.
    names : str
        Their blocks, a name on each line.
    lengths, mask : Tensor or None

    Returns
    -------
    Tensor of int64
    """
    node = node_scores(layer, tensors, names)
    if mask is not None:
        return node.new_empty(mask.shape, dtype=torch.int64)
    if layers[layer]._batches.labels_like_nodes(node.ndim, int(node.shape[-1])):
        return node.new_empty(node.shape[:-1], dtype=torch.int64)
    # Elsewhere sizes are constants of a graph.
    shapes = {name: tuple(map(int, t.shape)) for name, t in zip(names.split("\n"), tensors)}
    places = layers[layer]._batches.read(shapes, None, None).places
    return node.new_empty(places.label_shape, dtype=torch.int64)


def call(operator: Any, *args: Any) -> Any:
    """Call an operator, also with tensors of ``torch.func``.

    Parameters
    ----------
    operator : CustomOpDef
    *args : object

    Returns
    -------
    object
    """
    flat, spec = pytree.tree_flatten(args)
    if torch.compiler.is_compiling() or not any(map(is_transformed, flat)):
        return operator(*args)
    form = _Form()
    answer = _Transformed.apply(operator, spec, form, *flat)
    return pytree.tree_unflatten(list(answer), form.spec)


class _Form:
    """The form of an answer; a class, since lists are taken apart."""

    spec: Any = None


class _Transformed(torch.autograd.Function):
    """An operator for ``torch.func``, which does not take derivatives of custom operators."""

    @staticmethod
    def forward(operator: Any, spec: Any, form: Any, *flat: Any) -> Any:
        answer, own = pytree.tree_flatten(operator(*pytree.tree_unflatten(list(flat), spec)))
        form.spec = own
        return tuple(answer)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        operator, ctx.spec, form, *flat = inputs
        ctx.operator, ctx.form, ctx.number = operator, form.spec, flat[0]
        context, _ = derivatives[operator]
        context(ctx, pytree.tree_unflatten(flat, ctx.spec), pytree.tree_unflatten(output, ctx.form))

    @staticmethod
    def backward(ctx: Any, *directions: Any) -> Any:
        _, backward = derivatives[ctx.operator]
        given = pytree.tree_unflatten(list(directions), ctx.form)
        answer = backward(ctx, *(given if isinstance(given, tuple) else (given,)))
        flat = pytree.tree_leaves(answer, is_leaf=lambda x: x is None)
        return None, None, None, *flat

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(
            f"{layers[ctx.number].label} has no derivatives forward (torch.func.jvp, jacfwd, "
            "hessian); use jacrev of grad, or torch.autograd.functional.jvp, which go backward"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, operator: Any, spec: Any, form: Any, *flat: Any) -> Any:
        answers = []
        for i in range(info.batch_size):  # one call after the other
            own = [a if d is None else a.select(d, i) for a, d in zip(flat, in_dims[3:])]
            answers.append(call_flat(operator, spec, form, own))
        return tuple(map(torch.stack, zip(*answers))), (0,) * len(answers[0])


def call_flat(operator: Any, spec: Any, form: Any, flat: Any) -> Any:
    """Call an operator with and for flat arguments.

    Parameters
    ----------
    operator : CustomOpDef
    spec : TreeSpec
    form : object
        Gets the form of the answer.
    flat : list of object

    Returns
    -------
    list of Tensor
    """
    answer = call(operator, *pytree.tree_unflatten(flat, spec))
    leaves, own = pytree.tree_flatten(answer)
    form.spec = own
    return leaves


def operator(name: str, more: str = "", answer: str = "Tensor[]", like: Any = like_scores) -> Any:
    """Make a function of a layer and a batch an operator.

    Parameters
    ----------
    name : str
    more : str
        What a call has after the number of the layer, its scores, their blocks (a name on
        each line), lengths and mask: as in a schema of PyTorch.
    answer : str, default="Tensor[]"
        What the function returns, as in a schema of PyTorch.
    like : callable
        Takes what a call has; returns empty tensors of the form of the answer.

    Returns
    -------
    callable
        A decorator of functions of the layer, a batch (:class:`Given`) and what a call has more.
    """
    first = "SymInt layer, Tensor[] tensors, str names, Tensor? lengths, Tensor? mask"
    schema = f"({', '.join([first, *filter(None, [more])])}) -> {answer}"

    def made(function: Any) -> Any:
        def run(layer: int, tensors: Any, names: str, lengths: Any, mask: Any, *rest: Any) -> Any:
            return function(*read(layer, tensors, names, lengths, mask), *rest)

        own = custom_op(f"structsolve::{name}", run, mutates_args=(), schema=schema)
        own.register_fake(like)
        return own

    return made


def number_each(layer: int, tensors: Any, names: str, lengths: Any, mask: Any, *_: Any) -> Any:
    """Return an empty tensor with a number for each example.

    Parameters
    ----------
    layer : int
    tensors : list of Tensor
    names : str
    lengths, mask : Tensor or None

    Returns
    -------
    Tensor of shape (n,)
    """
    return tensors[0].new_empty((many(layer, tensors, names, lengths, mask),))


def no_more(ctx: Any, *_: Any) -> Any:
    """Refuse a derivative, with the message of the context.

    Parameters
    ----------
    ctx : object
    """
    raise NotImplementedError(ctx.why)


derivatives: dict[Any, tuple[Any, Any]] = {}


def differentiate(given: dict[Any, tuple[Any, Any]]) -> None:
    """Register derivatives of operators, and note them for :func:`call`.

    Parameters
    ----------
    given : dict
        For each operator, what sets up its context, and its backward pass.
    """
    derivatives.update(given)
    for operator, (context, backward) in given.items():
        operator.register_autograd(backward, setup_context=context)
