"""Decode in the shell: costs, energies, UAI files and data sets."""

import json
from itertools import permutations, product

import numpy as np
import pytest
from data import data_file, needs_data
from shell import fails, works


@pytest.mark.parametrize("maximize", [False, True])
def test_decode_assignments(capsys, tmp_path, maximize):
    rng = np.random.default_rng(0)
    path, text = tmp_path / "costs.npz", tmp_path / "costs.txt"
    for _ in range(10):
        costs = rng.integers(0, 4, (4, 4))
        np.savez(path, a=costs, b=costs[:1], n=np.arange(3))
        text.write_text("4\n" + " ".join(map(str, costs.ravel().tolist())) + "\n")
        orders = [sum(costs[i, j] for i, j in enumerate(p)) for p in permutations(range(4))]
        best = max(orders) if maximize else min(orders)
        more = ["--maximize"] if maximize else []
        for argv in ([path, "--target", "a"], [text]):
            answer = json.loads(works(capsys, "decode", *argv, "--json", *more))
            assert answer["value"] == answer["bound"] == best and answer["proven"]
            assert sum(costs[i, j] for i, j in enumerate(answer["labels"])) == best
    fails(capsys, "decode", path, match="--target names one of a, b")
    text.write_text("1 2\n3\n")
    fails(capsys, "decode", text, match="costs.txt: expected a matrix of costs")


def test_decode_energies(capsys, tmp_path):
    rng = np.random.default_rng(1)
    path, edges = tmp_path / "grid.npz", np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    for _ in range(10):
        unary, weights = rng.integers(0, 5, (4, 3)), rng.integers(0, 3, 4)
        np.savez(path, unary=unary, edges=edges, weights=weights)

        def energy(y, unary=unary, weights=weights):
            pays = [w * (y[i] != y[j]) for (i, j), w in zip(edges, weights, strict=True)]
            return unary[range(4), list(y)].sum() + sum(pays)

        least = min(map(energy, product(range(3), repeat=4)))
        answer = json.loads(works(capsys, "decode", path, "--json", "--oracle", "exact"))
        assert answer["value"] == pytest.approx(least) and answer["bound"] <= least + 1e-9
        assert energy(answer["labels"]) == pytest.approx(least)


def test_decode_uai(capsys, tmp_path):
    path, evidence, out = (tmp_path / name for name in ("a.uai", "a.evid", "labels.txt"))
    path.write_text("MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n.3 .7\n4\n.9 .1\n.2 .8\n")
    evidence.write_text("1 0 0\n")
    assert works(capsys, "decode", path) == "1\n1\n"
    told = works(capsys, "decode", path, "--evidence", evidence, "--output", out)
    assert told == f"value {np.log(0.27):.10g}, bound {np.log(0.27):.10g}, proven\n"
    assert out.read_text() == "0\n0\n"
    fails(capsys, "decode", tmp_path / "a.npz", "--evidence", evidence, match="is for UAI models")
    limited = works(capsys, "decode", path, "--oracle", "exact", "--time-limit", 60, "--json")
    assert json.loads(limited)["proven"]
    fails(capsys, "decode", path, "--time-limit", 60, match="time_limit is 60.0, which is for")
    costs = tmp_path / "costs.txt"
    costs.write_text("1 2\n2 1\n")
    fails(capsys, "decode", costs, "--time-limit", 60, match="--time-limit is for graphs")


@needs_data
@pytest.mark.parametrize(
    "name, options",
    [
        ("uai-grids/Grids_11.uai.gz", ["--oracle", "exact"]),
        ("uai-objectdetection/ObjectDetection_28.uai.gz", ["--oracle", "trws"]),
        ("uai-segmentation/Segmentation_11.uai.gz", []),
        ("lap-orlib/assign.npz", ["--target", "cost100"]),
    ],
)
def test_decode_data_sets(capsys, name, options):
    answer = json.loads(works(capsys, "decode", data_file(*name.split("/")), "--json", *options))
    assert answer["value"] == pytest.approx(answer["bound"], rel=0.1)
    if name.startswith("lap"):
        assert answer["value"] == 305


def test_decode_refuses_options_of_other_models(tmp_path, capsys):
    costs, graph = tmp_path / "costs.txt", tmp_path / "a.uai"
    costs.write_text("1 2\n2 1\n")
    graph.write_text("MARKOV\n1\n2\n1\n1 0\n2\n 1 2\n")
    for option in (("--oracle", "exact"), ("--max-iter", 5)):
        fails(capsys, "decode", costs, *option, match=f"{option[0]} is for graphs")
        assert works(capsys, "decode", graph, *option) == "1\n"
    told = "--max-iter is for --oracle auto, trws, expansion; found exact"
    fails(capsys, "decode", graph, "--oracle", "exact", "--max-iter", 5, match=told)
    fails(capsys, "decode", graph, "--maximize", match="--maximize is for costs")
    for path in (costs, graph):
        fails(capsys, "decode", path, "--target", "a", match="--target is for archives")
    costs.write_text("1_0 2\n2 1\n")
    fails(capsys, "decode", costs, match="line 1: found .*expected numbers")
    graph.write_text("MARKOV\n1\n2\n1\n1 0\n2\n 1_0 2\n")
    fails(capsys, "decode", graph, match="line 7: found '1_0'; expected entry 0")
