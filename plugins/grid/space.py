"""Label pictures: a class per pixel, tables of scores for pairs of neighbouring classes."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.plugins.grid.contrast import (
    contrast_names,
    contrast_sums,
    edge_features,
    mean_of_sums,
    mean_squared_contrast,
    n_columns,
)
from structsolve.plugins.grid.pictures import Pictures, flat_allowed, flat_labels, read_pictures
from structsolve.plugins.mrf.labelings import GraphLabelings
from structsolve.plugins.mrf.node_labels import NodeLabels, read_labels
from structsolve.plugins.mrf.space import check_decoding, needs_features
from structsolve.plugins.mrf.tables.graphs import graph_identity, grid_directions, grid_edges
from structsolve.structure.base import Structure
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.params import parameters


@parameters
class GridStructure(Structure):
    """Label pictures: a class for every pixel, with scores of pairs of neighbouring pixels.

    Parameters
    ----------
    neighbours : {4, 8}, default=4
        Each pixel has edges to those beside it, or to those at its corners too.
    directed : bool, default=False
        Tables distinguish the left (upper) pixel's class from the right (lower) one's. By default
        they are symmetric: ``coef_["pair"]`` holds each pair with the smaller class first.
    by_direction : bool, default=False
        Horizontal, vertical and (of 8 neighbours) both kinds of diagonal edges have separate
        tables.
    contrast : str or list of str, optional
        Tables are linear in a constant and these features of the edge between pixels x (left, or
        upper) and x': "difference", ``x' - x``; "absolute", ``|x' - x|``; "gaussian",
        ``exp(-|x' - x|^2 / (2 s))``, a single column, with the mean s of ``|x' - x|^2`` over the
        edges of training, of any ``sample_weight``; "ends", x and x' themselves.  By default all
        edges share their tables.
    void : label or list of labels, optional
        Labels of pixels to ignore, such as 255; see
        :class:`~structsolve.plugins.mrf.MRFStructure`.
    oracle : str, default="auto"
        Decoder; see :class:`~structsolve.plugins.mrf.MRFStructure`.
    predict_oracle : str, optional
        The oracle for prediction; by default ``oracle``.
    max_iter : int, default=100
        Maximum number of iterations of TRW-S, for "trws", "expansion" and "auto".

    Notes
    -----
    X is a list of arrays of shape (height, width, features), of any sizes, or one array of shape
    (n, height, width, features); grey pictures need no axis of features.  Y is a list of label
    pictures of shape (height, width), or one array; entries of a list may be
    :class:`~structsolve.WeightedLabels`.  Predictions are label pictures, one array if X is one.
    Pictures of one call share a graph in memory if all have the same size.

    Edge features of several directions are columns side by side: the constant and the contrasts of
    horizontal edges first, then of vertical ones, of those down to the right, and to the left.

    The Gaussian contrast with this scale is that of GrabCut (Rother, Kolmogorov and Blake 2004,
    equations 4 and 5).

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> Y = [np.array([[0, 0, 1], [0, 0, 1]]), np.array([[1, 1], [0, 0], [0, 0]])]
    >>> X = [y[..., None] + np.random.default_rng(0).normal(size=(*y.shape, 1)) / 4 for y in Y]
    >>> model = StructuredSVM("grid", alpha=0.01).fit(X, Y)
    >>> [picture.tolist() for picture in model.predict(X)]
    [[[0, 0, 1], [0, 0, 1]], [[1, 1], [0, 0], [0, 0]]]
    """

    name = "grid"
    takes_marginals = 2
    layouts = {"neighbours": (4, 8), "directed": (False, True), "by_direction": (False, True)}
    label_axes = 2
    former_params = ("contrast_scale",)  # of earlier versions, which files may hold

    neighbours: int = 4
    _: KW_ONLY
    directed: bool = False
    by_direction: bool = False
    contrast: Any = None
    void: Any = None
    oracle: str = "auto"
    predict_oracle: Any = None
    max_iter: int = 100

    @property
    def tables(self) -> str:
        """How tables depend on edges; see :class:`~structsolve.plugins.mrf.MRFStructure`."""
        return "features" if self.by_direction or contrast_names(self.contrast) else "shared"

    def check_params(self) -> None:
        """Refuse parameters that do not fit."""
        check_decoding(self)
        grid_directions(self.neighbours)
        contrast_names(self.contrast)

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[GridSpace, Examples]:
        """Learn classes, features and the scale of contrast, and pack the training data.

        See :meth:`structsolve.Structure.make_space`.
        """
        self.check_params()
        pictures = read_pictures(X)
        given = _read(Y, pictures.shapes, self.void, classes)
        names = labels.learn_classes(given.flat, classes)
        scale = None
        if "gaussian" in contrast_names(self.contrast):
            scale = mean_squared_contrast(pictures.arrays, self.neighbours)
        n_features = pictures.arrays[0].shape[2]
        space = GridSpace(self, names, n_features, scale, fit_intercept)
        return space, space.label(space.stack_pictures(pictures), given)

    def score_space(self, classes: Any = None, edge: bool = False) -> GridSpace:
        """Return a space without features; see :meth:`structsolve.Structure.score_space`.

        Parameters
        ----------
        classes : int or sequence
            The number of classes, or their sorted names.
        edge : bool
            Each edge has a separate table of scores: for ``by_direction=True``.
        """
        self.check_params()
        needs_features(edge, self, "by_direction=True")
        return GridSpace(self, labels.class_names(classes, self.name), 0, None, False)

    def space_from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> GridSpace:
        """Rebuild a space from what its ``state()`` returned."""
        scale = arrays.get("scale")
        return GridSpace(
            self,
            arrays["classes"],
            state["n_features"],
            None if scale is None else float(scale[0]),
            state["intercept"],
        )

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random pictures with labels."""
        rng = np.random.default_rng(random_state)
        K = 2 if self.oracle == "roof-duality" else 3
        shapes = [
            (h, w) for h in range(1, size + 2) for w in range(1, size + 2) if h * w <= size + 1
        ]
        X, Y = [], []
        for k in rng.integers(len(shapes), size=n):
            X.append(rng.integers(-2, 3, (*shapes[k], 2)).astype(float))
            Y.append(rng.integers(0, K, shapes[k]))
        return X, Y


class GridSpace(GraphLabelings):
    """Classes of pixels, and the numbers of features of pixels and edges.

    Attributes
    ----------
    contrast_scale_ : float or None
        The scale of the Gaussian contrast; None without one.
    """

    nodes_name = "pixels"

    def __init__(
        self,
        structure: GridStructure,
        classes: np.ndarray,
        n_features: int,
        scale: float | None,
        intercept: bool,
    ):
        directions = len(grid_directions(structure.neighbours)) if structure.by_direction else 1
        n_edge = 0
        if structure.tables == "features":
            n_edge = n_columns(contrast_names(structure.contrast), n_features, directions)
        columns = n_features, n_edge, intercept
        super().__init__(structure, classes, None, None, None, columns)
        self.contrast_scale_ = None if scale is None else float(scale)

    def stack(self, X: Any) -> Examples:
        """Return packed pictures without labels."""
        return self.stack_pictures(read_pictures(X, self.layout.n_features))

    def stack_pictures(self, pictures: Pictures) -> Examples:
        """Return packed pictures without labels.

        Parameters
        ----------
        pictures : Pictures

        Returns
        -------
        Examples
            ``topology["shapes"]`` has the sizes, and ``topology["stacked"]`` whether X was one
            array.  ``topology["shared_ends"]`` has the edges of pictures of one size, else
            ``topology["ends"]`` the edges of all of them.

        Raises
        ------
        ValueError
            If the result exceeds the memory; raised before allocation, with the size.
        """
        shapes, layout = pictures.shapes, self.layout
        bounds = self._edge_offsets(shapes)
        # Features as numbers of 8 bytes; edges as built and as kept.
        size = 8 * (int(shapes.prod(axis=1).sum()) * layout.n_features)
        size += (8 * layout.n_edge_features + 24) * int(bounds[-1])
        refuse_too_large(
            size,
            f"X: {len(shapes)} pictures with {bounds[-1]} edges of {layout.n_edge_features} "
            "features",
            "use smaller or fewer pictures, or less contrast",
        )
        rows = [x.reshape(-1, x.shape[2]) for x in pictures.arrays]
        nodes, offsets = packing.stack_rows(
            [r if r.dtype.kind == "f" else r.astype(np.float64) for r in rows],
            self.layout.n_features,
            compress=True,
        )
        examples = Examples(offsets, nodes, edge_offsets=bounds)
        examples.topology = self._topology(shapes, pictures.stacked)
        if self.layout.edge is not None:
            examples.edges = packing.sparsify(self._edge_features(pictures.arrays, bounds))
        return examples

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return pictures of given sizes, without features; see :meth:`MRFSpace.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of (int, int)
            Height and width of each picture.
        **topology
            None.

        Returns
        -------
        Examples
            Nodes are pixels, row by row; rows of scores of edges are in the order of
            :func:`~structsolve.plugins.mrf.grid_edges`.
        """
        packing.no_topology(topology)
        shapes = packing.size_pairs(sizes, "height and width")
        bounds = self._edge_offsets(shapes)
        offsets = packing.size_offsets(shapes.prod(axis=1), "pixels")
        refuse_too_large(
            24 * int(bounds[-1]),
            f"sizes: {len(shapes)} pictures with {bounds[-1]} edges",
            "use smaller or fewer pictures",
        )
        return Examples(offsets, edge_offsets=bounds, topology=self._topology(shapes, False))

    def _edge_offsets(self, shapes: np.ndarray) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(n_edges(shapes, self.structure.neighbours))])

    def _topology(self, shapes: np.ndarray, stacked: bool) -> dict[str, Any]:
        topology: dict[str, Any] = {"shapes": shapes, "stacked": stacked}
        if (shapes == shapes[0]).all():
            topology["shared_ends"] = self._edges(shapes[0])
        else:
            topology["ends"] = np.concatenate([self._edges(shape) for shape in shapes])
        topology["identity"] = graph_identity(shapes)
        return topology

    def _edges(self, shape: np.ndarray) -> np.ndarray:
        return grid_edges(*shape.tolist(), self.structure.neighbours).astype(np.int32)

    def _edge_features(self, arrays: list[np.ndarray], bounds: np.ndarray) -> np.ndarray:
        structure = self.structure
        single = all(x.dtype == np.float32 for x in arrays)
        features = np.zeros(
            (int(bounds[-1]), self.layout.n_edge_features), np.float32 if single else np.float64
        )
        names = contrast_names(structure.contrast)
        scale = 1.0 if self.contrast_scale_ is None else self.contrast_scale_
        for x, first, last in zip(arrays, bounds, bounds[1:]):
            edge_features(
                x, names, structure.neighbours, structure.by_direction, scale, features[first:last]
            )
        return features

    def read(self, Y: Any, examples: Examples) -> NodeLabels:
        """Return the labels of packed pictures, not encoded."""
        return _read(Y, examples.topology["shapes"], self.structure.void, self.classes_)

    def label(self, examples: Examples, given: NodeLabels, unseen: str = "error") -> Examples:
        """Return packed pictures with labels, with void pixels left out or without weight."""
        topology = examples.topology
        examples = super().label(examples, given, unseen)
        for name in ("shapes", "stacked"):  # training pictures without void pixels keep them
            examples.topology[name] = topology[name]
        return examples

    def shared_edges(self, examples: Examples) -> np.ndarray | None:
        """Return the edges of pictures that have one size; None if sizes differ."""
        return examples.topology.get("shared_ends")

    def unpack(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return label pictures: a list, or one array where X was one."""
        return self._pictures(self.classes_[flat], examples)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> np.ndarray:
        """Return one label picture."""
        return self.classes_[label].reshape(examples.topology["shapes"][i])

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return scores, of shape (height, width, n_classes): one array if X was, else a list."""
        return self._pictures(flat, examples)

    def _pictures(self, flat: np.ndarray, examples: Examples) -> Any:
        shapes, more = examples.topology["shapes"], flat.shape[1:]
        if examples.topology["stacked"]:
            return flat.reshape(len(shapes), *shapes[0], *more)
        parts = np.split(flat, examples.offsets[1:-1])
        return [part.reshape(*shape, *more) for part, shape in zip(parts, shapes)]

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return masks from ``allowed`` labels per pixel and ``forbidden`` pairs of neighbours.

        See :meth:`MRFSpace.mask`. ``allowed``: per picture None, an array of bool of shape (height,
        width, n_classes), or for each pixel of each row a list of allowed labels, None for all.
        ``forbidden``: needs one table for all edges.
        """
        if forbidden is not None and self.structure.tables != "shared":
            raise ValueError(
                "forbidden pairs need one table for all edges: a grid without by_direction and "
                "contrast"
            )
        return super().mask(examples, allowed, forbidden)

    def allowed_mask(self, allowed: Any, examples: Examples) -> np.ndarray:
        """Return the mask of the node block that allowed labels make."""
        flat = flat_allowed(allowed, examples.topology["shapes"], self.classes_)
        arrays = {}
        if isinstance(flat, list):  # else allowed_mask() refuses it
            arrays = {i: given for i, given in enumerate(flat) if isinstance(given, np.ndarray)}
            flat = [None if i in arrays else given for i, given in enumerate(flat)]
        mask = super().allowed_mask(flat, examples)
        for i, given in arrays.items():
            mask[examples.offsets[i] : examples.offsets[i + 1]][~given] = -np.inf
        return mask

    def learned(self, X: Any, examples: Examples) -> Any:
        """Return what the space has from these data, besides classes.

        Parameters
        ----------
        X : list
        examples : Examples

        Returns
        -------
        tuple of (float, int), or None
        """
        if self.contrast_scale_ is None:
            return None
        return contrast_sums(read_pictures(X).arrays, self.structure.neighbours)

    def joined(self, learned: list[Any], classes: Any = None) -> Any:
        """Return the space of shards of data.

        Parameters
        ----------
        learned : list
            Of each shard.
        classes : ndarray, optional
            Of all shards, if these are not those of this space.

        Returns
        -------
        Space
        """
        state, arrays = self.state()
        if classes is not None:
            arrays["classes"] = classes
        if learned[0] is not None:
            arrays["scale"] = np.array([mean_of_sums(*np.sum(learned, axis=0))])
        return self.structure.space_from_state(state, arrays)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        meta = {"n_features": self.layout.n_features, "intercept": self.layout.intercept}
        arrays = {"classes": self.classes_}
        if self.contrast_scale_ is not None:
            arrays["scale"] = np.array([self.contrast_scale_])
        return meta, arrays


def n_edges(shapes: np.ndarray, neighbours: int) -> np.ndarray:
    """Return the number of edges of pictures.

    Parameters
    ----------
    shapes : ndarray of int64 of shape (n, 2)
    neighbours : {4, 8}

    Returns
    -------
    ndarray of int64 of shape (n,)

    Examples
    --------
    >>> n_edges(np.array([[2, 2], [1, 3]]), 8).tolist()
    [6, 2]
    """
    height, width = shapes.T
    edges: np.ndarray = height * (width - 1) + (height - 1) * width
    if neighbours == 8:
        edges = edges + 2 * (height - 1) * (width - 1)
    return edges


def _read(Y: Any, shapes: np.ndarray, void: Any, classes: Any) -> NodeLabels:
    offsets = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])

    def pixel(i: int, v: int) -> str:
        return f"y, example {i}, pixel {divmod(v, int(shapes[i, 1]))}"

    return read_labels(flat_labels(Y, shapes), offsets, void, classes, pixel)
