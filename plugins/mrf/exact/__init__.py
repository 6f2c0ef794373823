"""Exact search: the best labeling of any graph, by a search that can be stopped at any time.

``_search`` begins with roof duality (two states) or TRW-S and local search.  Then ``_best_first``
opens nodes of a search tree by their bounds and dives from them (Allouche et al. 2015) in
a ``_cost_network``, whose changes are recorded so that the search goes back.
``_soft_consistency`` moves costs into the lower bound (de Givry et al. 2005), ``_small_degrees``
eliminates nodes with at most two undecided neighbours.  ``search`` is the loop around: it looks at
the clock, and hands narrow graphs to elimination.

Guaranteed: value and bound hold at every stop, up to rounding; at the end they are equal.  Time
is exponential at worst.  Steps are counted, so what "auto" spends does not depend on the machine.

Taken by "exact" (in training on graphs with too many labelings, an integer program answers
instead), and by "auto" of ``decode`` for a while if something is forbidden.
"""
