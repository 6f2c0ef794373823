"""Operators of structures against enumeration: ``check_structure`` with a new seed per case."""

from __future__ import annotations

import numpy as np

import structsolve
from structsolve.testing import BrokenPromise, check_structure

from . import seeds
from .base import Fault, Target

# "layouts" includes all others, with scores in other places: every other case.
_PARTS = ("parts", "oracle", "relaxation", "kbest", "max-marginals", "projection", *["layouts"] * 6)


class Operators(Target):
    """Labels, the k best, max-marginals and marginals of every structure, with every layout."""

    name = "operators"
    refusals = ()
    batch = 50

    def __init__(self, folder: str):
        self.structures = [structsolve.get_structure(name) for name in seeds.structures()]

    def run(self, rng: np.random.Generator) -> None:
        """Check one structure; see the package."""
        structure = self.structures[int(rng.integers(len(self.structures)))]
        seed, part = int(rng.integers(2**31)), _PARTS[int(rng.integers(len(_PARTS)))]
        size = int(rng.integers(2, 5))
        self.say(f"check_structure({structure!r}, random_state={seed}, only=[{part!r}])")
        try:
            check_structure(
                structure, n_cases=1, size=size, random_state=seed, solvers=(), only=[part]
            )
        except BrokenPromise as broken:
            raise Fault(str(broken)) from broken
