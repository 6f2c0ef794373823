"""Cuts: best labelings and linear relaxations by one maximum flow.

``_minimum_cut`` and ``_oracle`` find the best labeling where all tables are super-modular
(Ishikawa 2003; Schlesinger, Flach 2006); ``binary`` does so for one graph of two states without the
arrays of an oracle.  Guaranteed: the labeling is the best; other tables are refused with the
edge and the amount that is missing.

``_roof_duality`` solves the linear relaxation of any graph of two states (Hammer, Hansen, Simeone
1984; Boros, Hammer 2002).  Guaranteed: the value is that of the relaxation, and a node whose
state is decided has it in some best labeling.  ``_dense_roof`` is the same for graphs of up to 32
nodes, and of up to 256 with many edges, whose sets fit into words: label sets are
decoded one call per example, those of few labels in microseconds.  ``_pair_energy`` writes tables,
also with forbidden pairs, as costs of a cut.

Taken: the cut by "mincut", and first by "auto" up to 4 states (8 for the relaxation); roof duality
by "roof-duality", by "auto" for two states, for the relaxation that training maximises, and by
the exact search.
"""
