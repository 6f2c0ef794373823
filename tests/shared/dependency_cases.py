"""Operators of sentences with all arcs, and scores as tables of words and heads."""

import numpy as np
import pytest

from structsolve.lp.ask import ask_oracle
from structsolve.plugins.dependency import Arcs, DependencyStructure
from structsolve.structure.ask import ask_power, ask_projection, make_layout

KINDS = [(False, False), (False, True), (True, False), (True, True)]
each_kind = pytest.mark.parametrize("projective, single", KINDS)


def operators(n, projective, single):
    """Return oracle, projection and k best for a sentence of n words with all arcs."""
    structure = DependencyStructure(projective, single)
    space, examples = structure.make_space(Arcs(np.zeros((n * n, 1)), n), None)
    layout = make_layout(space, examples)
    binds = ask_oracle(space), ask_projection(space, "entropy"), ask_power(space, "kbest")
    return tuple(bind(layout) for bind in binds)


def in_order(table):
    """Return scores in theta's order, from a table [word, head]."""
    n = len(table)
    return np.ascontiguousarray(table[~np.eye(n + 1, dtype=bool)[1:]])
