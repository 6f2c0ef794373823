"""Relaxation: the local polytope of a graph, and its best points.

``programs`` builds the linear or integer program for a solver by name, ``polytope`` the rows for
other packages of programs, ``_linear`` the operators on both, and those of roof duality.
Guaranteed: the bound is the optimum of the program up to the solver's tolerance; marginals agree
between nodes and edges.

``_dual`` needs no such solver: sequential dual ascent (``_dual_passes``, first ones in single
precision, ``_dual_float``), then a primal-dual method over the nearly best states (``_dual_core``;
Lu, Yang 2024).  Guaranteed: the point lies in the polytope, the bound holds, and their gap is at
most what was asked, or is reported as missed.

``_tree_reweighted`` gives bounds of the log-partition, and relaxed marginals, of any graph: the
mean over the trees of ``_spanning_trees``, which cover all edges.  Guaranteed: any messages define
a bound; marginals of nodes and edges agree, if nothing is forbidden, and attain ``value``, so bound
and value enclose the maximum over the local polytope.  Convergence is not guaranteed, but measured.

Taken: tree-reweighted sums beyond the limit of elimination's; by training with an inexact oracle
(``Margin(relaxed=True)``): roof duality for two states, ``_dual`` for more, a program for "lp" and
"cvxpy:NAME".  Cones of the label plane on more than 2^16 labelings are found by answers of roof
duality and of forests' dynamic program, else they are programs over the rows of ``polytope``.
"""
