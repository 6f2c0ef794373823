"""Label sequences as a plugin: structure, operators, files of tokens, chunk tags and their scores.

``readers`` holds the shell's, ``conll``, ``crfsuite`` and ``fasta`` read and write files, ``spans``
reads tags, ``metrics`` scores them, ``commands`` are the shell's options.
"""

from functools import partial

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.chain.space import ChainSpace, ChainStructure
from structsolve.structure.base import node_loss
from structsolve.structure.operator_hooks import OperatorHooks

__all__ = ["ChainSpace", "ChainStructure"]
_hooks = OperatorHooks(__name__, ChainSpace)


@hookimpl
def structsolve_structures():
    return [Named("chain", ChainStructure, "label sequences: transitions, start, end, edges")]


@hookimpl
def structsolve_readers():
    homes = {
        "conll": ("readers:ConllReader", "a token a line, columns, labels in one of them"),
        "crfsuite": ("readers:CrfsuiteReader", "label TAB attribute[:value] ..., CRFsuite's text"),
        "fasta": ("fasta:FastaReader", "proteins and genes, labels in a second file"),
    }
    package = "structsolve.plugins.chain"
    return [Named(name, Lazy(f"{package}.{home}"), text) for name, (home, text) in homes.items()]


@hookimpl
def structsolve_metrics():
    home = Lazy("structsolve.plugins.chain.metrics:make_span_scorer")
    figures = ("f1", "precision", "recall")
    return [Named(f"span-{figure}", partial(home, figure)) for figure in figures]


structsolve_oracle = _hooks.operator("_oracle:ChainOracle", ChainSpace.constrained)
structsolve_parts = _hooks.operator("_shape:ChainParts")  # states, pairs of states
structsolve_power = _hooks.powers(
    {
        "kbest": "_oracle:ChainKBest",
        "max-marginals": "_oracle:ChainMaxMarginals",
        "counts": "_oracle:ChainCounts",
    },
    ChainSpace.constrained,
)
structsolve_projection = _hooks.projections(
    {"entropy": "_projections:ChainSumProduct"}, ChainSpace.constrained
)
structsolve_loss = _hooks.hookimpl(node_loss)


@_hooks.hookimpl
def structsolve_polytope(space):
    from structsolve.plugins.chain.polytope import ChainPolytopes  # local, and exact

    return lambda layout: ChainPolytopes(space.layout, layout.examples.offsets, space.forbidden)
