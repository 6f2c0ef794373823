"""python-crfsuite and pystruct as peers, timing only the library's work."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock
from datasets import Words
from environments import missing, ready

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


#: Runs in pystruct's environment, whose Python is old.
PYSTRUCT = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from pystruct.learners import FrankWolfeSSVM
from pystruct.models import ChainCRF
path, options = sys.argv[1], json.loads(sys.argv[2])
with np.load(path) as told:
    pixels, labels, inner = told["pixels"].astype(float), told["labels"], told["offsets"][1:-1]
X, Y = np.split(pixels, inner), np.split(labels, inner)
svm = FrankWolfeSSVM(ChainCRF(inference_method="max-product", directed=True), **options)
start = time.process_time()
svm.fit(X, Y)
spent = time.process_time() - start
passes = 1 + (len(svm.objective_curve_) - 2) * svm.check_dual_every
answer = dict(total=spent, passes=passes, primal=min(svm.primal_objective_curve_),
              dual=max(svm.objective_curve_))
start = time.process_time()
svm.predict(X)
print(json.dumps(dict(answer, many=(time.process_time() - start) / len(X))))
"""


def pystruct(words: Words, C: float, **options: Any) -> dict[str, Any] | str:
    """Figures of pystruct's BCFW on the objective .5 |w|^2 + C sum_i H_i, or why there are none."""
    python = ready("pystruct")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "words.npz")
        np.savez(path, pixels=words.pixels, labels=words.labels, offsets=words.offsets)
        given = json.dumps({"C": C, "random_state": 0, **options})
        call = [str(python), "-c", PYSTRUCT, str(path), given]
        try:
            done = subprocess.run(call, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            return missing("pystruct") or str(error)
    return json.loads(done.stdout.splitlines()[-1])
