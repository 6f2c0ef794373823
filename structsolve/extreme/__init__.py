"""Very many classes: weights kept by feature, rivals of an example, and the solvers on them.

Takes sparse rows and class numbers, and the surrogates of the layers below; hands on sparse
weights, with a history of bounds.
"""
