"""Layer 6: scikit-learn estimators, their predictions and model files.

Takes X and y as users give them, uses every layer below, and returns fitted models.
"""
