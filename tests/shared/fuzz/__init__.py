"""Millions of inputs that should be refused: ``.ci/fuzz SECONDS``."""
