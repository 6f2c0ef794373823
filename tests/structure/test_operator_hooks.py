"""Hooks that are made from where operators are: each answers for its own spaces alone."""

from functools import partial

import pytest

import structsolve
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.tree import TreeSpace
from structsolve.plugins.tree._oracle import TreeKBest, TreeOracle
from structsolve.structure.operator_hooks import OperatorHooks, with_examples, with_space

HOOKS = OperatorHooks("structsolve.plugins.tree", TreeSpace)


def space_of(name):
    structure = structsolve.get_structure(name)
    return structure.make_space(*structure.sample(0))[0]


@pytest.fixture(scope="module")
def tree():
    return space_of("tree")


def test_one_operator(tree):
    assert HOOKS.operator("_oracle:TreeOracle")(tree) is TreeOracle
    bound = HOOKS.operator("_oracle:TreeOracle", with_space)(tree)
    assert (bound.func, bound.args) == (TreeOracle, (tree,))


def test_several_operators(tree):
    powers = HOOKS.powers({"kbest": "_oracle:TreeKBest"})
    assert powers(tree, "kbest") is TreeKBest
    assert powers(tree, "relaxation") is powers(tree, "counts") is None
    whole = HOOKS.powers({}, with_space, integral=True)(tree, "relaxation")
    assert isinstance(whole, partial) and whole.func is IntegralRelaxation
    projections = HOOKS.projections({"entropy": "_oracle:TreeKBest"}, with_space)
    assert projections(tree, "entropy").func is TreeKBest
    assert projections(tree, "euclidean") is None


def test_examples_are_those_of_the_layout(tree):
    class Layout:
        examples = "examples"

    assert with_examples(tree, lambda *given: given)(Layout) == (tree, "examples")


@pytest.mark.parametrize("hook", [HOOKS.operator("no:Where"), HOOKS.hookimpl(lambda space: 1 / 0)])
def test_spaces_of_others_import_nothing(hook):
    assert hook(space_of("chain")) is None


def test_the_hooks_come_last():
    assert HOOKS.operator("_oracle:TreeOracle").structsolve_impl["trylast"]
