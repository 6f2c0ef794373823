"""A structure for networks alone: the best span of a text, such as the answer to a question.

Every word has two scores, as the first word of the span and as its last.
"""

import numpy as np

from structsolve import Block, Examples, Space, Structure, WeightLayout
from structsolve.examples import packing


class SpanStructure(Structure):
    """Labels are (first, last) with first <= last."""

    name = "answer-span"

    def score_space(self, classes=None, edge=False):
        if classes is not None or edge:
            raise ValueError("classes: spans have none, and no edges")
        return SpanSpace(self)


class SpanSpace(Space):
    def __init__(self, structure):
        node = Block("node", "node", (2,), ("end",))  # a row for each word: as first, as last
        super().__init__(structure, WeightLayout([node], 0, intercept=False))

    def pack_sizes(self, sizes):
        examples = Examples(packing.size_offsets(sizes, "lengths"))  # rows of nodes: the words
        examples.label_offsets = np.arange(0, 2 * examples.n + 1, 2)  # two integers for each text
        return examples

    def check_labels(self, flat, examples):
        ends = flat.reshape(-1, 2)
        wrong = (ends[:, 0] > ends[:, 1]) | (ends[:, 1] >= np.diff(examples.offsets))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"example {i}: found the span {ends[i]}, expected first <= last < words"
            )

    def parts(self, examples, i, label):
        return {"node": (2 * label + [0, 1], np.ones(2))}  # indices of the two numbers that count

    def argmax(self, examples, i, theta):
        first, last = theta["node"].T
        best = np.maximum.accumulate(first)  # the best first word up to each word
        end = int(np.argmax(best + last))
        return np.array([np.argmax(first[: end + 1]), end], dtype=np.int32)

    # For "margin": the loss of a span, as costs of its parts.

    def loss(self, examples, i, truth, label):
        return int((truth != label).sum())

    def loss_costs(self, examples, i, truth):
        costs = np.ones((np.diff(examples.offsets)[i], 2))
        costs[truth, [0, 1]] = 0
        return {"node": costs}, 0.0

    # For "crf", Marginals and Sample: the distribution of spans, and its derivative.

    def project(self, examples, i, theta, name):
        if name != "entropy":
            return None
        shares, value = self._shares(theta)
        return {"node": np.column_stack([shares.sum(1), shares.sum(0)])}, value

    def derivative(self, examples, i, theta, direction, name):
        shares, _ = self._shares(theta)
        first, last = direction["node"].T
        gain = first[:, None] + last
        gain = shares * (gain - (shares * gain).sum())  # a covariance
        return {"node": np.column_stack([gain.sum(1), gain.sum(0)])}

    def _shares(self, theta):
        first, last = theta["node"].T
        scores = np.where(np.tri(len(first), dtype=bool).T, first[:, None] + last, -np.inf)
        top = scores.max()
        shares = np.exp(scores - top)
        return shares / shares.sum(), top + np.log(shares.sum())
