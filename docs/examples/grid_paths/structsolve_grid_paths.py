"""Paths through grids, from the first cell to the last, by steps right, down, or both at once."""

import numpy as np
from scipy import sparse

from structsolve import Block, Examples, Named, Space, Structure, WeightLayout, hookimpl
from structsolve.examples import packing
from structsolve.lp import Polytope, Polytopes


def following(cell, shape):
    steps = [(cell[0] + down, cell[1] + right) for down, right in ((0, 1), (1, 0), (1, 1))]
    return [(r, c) for r, c in steps if r < shape[0] and c < shape[1]]


def paths_from(cell, shape):
    return [[cell, *p] for n in following(cell, shape) for p in paths_from(n, shape)] or [[cell]]


def best_path(score):
    best = {}  # best (value, path) from each cell; among equal values the last path
    for cell in reversed([*np.ndindex(score.shape)]):
        value, path = max([best[n] for n in following(cell, score.shape)], default=(0.0, []))
        best[cell] = (value + score[cell], [cell, *path])
    return best[0, 0]


class GridPathStructure(Structure):
    """X is a list of arrays (height, width, d) of cell features, Y a list of lists of cells."""

    name = "grid-paths"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        space = GridPathSpace(self, np.shape(X[0])[-1], fit_intercept)
        return space, space.pack(X, Y)

    def space_from_state(self, state, arrays):
        return GridPathSpace(self, **state)

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X = [rng.integers(-2, 3, (*rng.integers(1, size + 1, 2), 2)) * 1.0 for _ in range(n)]
        return X, [best_path(rng.normal(size=x.shape[:2]))[1] for x in X]


class GridPathSpace(Space):
    """A label is encoded as 1 for each cell of the path and 0 for others, row by row."""

    def __init__(self, structure, n_features, intercept):
        block = Block("node", "node", (1,))
        super().__init__(structure, WeightLayout([block], n_features, intercept=intercept))

    def pack(self, X, Y=None, unseen="error"):
        rows = [np.reshape(x, (-1, np.shape(x)[-1])) for x in X]
        nodes, offsets = packing.stack_rows(rows, self.layout.n_features)
        shapes = [np.shape(x)[:2] for x in X]
        examples = Examples(offsets, nodes, topology={"shapes": shapes})
        if Y is not None:
            flat = [self.encode(i, *pair) for i, pair in enumerate(zip(shapes, Y, strict=True))]
            examples.labels = np.concatenate(flat)
        return examples

    def encode(self, i, shape, path):
        label, path = np.zeros(shape, np.int32), [tuple(cell) for cell in path]
        links = all(b in following(a, shape) for a, b in zip(path, path[1:]))
        if not links or [path[0], path[-1]] != [(0, 0), (shape[0] - 1, shape[1] - 1)]:
            raise ValueError(f"example {i}: found {path}, expected a path to the last of {shape}")
        label[tuple(np.transpose(path))] = 1
        return label.ravel()

    def unpack_one(self, label, examples, i):
        cells = label.reshape(examples.topology["shapes"][i])
        return [tuple(cell) for cell in np.argwhere(cells).tolist()]  # row by row: in order

    def enumerate_labels(self, examples, i):
        shape = examples.topology["shapes"][i]
        return np.array([self.encode(i, shape, path) for path in paths_from((0, 0), shape)])

    def parts(self, examples, i, label):
        return {"node": label[:, None]}

    def argmax(self, examples, i, theta):
        shape = examples.topology["shapes"][i]
        return self.encode(i, shape, best_path(theta["node"].reshape(shape))[1])

    def loss(self, examples, i, truth, label):
        return (truth != label).sum()

    def loss_costs(self, examples, i, truth):
        return {"node": 1.0 - 2 * truth[:, None]}, truth.sum()

    def polytopes(self, examples):
        return PathPolytopes(self.layout, examples.topology["shapes"])


class PathPolytopes(Polytopes):
    """A circulation: steps, and one arc from the last cell back to the first."""

    exact = True
    note = "totally unimodular: a circulation, each row of it a cell"

    def __init__(self, layout, shapes):
        self.layout, self.shapes, self.key = layout, shapes, shapes.__getitem__

    def build(self, i):
        number = {cell: j for j, cell in enumerate(np.ndindex(self.shapes[i]))}
        steps = [(number[a], number[b]) for a in number for b in following(a, self.shapes[i])]
        n, m, (tails, heads) = len(number), len(steps) + 1, np.transpose([(-1, 0), *steps])
        cells, ones = np.append(heads, tails % n), np.ones(m)
        A = sparse.csr_matrix((np.append(ones, -ones), (cells, np.arange(2 * m) % m)), (n, m))
        parts, b = self.layout.node_size * heads, np.zeros(n)  # a step has its target's score
        low = np.eye(1, m)[0]  # the arc back is in every path
        return Polytope(A, b, b, parts, lambda x: np.bincount(heads, x, n).astype(int), lower=low)


@hookimpl
def structsolve_structures():
    return [Named("grid-paths", GridPathStructure, "paths through grids of cells")]
