"""Message passing: along forests exactly, on other graphs as an upper bound.

``_max_product`` gives the best labeling, max-marginals and the k best of a graph without cycles, in
time linear in its edges.  ``_sum_product`` gives its marginals and entropy, the projection that
CRFs need.  Both are exact.

``_trws`` is sequential tree-reweighted message passing (Kolmogorov 2006) on any graph.
Guaranteed: its bound is one of all labelings, never rises from one iteration to the next, and never
falls below the linear relaxation; it equals the relaxation for two states at weak tree agreement.
The labeling of each pass has no guarantee.  ``_float_passes`` is the same in single precision with
vector instructions: any messages define a bound, so its passes may round, and the bound is
computed in double precision.  Forests and graphs with forbidden states stay in double precision.

Taken: max-product on forests by "auto" and "exact"; the passes by "trws", by "expansion" for its
first labeling, by "auto" where more than two states and no minimum cut apply, and by the exact
search for its first bound.
"""
