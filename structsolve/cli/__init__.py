"""The shell: ``structsolve demo | fit | predict | score | prune | plugins | bench``.

Takes options and files; hands on models, predictions and tables in files or on standard output.
"""
