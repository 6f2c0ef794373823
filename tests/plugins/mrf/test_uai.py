"""The UAI format: tiny files, every kind of broken file, and the models of the data folder."""

import gzip
import itertools
import json

import numpy as np
import pytest
from checks import refused
from data import data_file, needs_data
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.graphs import exact_search
from shell import fails, works

from structsolve.plugins.mrf import decode
from structsolve.plugins.mrf.cuts._roof_duality import roof_duality
from structsolve.plugins.mrf.local_search._climb import local_search
from structsolve.plugins.mrf.messages._trws import tree_reweighted
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.plugins.mrf.uai import read_uai

TOY = """MARKOV
3
2 3 2
6
1 1
2 0 1
2 2 1
2 1 2
0
1 1

3
 1 2 0
6
 1 2 3
 4 5 6
6  1 2 3
   4 5 6
6  1 0.5 2 1 3 1
1  2.5
3  1e-3 1 1
"""


def put(folder, text, name="toy.uai"):
    path = folder / name
    path.write_text(text)
    return path


def probabilities(factors, states):
    """Return the product of all factors for every labeling."""
    product = {}
    for label in itertools.product(*map(range, states)):
        product[label] = np.prod([table[tuple(label[v] for v in vs)] for vs, table in factors])
    return product


def test_a_toy(tmp_path):
    model = read_uai(put(tmp_path, TOY))
    assert model.states.tolist() == [2, 3, 2] and model.ends.tolist() == [[0, 1], [1, 2]]
    six = np.arange(1.0, 7)
    factors = [
        ((1,), np.array([1.0, 2, 0])),
        ((0, 1), six.reshape(2, 3)),
        ((2, 1), six.reshape(2, 3)),
        ((1, 2), np.array([[1, 0.5], [2, 1], [3, 1]])),
        ((), np.array(2.5)),
        ((1,), np.array([1e-3, 1, 1])),
    ]
    graph = GraphModel(*model[:4])
    for label, probability in probabilities(factors, model.states).items():
        score = graph.score(label) + model.constant
        assert np.exp(score) == pytest.approx(probability, rel=1e-12)
    packed = tmp_path / "toy.uai.gz"
    packed.write_bytes(gzip.compress(TOY.encode()))
    assert read_uai(packed).unary[1].tolist() == model.unary[1].tolist()


def test_evidence(tmp_path):
    path = put(tmp_path, TOY)
    model = read_uai(path, put(tmp_path, "2\n 1 1\n0 0\n", "toy.evid"))
    label, _, _, proven = exact_search(GraphModel(*model[:4]))
    assert proven and label[:2].tolist() == [0, 1]
    for text in ("0", "1\n0"):
        none = read_uai(path, put(tmp_path, text, "none.evid"))
        assert none.unary[0].tolist() == read_uai(path).unary[0].tolist()
    again = read_uai(path, put(tmp_path, "1\n2 1 1 0 0\n", "toy.evid"))  # of one sample
    assert [row.tolist() for row in again.unary] == [row.tolist() for row in model.unary]
    for text, message in [
        ("", "none.evid: found nothing"),
        ("1 1", "line 1: found 0 numbers after it; expected 2"),  # of one sample
        ("3 1 1", "line 1: found 2 numbers after it; expected 6"),
        ("2 1 1 1", "line 1: found '2'; expected the number of samples: an integer, 1 to 1"),
        ("1 3 0", "line 1: found '3'; expected an observed variable: an integer, 0 to 2"),
        ("1\n\n0 2", "line 3: found '2'; expected the state of variable 0: an integer, 0 to 1"),
        ("2 0 1 0 0", "found state 0 of variable 0; expected state 1, as before"),
    ]:
        refused(message, read_uai, path, put(tmp_path, text, "none.evid"))


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("MARKOV", "CREDAL", "toy.uai, line 1: found 'CREDAL'; expected MARKOV or BAYES"),
        ("MARKOV", "BAYES", "found factors whose last variables are .*; expected one factor for"),
        ("MARKOV\n3", "MARKOV\n0", "line 2: found '0'; expected the number of variables"),
        ("2 3 2\n", "2 x 2\n", "line 3: found 'x'; expected the number of states of variable 1"),
        ("2 3 2\n", "2 -3 2\n", "line 3: found '-3'"),
        ("2 3 2\n", "2 3 0\n", "line 3: found '0'"),
        ("2 0 1\n", "3 0 1 2\n", "line 14: found 6 entries; expected 12 entries of factor 1, over"),
        ("2 0 1\n", "3 0 1 0\n", "line 6: found variable 0 twice in factor 1; expected different"),
        ("2 0 1\n", "2 0 3\n", "line 6: found '3'; expected a variable of factor 1"),
        ("2 0 1\n", "2 1 1\n", "line 6: found variable 1 twice in factor 1"),
        ("3\n 1 2 0", "4\n 1 2 0 1", "line 12: found 4 entries; expected 3 entries of factor 0"),
        (" 1 2 3\n 4", " 1 -2 3\n 4", "line 15: found '-2'; expected entry 1 of factor 1"),
        (" 1 2 3\n 4", " 1 2 3\n four", "line 16: found 'four'; expected entry 3 of factor 1"),
        (" 1 2 3\n 4", " nan 2 3\n 4", "line 15: found 'nan'"),
        (" 1 2 3\n 4", " inf 2 3\n 4", "line 15: found 'inf'"),
        ("1e-3 1 1", "1e-3 1", "found the end of the file; expected 3 entries of factor 5"),
        ("1e-3 1 1", "1e-3 1 1 7", "line 21: found 1 more words, the first '7'; expected the end"),
    ],
)
def test_broken_files(tmp_path, old, new, message):
    assert TOY.count(old) == 1
    refused(message, read_uai, put(tmp_path, TOY.replace(old, new)))


def test_files_cut_short(tmp_path):
    words = TOY.split()
    for kept in range(len(words)):
        refused("toy.uai, line .*cut short", read_uai, put(tmp_path, " ".join(words[:kept])))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, len(TOY.split()) - 1), st.text(max_size=6) | st.integers().map(str))
def test_any_word_in_any_place(tmp_path, place, word):
    words = TOY.split()
    words[place] = word
    path = tmp_path / "any.uai"
    path.write_text(" ".join(words), encoding="utf-8", errors="replace")
    try:
        model = read_uai(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        GraphModel(*model[:4])


@needs_data
@pytest.mark.parametrize("name", ["uai-grids", "uai-segmentation", "uai-objectdetection"])
def test_real_models(name):
    paths = sorted(data_file(name).glob("*.uai.gz"))
    assert paths
    for path in paths:
        given = read_uai(path, str(path).replace(".uai.gz", ".uai.evid.gz"))
        model = GraphModel(*given[:4])
        label, value, bound, _ = tree_reweighted(model, max_iter=100)
        assert model.score(label) == value <= bound
        better, score = local_search(model, label)
        assert value <= score == model.score(better) <= bound + 1e-9 * abs(bound)
        if given.states.max() <= 2:
            assert roof_duality(model)[0] <= bound + 1e-9 * abs(bound)
            assert roof_duality(model)[0] >= score - 1e-9 * abs(bound)


# -- factors over three variables and more ---------------------------------------------------------


def written(states, factors):
    """Return the text of a network, with its tables printed to the last bit."""
    lines = [f"MARKOV {len(states)}", " ".join(map(str, states)), str(len(factors))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in factors]
    lines += [
        f"{table.size}\n" + " ".join(map(repr, table.ravel().tolist())) for _, table in factors
    ]
    return "\n".join(lines)


def random_network(rng):
    states = rng.integers(1, 4, rng.integers(1, 6)).tolist()
    factors = []
    for _ in range(rng.integers(0, 8)):
        arity = rng.integers(0, min(len(states), 4) + 1)
        scope = tuple(rng.permutation(len(states))[:arity].tolist())
        # Few values, so there are ties; from no zeros to all zeros.
        table = np.asarray(rng.integers(1, 5, [states[v] for v in scope]) / 2)
        table[rng.random(table.shape) < rng.choice([0, 0.3, 0.8, 1], p=[0.4, 0.3, 0.27, 0.03])] = 0
        factors.append((scope, table))
    return states, factors


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_networks_of_any_arity_against_enumeration(first, tmp_path):
    for seed in range(first, first + 50):
        compare_with_enumeration(seed, tmp_path)


def compare_with_enumeration(seed, tmp_path):
    rng = np.random.default_rng(seed)
    states, factors = random_network(rng)
    path = put(tmp_path, written(states, factors))
    products = probabilities(factors, states)
    evidence, seen = None, {}
    if seed % 3 == 0:
        seen = {v: int(rng.integers(k)) for v, k in enumerate(states) if rng.random() < 0.4}
        text = " ".join(f"{v} {state}" for v, state in seen.items())
        evidence = put(tmp_path, f"{len(seen)} {text}", "toy.evid")
        products = {
            label: product if all(label[v] == state for v, state in seen.items()) else 0.0
            for label, product in products.items()
        }
    given = read_uai(path, evidence)
    assert given.n_variables == len(states) and given.states[: len(states)].tolist() == states
    graph = GraphModel(*given[:4])
    # The other nodes' votes on every labeling of the variables: their best states, one by one.
    for label, product in products.items():
        complete = list(label)
        for v in range(len(states), len(given.states)):
            tables = [table[label[u]] for (u, w), table in zip(given.ends, given.pair) if w == v]
            complete.append(int(np.argmax(given.unary[v] + np.sum(tables, axis=0))))
        score = graph.score(complete) + given.constant
        assert np.exp(score) == pytest.approx(product, rel=1e-12, abs=0)
    best = max(products.values())
    decoded = decode(given.unary, given.ends, given.pair, oracle="exact")
    assert np.exp(decoded.value + given.constant) == pytest.approx(best, rel=1e-12, abs=0)
    bounded = decode(given.unary, given.ends, given.pair, oracle="trws")
    assert bounded.value <= decoded.value + 1e-9 and decoded.value <= bounded.bound + 1e-9
    if best > 0:
        answer = tuple(decoded.label[: given.n_variables].tolist())
        assert products[answer] == pytest.approx(best, rel=1e-12)
        # Nodes that are factors have only possible states.
        assert all(np.isfinite(scores).all() for scores in given.unary[len(states) :])


def test_factors_that_another_covers_make_no_nodes(tmp_path):
    rng = np.random.default_rng(0)
    scopes = [(2, 0), (0, 1, 2), (1,), (2, 1, 0), (3, 1, 0, 2), (4, 3), (3, 4, 5), (3, 5)]
    factors = [(scope, rng.random([2] * len(scope)) + 0.1) for scope in scopes]
    given = read_uai(put(tmp_path, written([2] * 6, factors)))
    assert given.states.tolist() == [2] * 6 + [16, 8]
    assert given.ends.tolist() == [[0, 6], [1, 6], [2, 6], [3, 6], [3, 7], [4, 7], [5, 7]]


def test_faults_of_evidence_name_its_file(tmp_path):
    path = put(tmp_path, TOY)
    for name in ("seen.evid", "toy.evid"):
        with pytest.raises(ValueError, match=f"^[^ ]*{name}, line 1: found '3'") as told:
            read_uai(path, put(tmp_path, "1 3 0", name))
        assert "cannot be read" not in str(told.value)


def test_evidence_makes_factors_smaller(tmp_path):
    rng = np.random.default_rng(0)
    factors = [((0, 1, 2), rng.random((2, 3, 2)) + 0.1), ((2, 1), rng.random((2, 3)) + 0.1)]
    path = put(tmp_path, written([2, 3, 2], factors))
    one = read_uai(path, put(tmp_path, "1 0 1", "one.evid"))
    assert one.ends.tolist() == [[1, 2]]
    np.testing.assert_allclose(one.pair[0], np.log(factors[0][1][1] * factors[1][1].T), atol=1e-15)
    three = read_uai(path, put(tmp_path, "3 0 1 1 2 2 0", "three.evid"))
    assert np.exp(three.constant) == pytest.approx(factors[0][1][1, 2, 0])


def test_factors_over_many_variables(tmp_path):
    # More axes than arrays can have; all but three have one state.
    states = [1] * 70
    states[3] = states[30] = states[69] = 2
    table = np.arange(1.0, 9)
    given = read_uai(put(tmp_path, written(states, [(tuple(range(70)), table)])))
    assert given.ends.tolist() == [[3, 70], [30, 70], [69, 70]]
    np.testing.assert_allclose(np.exp(given.unary[70]), table)
    bayes = [((*(u for u in range(70) if u != v), v), np.ones(1)) for v in range(70)]
    assert (
        read_uai(put(tmp_path, written([1] * 70, bayes).replace("MARKOV", "BAYES"))).constant == 0
    )
    scope = " ".join(map(str, range(70)))
    huge = put(tmp_path, f"MARKOV 70 {' 2' * 70}\n1\n70 {scope}")
    refused(
        "line 3: found 2199023255552 entries of factor 0, over 41 variables and", read_uai, huge
    )


def test_tables_that_would_not_fit(tmp_path, monkeypatch):
    factors = [((0, 1, 2), np.ones((2, 3, 2))), ((1, 2, 3), np.ones((3, 2, 2)))]
    path = put(tmp_path, written([2, 3, 2, 2], factors))
    monkeypatch.setattr("structsolve.plugins.mrf.uai.LARGEST_TABLES", 168)
    assert sum(table.size for table in read_uai(path).pair) == 168
    monkeypatch.setattr("structsolve.plugins.mrf.uai.LARGEST_TABLES", 167)
    message = r"line 9: found 12 entries that are not 0 in factor 1, over \(1, .* would have 168"
    refused(message, read_uai, path)


# Rain makes sprinklers unlikely; both make the grass wet, never neither (Pearl's example).
SPRINKLER = """BAYES
3
2 2 2
3
1 0
2 0 1
3 1 0 2

2  0.8 0.2
4  0.6 0.4
   0.99 0.01
8  1 0  0.2 0.8
   0.1 0.9  0.01 0.99
"""


def test_a_bayes_network(tmp_path):
    """Probabilities given evidence, as from the product of the tables."""
    rain, sprinkler = np.array([0.8, 0.2]), np.array([[0.6, 0.4], [0.99, 0.01]])
    wet = np.array([[[1, 0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]])
    joint = np.einsum("r,rs,srw->rsw", rain, sprinkler, wet)
    path = put(tmp_path, SPRINKLER)
    for evidence, p in [
        (None, joint),
        ("1 2 1", np.where(np.arange(2) == 1, joint, 0)),
        ("1\n2 2 1 0 0", np.where(np.arange(2) == 1, joint, 0) * [[[1]], [[0]]]),
    ]:
        given_file = None if evidence is None else put(tmp_path, evidence, "seen.evid")
        model = read_uai(path, given_file)
        best = decode(model.unary, model.ends, model.pair, oracle="exact", return_marginals=True)
        marginals = best.marginals
        assert marginals.exact and marginals.gap == 0
        assert marginals.log_partition + model.constant == pytest.approx(np.log(p.sum()), abs=1e-12)
        for v in range(3):
            others = tuple(u for u in range(3) if u != v)
            expected = p.sum(axis=others) / p.sum()
            np.testing.assert_allclose(marginals.unary[v], expected, atol=1e-12)
        assert best.value + model.constant == pytest.approx(np.log(p.max()))
        assert p[tuple(best.label[:3])] == p.max()


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("0.8 0.2\n", "0.8 0.3\n", "line 9: found probabilities of factor 0 that sum to 1.1; "),
        ("0.8 0.2\n", "0 0\n", "line 9: found probabilities of factor 0 that sum to 0; "),
        ("0.99 0.01\n8", "0.9 0.01\n8", "line 11: found .*; expected 1: entries 2 to 3 are those"),
        ("3 1 0 2", "3 1 2 0", "factors whose last variables are"),
        ("2 0 1\n3", "0\n3", "factors whose last variables are"),
    ],
)
def test_broken_bayes_networks(tmp_path, old, new, message):
    assert SPRINKLER.count(old) == 1
    refused(message, read_uai, put(tmp_path, SPRINKLER.replace(old, new)))


# A: accident, R: rain, J: traffic jam, Q: long queue, L: late for school, G: getting up late.
JAM = """BAYES 6  2 2 2 2 2 2  6
1 0  1 1  3 0 1 2  2 2 3  3 2 5 4  1 5
2  0.2 0.8
2  0.4 0.6
8  0.9 0.1  0.6 0.4  0.7 0.3  0.1 0.9
4  0.9 0.1  0.2 0.8
8  0.9 0.1  0.45 0.55  0.8 0.2  0.1 0.9
2  0.6 0.4
"""


def test_queries_of_a_known_network(tmp_path):
    """Marginals, conditional ones and the most probable labeling, as by variable elimination."""
    path = put(tmp_path, JAM)
    for evidence, probable in [
        ("0", {0: 0.2, 2: 0.416, 3: 0.4912, 5: 0.6}),
        ("4  0 0  1 0  5 0  4 1", {0: 1.0, 2: 9 / 11, 3: 8.5 / 11}),
        ("1 3 1", {2: 0.416 * 0.1 / 0.5088}),
    ]:
        model = read_uai(path, put(tmp_path, evidence, "jam.evid"))
        sums = decode(model.unary, model.ends, model.pair, return_marginals=True).marginals
        for v, first in probable.items():
            assert sums.unary[v] == pytest.approx([first, 1 - first], abs=1e-6)
    model = read_uai(path)
    best = decode(model.unary, model.ends, model.pair, oracle="exact")
    assert best.label[:6].tolist() == [1, 1, 1, 1, 0, 0]


def test_marginals_at_the_shell(tmp_path, capsys):
    path, seen = put(tmp_path, SPRINKLER), put(tmp_path, "1 2 1", "seen.evid")
    out = tmp_path / "marginals.txt"
    command = ["decode", path, "--marginals", out, "--evidence"]
    answer = json.loads(works(capsys, *command, seen, "--json"))
    assert answer["exact_marginals"] and answer["labels"][2] == 1
    # P(wet) = .8 * .4 * .9 + .2 * .99 * .8 + .2 * .01 * .99
    assert np.exp(answer["log_partition"]) == pytest.approx(0.44838)
    kind, words = out.read_text().splitlines()
    assert kind == "MAR" and words.split()[:2] == ["3", "2"]
    assert float(words.split()[3]) == pytest.approx(0.16038 / 0.44838)
    text = works(capsys, *command, seen, "--output", tmp_path / "labels.txt")
    assert "log partition -0.8021" in text and "exact" in text
    impossible = put(tmp_path, "3 0 0 1 0 2 1", "seen.evid")
    fails(capsys, *command, impossible, match="toy.uai: probability 0, so no marginals")
    costs = put(tmp_path, "1 2\n3 4\n", "costs.txt")
    fails(capsys, "decode", costs, "--marginals", out, match="--marginals is for UAI models")


@pytest.mark.parametrize("oracle", ["auto", "exact", "trws", "lp", "expansion"])
def test_impossible_evidence_at_the_shell(oracle, tmp_path, capsys):
    path, seen = put(tmp_path, SPRINKLER), put(tmp_path, "3 0 0 1 0 2 1", "seen.evid")
    command = ["decode", path, "--oracle", oracle, "--evidence", seen]
    fails(capsys, *command, "--json", match=f"toy.uai: all labels are forbidden under {seen}")
    text = put(tmp_path, "3 0 1 1 1 2 1", "seen.evid")
    assert json.loads(works(capsys, *command, "--json"))["labels"] == [1, 1, 1], text
