"""Tables and shape: what a graph and its scores are, for all other rooms.

``graphs`` checks edges as users give them, ``stacking`` packs graphs, ``networks`` reads those of
networkx, ``scores`` holds the scores of one graph as flat arrays.  ``_shape`` says where the parts
of each packed graph lie in theta, whether it is a forest, and how many labelings it has.
``_model`` is one labeling problem as pointers: states, ends of edges, unary and pair scores.  Its
``score`` is the judge of all decoders: they may round on their way, but what they return is scored
by it.  ``_table_kinds`` recognises tables that are functions of the distance of two states (Potts,
truncated linear, truncated quadratic).

Guaranteed: an edge has two different ends in range, arrays fit into memory, scores are finite or
-inf, which forbids.

Taken by every decoder.  A change of the layout in ``_shape`` or ``_model`` needs the tests under
AddressSanitizer (CONTRIBUTING.md).
"""
