"""Chains by enumeration: every labeling is listed and scored, and all else is read off the list.

Cost K**L: for L * log(K) up to about 13.  A score of -inf forbids what it stands for (a label at
a node, a transition, a start), everywhere.
"""

import itertools

import numpy as np


def labelings(length, n_classes):
    """All labelings, (K**L, L), in lexicographic order."""
    return np.ascontiguousarray(np.indices((n_classes,) * length).reshape(length, -1).T)


class Chain:
    """One chain: unary (L, K), transition (K, K), start (K,), end (K,), edges (L-1, K, K).

    `transition[a, b]` and `edges[t, a, b]` are for label a at t and b at t + 1.
    """

    def __init__(self, unary, transition=None, start=None, end=None, edges=None):
        unary = np.asarray(unary, dtype=float)
        self.length, self.n_classes = length, k = unary.shape
        self.labels = labelings(length, k)
        states = self.labels.T
        scores = sum(unary[t, states[t]] for t in range(length))
        for t in range(length - 1):
            pair = states[t], states[t + 1]
            scores += 0 if transition is None else transition[pair]
            scores += 0 if edges is None else edges[t][pair]
        scores += 0 if start is None else start[states[0]]
        scores += 0 if end is None else end[states[-1]]
        self.scores = scores

    def score(self, labels):
        """Score of one labeling."""
        return self.scores[np.flatnonzero((self.labels == labels).all(axis=1))[0]]

    def best(self):
        """(labels, score) of the best labeling, the first of equals."""
        row = int(np.argmax(self.scores))
        return self.labels[row], self.scores[row]

    def k_best(self, k, banned=()):
        """(labels, scores) of the k best that are possible and not banned, best first."""
        banned = {tuple(map(int, labels)) for labels in banned}
        rows = [
            row
            for row in np.argsort(-self.scores, kind="stable")
            if np.isfinite(self.scores[row]) and tuple(self.labels[row].tolist()) not in banned
        ]
        return self.labels[rows[:k]], self.scores[rows[:k]]

    def max_marginals(self):
        """(L, K): the best score of a labeling with label s at node t; -inf if there is none."""
        return np.array(
            [
                [max(self.scores[self.labels[:, t] == s]) for s in range(self.n_classes)]
                for t in range(self.length)
            ]
        )

    def log_partition(self):
        """log of the sum over labelings of exp(score)."""
        top = self.scores.max()
        return top + np.log(np.exp(self.scores - top).sum())

    def probabilities(self):
        """Of every labeling, in the order of `labels`."""
        return np.exp(self.scores - self.log_partition())

    def node_marginals(self):
        """(L, K): probability of label s at node t."""
        return self._expect(self.probabilities())[0]

    def edge_marginals(self):
        """(L-1, K, K): probability of label a at t and b at t + 1."""
        return self._expect(self.probabilities())[1]

    def transition_marginals(self):
        """(K, K): expected number of each transition, pooled over the chain."""
        return self.edge_marginals().sum(axis=0)

    def entropy(self):
        """Shannon entropy of the distribution over labelings."""
        p = self.probabilities()
        return -sum(value * np.log(value) for value in p if value > 0)

    def _expect(self, weights):
        nodes = np.zeros((self.length, self.n_classes))
        edges = np.zeros((self.length - 1, self.n_classes, self.n_classes))
        for t, labels in enumerate(self.labels.T):
            np.add.at(nodes[t], labels, weights)
        for t, pair in enumerate(itertools.pairwise(self.labels.T)):
            np.add.at(edges[t], pair, weights)
        return nodes, edges


def joint_features(x, labels, n_classes, edge_x=None):
    """Phi^T mu(labels) of a chain, by block: what each table of weights is multiplied with.

    `x` is (L, D) and dense, `edge_x` (L-1, E).  The blocks: transition (K, K), start (K,),
    end (K,), node (D, K), and edge (E, K, K) if `edge_x` is given.
    """
    x = np.asarray(x, dtype=float)
    k = n_classes
    out = {
        "transition": np.zeros((k, k)),
        "start": np.zeros(k),
        "end": np.zeros(k),
        "node": np.zeros((x.shape[1], k)),
    }
    out["start"][labels[0]] = out["end"][labels[-1]] = 1
    for t, label in enumerate(labels):
        out["node"][:, label] += x[t]
    for pair in itertools.pairwise(labels):
        out["transition"][tuple(pair)] += 1
    if edge_x is not None:
        edge_x = np.asarray(edge_x, dtype=float)
        out["edge"] = np.zeros((edge_x.shape[1], k, k))
        for t, (a, b) in enumerate(itertools.pairwise(labels)):
            out["edge"][:, a, b] += edge_x[t]
    return out


def enumerate_examples(
    X, Y, n_classes, blocks=("transition", "start", "end", "node"), loss=None, edge_x=None
):
    """The problem that `reference.objectives` takes: one (differences, losses) pair an example.

    Row y of `differences` is Phi^T (mu(y_i) - mu(y)), the blocks joined in the order given; `loss`
    is a function of (truth, labels), the Hamming distance by default.
    """
    problem = []
    for i, (x, truth) in enumerate(zip(X, Y, strict=True)):

        def features(labels, x=x, i=i):
            blocks_of_x = joint_features(
                x, labels, n_classes, None if edge_x is None else edge_x[i]
            )
            return np.concatenate([blocks_of_x[name].ravel() for name in blocks])

        every = labelings(len(x), n_classes)
        at_truth = features(np.asarray(truth))
        differences = np.array([at_truth - features(labels) for labels in every])
        losses = np.array(
            [
                float(np.sum(labels != truth)) if loss is None else loss(truth, labels)
                for labels in every
            ]
        )
        problem.append((differences, losses))
    return problem
