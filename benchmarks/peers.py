"""python-crfsuite as a peer: training and tagging, timing only the library's work."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Clock

ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "crfsuite lbfgs": ("lbfgs", {"c2": 1.0, "max_iterations": 100}),
    "crfsuite ap": ("ap", {"max_iterations": 10}),
    "crfsuite pa": ("pa", {"max_iterations": 10}),
    "crfsuite l2sgd": ("l2sgd", {"c2": 1.0, "max_iterations": 50}),
}


class Crfsuite:
    """Training data converted once; every `train` call is one timed run on it."""

    def __init__(self, items: Sequence[Any], labels: Sequence[Sequence[str]]) -> None:
        import pycrfsuite

        self._module = pycrfsuite
        with Clock() as self.conversion:
            self._trainer = pycrfsuite.Trainer(verbose=False)
            for x, y in zip(items, labels, strict=True):
                self._trainer.append(pycrfsuite.ItemSequence(x), [str(label) for label in y])
        self._folder = tempfile.TemporaryDirectory(prefix="structsolve-bench-")
        self.model = str(Path(self._folder.name, "model"))

    def train(self, algorithm: str, **parameters: Any) -> Clock:
        trainer = self._trainer
        trainer.select(algorithm)  # all parameters are its defaults again
        trainer.set_params(parameters)
        with Clock() as clock:
            trainer.train(self.model)
        # The objective after each iteration, of "lbfgs".
        self.losses = [record["loss"] for record in trainer.logparser.iterations]
        return clock

    def tagger(self) -> Any:
        tagger = self._module.Tagger()
        tagger.open(self.model)
        return tagger

    def prepare(self, items: Sequence[Any]) -> list[Any]:
        return [self._module.ItemSequence(x) for x in items]

    def predict(self, prepared: Sequence[Any]) -> list[list[str]]:
        tagger = self.tagger()
        return [tagger.tag(x) for x in prepared]
