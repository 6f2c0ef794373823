# build: glue
"""Positions of the parts of each example: sizes of theta and labels, not weights or features."""


cdef class PartLayout:
    # The first line tells inspect the signature of a compiled class.
    """PartLayout(blocks, examples, training=False)\n--\n\n\
    Sizes of the part scores and labels of packed examples, and where blocks start.

    Operators, surrogates, searches and projections hold one: it is all their information about the
    examples, besides data packed by the structure.  It needs no weights, features or labels.

    Parameters
    ----------
    blocks : WeightLayout, or sequence of Block
        The blocks of parts, as a space declares them.
    examples : Examples
        Their ``offsets``, ``edge_offsets``, ``label_offsets`` and ``topology`` are used.
    training : bool, default=False
        Whether these are training examples, for which an oracle may answer differently than in
        prediction, such as by a relaxation.

    Attributes
    ----------
    n : int
        Number of examples.
    shared_size, node_size, edge_size : int
        Doubles of theta that the shared blocks take, one row of nodes, and one row of edges.
    max_theta, max_nodes, max_edges, max_label : int
        Of the largest example: doubles of theta, nodes, rows of edges, integers of a label.
    starts : dict of str to int
        First double of each shared block in theta; of the node rows; -1 for edge rows, which begin
        behind the node rows of their example.
    shapes : dict of str to tuple
        Shape of one row of parts of each block, without padding.
    examples : Examples
    training : bool

    Raises
    ------
    ValueError
        If an example has 2^31 part scores or more.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import Block, Examples
    >>> from structsolve.part_layout import PartLayout
    >>> blocks = [Block("transition", "shared", (3, 3)), Block("node", "node", (3,))]
    >>> layout = PartLayout(blocks, Examples(np.array([0, 2, 5])))
    >>> layout.n, layout.sizes(1)
    (2, (28, 3))
    """

    def __init__(self, blocks, examples, bint training=False):
        cdef const int64_t[::1] offsets = examples.offsets, edge_offsets, label_offsets
        cdef Py_ssize_t i
        self.shared_objects = {}
        self.examples, self.training = examples, training
        if hasattr(blocks, "theta_starts"):
            # A WeightLayout has all sizes.
            self.starts, self.shapes = blocks.theta_starts, blocks.shapes
            self.shared_size = blocks.shared_size
            self.node_size, self.edge_size = blocks.node_size, blocks.edge_size
        else:
            self._measure(blocks)
        self.n = offsets.shape[0] - 1
        self.offsets = &offsets[0]
        label_offsets = examples.label_offsets
        self.label_offsets = &label_offsets[0]
        self.owners = (offsets, label_offsets)
        if self.edge_size and examples.edge_offsets is not None:
            edge_offsets = examples.edge_offsets
            self.edge_offsets = &edge_offsets[0]
            self.owners += (edge_offsets,)
        self.max_nodes, self.max_label = _longest(offsets), _longest(label_offsets)
        self.max_theta = self.shared_size + self.max_nodes * self.node_size
        if self.edge_offsets != NULL:
            self.max_edges = _longest(edge_offsets)
            for i in range(self.n):
                self.max_theta = max(self.max_theta, self.theta_size(i))
        if self.max_theta > 0x7fffffff:
            raise ValueError(
                f"an example has {self.max_theta} part scores, at most 2^31 - 1 are supported"
            )

    def _measure(self, blocks):
        position = 0
        self.starts, self.shapes = {}, {}
        for block in blocks:
            self.shapes[block.name] = tuple(block.shape)
            if block.kind == "shared":
                self.starts[block.name] = position
                position += block.size
            elif block.kind == "node":
                self.node_size = block.size
            else:
                self.edge_size = block.size
        self.shared_size = (position + 7) // 8 * 8
        for block in blocks:
            if block.kind != "shared":
                self.starts[block.name] = self.shared_size if block.kind == "node" else -1

    def sizes(self, Py_ssize_t i):
        """Return the sizes of theta and of a label.

        Parameters
        ----------
        i : int
            Number of the example.

        Returns
        -------
        theta_size, label_size : int
            Doubles, and integers.

        Raises
        ------
        ValueError
            If there is no such example.
        """
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        return self.theta_size(i), self.label_size(i)

    def common(self, key, make):
        """Return an object shared by operators of these examples; the first call makes it.

        Parameters
        ----------
        key : hashable
            Chosen by the plugin, such as one of its classes.
        make : callable
            ``layout -> object``.

        Returns
        -------
        object
        """
        if key not in self.shared_objects:
            self.shared_objects[key] = make(self)
        return self.shared_objects[key]

    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil:
        return self.offsets[i + 1] - self.offsets[i]

    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil:
        if self.edge_offsets == NULL:
            return 0
        return self.edge_offsets[i + 1] - self.edge_offsets[i]

    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil:
        return self.edge_start(i) + self.edges_of(i) * self.edge_size

    cdef Py_ssize_t label_size(self, Py_ssize_t i) noexcept nogil:
        return self.label_offsets[i + 1] - self.label_offsets[i]

    cdef Py_ssize_t edge_start(self, Py_ssize_t i) noexcept nogil:
        return self.shared_size + self.nodes_of(i) * self.node_size


cdef Py_ssize_t _longest(const int64_t[::1] offsets) noexcept:
    """Return the most entries between an offset and the next."""
    cdef Py_ssize_t i, most = 0
    cdef const int64_t* starts = &offsets[0]
    for i in range(offsets.shape[0] - 1):
        most = max(most, starts[i + 1] - starts[i])
    return most
