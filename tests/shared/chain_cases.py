"""Chains of every variant, by their operators and by enumeration."""

import numpy as np
from enumeration import Enumerated
from reference.chains import labelings

from structsolve import Examples
from structsolve.part_layout import PartLayout
from structsolve.plugins.chain import ChainStructure
from structsolve.potentials.weight_layout import Block, WeightLayout

VARIANTS = [(t, s, e) for t in (True, False) for s in (True, False) for e in (True, False)]

SIZES = [
    (1, 1), (1, 2), (1, 5), (1, 9), (2, 1), (4, 1), (2, 2), (2, 4), (2, 13), (3, 3), (3, 5), (4, 2),
    (4, 4), (5, 3), (7, 2),
]  # fmt: skip

KINDS = ["normal", "ties", "equal", "wide", "huge", "forbidden", "forbidden pairs"]


class Case(Enumerated):
    """A chain of some length, with others after it, and before it those of lengths `before`."""

    def __init__(self, length, k, transitions=True, start_end=True, edges=False, before=()):
        self.length, self.k, self.number = length, k, len(before)
        lengths = (*before, length, 1, length + 1)
        X = [np.zeros((n, 2)) for n in lengths]
        if edges:
            X = [(x, np.zeros((len(x) - 1, 1))) for x in X]
        structure = ChainStructure(start_end=start_end, transitions=transitions)
        Y = [np.zeros(n, int) for n in lengths]
        self.bind(*structure.make_space(X, Y, classes=range(k)))
        self.states = (k,) * length
        self.labels = labelings(length, k).astype(np.int32)
        self.size = self.space.layout.theta_size(length, length - 1)
        self.matrix = np.array([self.indicator(label) for label in self.labels])

    def views(self, theta):
        return self.space.layout.theta_views(theta, self.length, self.length - 1)

    def indicator(self, label):
        row = np.zeros(self.size)
        views = self.views(row)
        for v, s in enumerate(label):
            views["node"][v, s] = 1
        for v, pair in enumerate(zip(label[:-1], label[1:])):
            if "transition" in views:
                views["transition"][pair] += 1
            if "edge" in views:
                views["edge"][v][pair] = 1
        if "start" in views:
            views["start"][label[0]] = views["end"][label[-1]] = 1
        return row


def long_chain(k, length, scale, rng):
    blocks = [
        Block("transition", "shared", (k, k)),
        Block("start", "shared", (k,)),
        Block("end", "shared", (k,)),
        Block("node", "node", (k,)),
    ]
    layout = WeightLayout(blocks, 1)
    bound_to = PartLayout(layout, Examples(np.array([0, length])))
    theta = np.zeros(layout.theta_size(length, length - 1))
    views = layout.theta_views(theta, length, length - 1)
    for view in views.values():
        view[...] = scale * rng.normal(size=view.shape)
    return layout, bound_to, theta, views
