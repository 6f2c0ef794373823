"""Metrics of structured predictions, and plots.

Takes labels and fitted models; returns numbers, tables and figures.
"""
