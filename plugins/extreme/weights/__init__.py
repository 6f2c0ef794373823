"""Weights of very many classes, stored by feature: what training changes, and frozen scans."""
