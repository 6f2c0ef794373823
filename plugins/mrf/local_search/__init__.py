"""Local search: labelings that no small change, or no expansion of a state, improves.

``_climb`` combines iterated conditional modes, joint changes of the ends of an edge, chains of
forced changes (Kernighan, Lin 1970) and of whole forests (Hamze, de Freitas 2004).  Guaranteed: its
labeling is at least as good as the one it begins with, and no change of one node improves it.

``_expansion`` lets all nodes at once switch to one state, by a minimum cut (Boykov, Veksler, Zabih
2001).  Guaranteed: never worse than its first labeling; for metric tables no expansion improves
the result, and for Potts the cost is at most twice the least.

Neither has a bound of its own: that comes from TRW-S or roof duality.

Taken: ``_climb`` after every inexact decoder, from its rounded solution, and in the
exact search; ``_expansion`` by "expansion", and by "auto" where nothing exact applies.
"""
