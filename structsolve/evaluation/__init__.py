"""Metrics of structured predictions, and plots.

Takes labels and fitted models; hands on numbers, tables and figures.
"""
