"""Features and losses of chains by enumeration of all labelings: K**L of them."""

import itertools

import numpy as np


def labelings(length, n_classes):
    """All labelings, (K**L, L), in lexicographic order."""
    return np.ascontiguousarray(np.indices((n_classes,) * length).reshape(length, -1).T)


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
