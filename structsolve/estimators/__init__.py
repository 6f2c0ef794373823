"""Layer 6: models as scikit-learn knows them, their prediction and their files.

Takes X and y as users have them and every layer below; hands on fitted models.
"""
