"""Structures whose spaces pack, unpack or describe wrongly, with the message to be met with."""

import numpy as np
from python_structures import (
    PyChainSpace,
    PyChainStructure,
    SubsetStructure,
    subset_features,
    subset_labels,
    subset_loss,
)
from wrong_structures import collector

from structsolve import Examples

SPACES, wrong, _ = collector()


@wrong(r"pack .* keeps every example \(offsets\).*Found 3, expected 4")
class PackDropsAnExample(PyChainSpace):
    def pack(self, X, Y=None, unseen="error"):
        if len(X) == 4:
            X, Y = X[:-1], None if Y is None else Y[:-1]
        return super().pack(X, Y, unseen)


@wrong(r"unpack .* returns the labels that were packed.*example \d")
class PackTurnsLabelsRound(PyChainSpace):
    def flatten(self, Y, offsets):
        return super().flatten([y[::-1] for y in Y], offsets)


@wrong(r"unpack_one .* returns the same label as unpack.*example \d")
class UnpackOneTurnsLabelsRound(PyChainSpace):
    def unpack_one(self, label, examples, i):
        return super().unpack_one(label[::-1], examples, i)


@wrong(r"pack .* packs an example the same among any others")
class PackDependsOnCompany(PyChainSpace):
    def stack(self, X):
        examples = super().stack(X)
        examples.nodes = examples.nodes - examples.nodes.mean(axis=0)
        return examples


@wrong(r"pack .* does not change X and y")
class PackChangesX(PyChainSpace):
    def stack(self, X):
        examples = super().stack(X)
        for x in X:
            x[0] += 1
        return Examples(examples.offsets, examples.nodes)


@wrong(r"pack .* gives labels as contiguous int32")
class PackFloats(PyChainSpace):
    def pack(self, X, Y=None, unseen="error"):
        examples = super().pack(X, Y, unseen)
        if Y is not None:
            examples.labels = examples.labels.astype(float)
        return examples


@wrong(r"enumerate_labels .* lists the true label")
class EnumeratesTooFew(PyChainSpace):
    def enumerate_labels(self, examples, i):
        rows = super().enumerate_labels(examples, i)
        return rows[(rows != examples.label(i)).any(axis=1)]


@wrong(r"__init__ breaks a promise: it stores 'transitions' unmodified")
class ChangesParameters(PyChainStructure):
    def __init__(self, start_end=True, transitions=True):
        super().__init__(start_end, [transitions])


@wrong(r"make_space .* does not change the structure")
class FitsItself(PyChainStructure):
    def make_space(self, X, Y, classes=None, fit_intercept=True):
        self.seen = len(X)
        return super().make_space(X, Y, classes, fit_intercept)


@wrong(r"make_space .* returns the result of pack\(\)")
class HandsOnOtherLabels(PyChainStructure):
    def make_space(self, X, Y, classes=None, fit_intercept=True):
        space, examples = super().make_space(X, Y, classes, fit_intercept)
        examples.labels = np.roll(examples.labels, 1)
        return space, examples


@wrong(r"sample .* draws examples.*NotImplementedError")
class NoSample(PyChainStructure):
    sample = PyChainStructure.__mro__[2].sample


@wrong(r"AugmentedOracle.argmax .* attains the maximum")
class FunctionsWithoutLoss(SubsetStructure):
    def __init__(self):
        super().__init__(
            oracle=lambda w, x, y=None: max(
                subset_labels(x), key=lambda z: w @ subset_features(x, z)
            )
        )


@wrong(r"sample .* draws the same examples again from the same random_state")
class DrawsAnew(PyChainStructure):
    def sample(self, random_state, n=4, size=3):
        return super().sample(None, n=n, size=size)


@wrong(r"make_space .* accepts its own sample .* returned 3 for the true label")
class FunctionsWithASimilarity(SubsetStructure):
    def __init__(self):
        super().__init__(loss=lambda a, b: len(a) - subset_loss(a, b))


@wrong(r"Oracle.argmax .* gives the same value for examples with other labels")
class LooksAtTheTruth(PyChainSpace):
    def argmax(self, examples, i, theta):
        best = super().argmax(examples, i, theta)
        if examples.labels is None or self.__dict__.setdefault("seen", examples) is examples:
            return best
        return examples.label(i)


@wrong(r"Oracle.argmax .* answers for examples without labels: prediction has no truth")
class NeedsTheTruth(PyChainSpace):
    def argmax(self, examples, i, theta):
        return super().argmax(examples, i, theta)[: len(examples.label(i))]


@wrong(r"make_space .* uses classes= as the classes, even if Y lacks some")
class IgnoresClasses(PyChainStructure):
    def make_space(self, X, Y, classes=None, fit_intercept=True):
        return super().make_space(X, Y, None, fit_intercept)


@wrong(r"make_space .* passes fit_intercept=(True|False) to its layout")
class IgnoresTheIntercept(PyChainStructure):
    def make_space(self, X, Y, classes=None, fit_intercept=True):
        return super().make_space(X, Y, classes, True)


@wrong(r"on X of rows of np.eye, which pack\(\) may store as sparse, breaks")
class SurprisedBySparse(PyChainSpace):
    def stack(self, X):
        examples = super().stack(X)
        examples.nodes = np.asarray(examples.nodes, dtype=float)
        return examples


@wrong(r"mask .* leaves the best allowed label|mask .* takes lists")
class MaskTurned(PyChainSpace):
    def mask(self, examples, allowed=None, forbidden=None):
        masks = super().mask(examples, allowed, forbidden)
        if allowed is not None:
            masks["node"] = masks["node"][::-1].copy()
        return masks


@wrong(r"predict .* gives a label, of largest score")
class UnpacksWithoutLabels(PyChainSpace):
    def unpack(self, labels, examples):
        if examples.labels is None:
            labels = labels[::-1]
        return super().unpack(labels, examples)
