"""The shell: ``structsolve demo | fit | predict | score | info | prune | plugins | bench``.

Takes options and files; writes models, predictions and tables to files or standard output.
"""
