"""Inputs that should be refused, by the million: ``.ci/fuzz SECONDS``."""
