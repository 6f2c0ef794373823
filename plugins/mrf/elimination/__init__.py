"""Elimination and enumeration: best labelings, the k best and cones of graphs that are small.

``_elimination`` maximises nodes out one by one (Bertele, Brioschi 1972), in an order that ``_plan``
chooses once per graph among a few rules.  Guaranteed: the best labeling, and the k best.  Time and
memory grow with the product of the states of the neighbours of a node when it goes, so narrow
graphs of any length are cheap; the plan tells the number of sums beforehand.

``_sums`` adds up in place of maximising: the entropy projection of narrow graphs.  A step leaves
the node's probabilities given its neighbours, from which samples are drawn backwards; marginals of
these cliques are the state of which the entropy is a function.  Guaranteed: exact, and forbidden
parts have marginal 0.  About 10 ns a sum.

Max-marginals take an elimination for every state.

``_gray_code`` goes through all labelings of at most 20 two-state nodes, two additions each, and
gives the same: label sets with scores of all pairs are not narrow, and take a tenth of the time.
``_enumerated_cones`` gives the best labeling in a cone of the label plane, which the searches of
bi-criteria surrogates ask for.  Guaranteed: exact, as labelings that may be the best are scored
anew.

Taken: sums up to 2^20; elimination up to 2^14 sums by "auto", up to 2^30 by "exact", up to 2^23 for
the k best and max-marginals; enumeration in its place where labelings are at most 8 times the sums;
cones up to 2^16 labelings.
"""
