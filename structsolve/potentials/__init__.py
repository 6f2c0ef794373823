"""Layer 2: the map from weights to part scores, ``theta_i = Phi_i w``, and its adjoint.

It takes packed features and blocks of weights, and returns scores, their gradients and Gram
matrices.
Features are linear or compared by a Mercer kernel.
"""
