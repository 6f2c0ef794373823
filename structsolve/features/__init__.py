"""Features for sequences: named attributes of tokens, transformers of nodes.

Takes tokens and dicts; returns matrices for estimators' X.
"""
