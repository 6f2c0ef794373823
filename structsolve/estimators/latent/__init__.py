"""Labels that are known in part: sets of them, hidden states, and rounds that complete them.

Takes packed examples and a problem of the solvers; hands weights on.  Its estimator is LatentSVM.
"""
