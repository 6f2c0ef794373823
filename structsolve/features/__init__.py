"""Features for sequences: named attributes of tokens, transformers of nodes.

Takes tokens and dicts; hands on matrices that estimators take as X.
"""
