"""Layer 2: the map from weights to part scores, ``theta_i = Phi_i w``, and its adjoint.

Takes packed features and blocks of weights; hands on scores, their gradients and Gram matrices.
Features are linear or compared by a Mercer kernel.
"""
