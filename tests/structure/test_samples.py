"""Examples that structures draw for the kits: labels of any size, and all of the small ones."""

import numpy as np
import pytest

from structsolve import get_structure

DRAWN = [
    *[
        ("dependency", {"projective": p, "single_root": s, "labelled": labelled})
        for p in (False, True)
        for s in (False, True)
        for labelled in (None, True)
    ],
    *[("alignment", {"kind": kind}) for kind in ("edit", "many-to-one", "ctc")],
    ("cky", {}),
    ("cky", {"grammar": True}),
    ("cky", {"grammar": True, "rules": [("A", "B", "B"), ("B", "A", "A")]}),
    ("path", {}),
]


@pytest.mark.parametrize("name, params", DRAWN)
def test_long_labels_are_drawn_without_an_enumeration(name, params):
    # Trees over 40 words are more than memory holds.
    structure = get_structure(name, **params)
    X, Y = structure.sample(0, n=3, size=40)
    space, examples = structure.make_space(X, Y)
    sizes = examples.label_offsets
    assert np.diff(sizes).max() > 12
    for i in range(3):
        assert space.contains(examples.labels[sizes[i] : sizes[i + 1]], examples, i)


SMALL = [case for case in DRAWN if case[0] != "path" and not case[1].get("labelled")]


@pytest.mark.parametrize("name, params", SMALL)
def test_every_small_label_is_drawn(name, params):
    structure = get_structure(name, **params)
    every, drawn = {}, {}
    X, Y = structure.sample(1, n=3000 if name == "alignment" else 900, size=3)
    space, examples = structure.make_space(X, Y)
    for i in range(examples.n):
        size = np.shape(X[i])
        labels = set(map(tuple, space.enumerate_labels(examples, i).tolist()))
        every.setdefault(size, set()).update(labels)
        label = examples.labels[examples.label_offsets[i] : examples.label_offsets[i + 1]]
        assert tuple(label.tolist()) in labels
        drawn.setdefault(size, set()).add(tuple(label.tolist()))
    assert drawn == every
