"""Hidden Markov models against sums over all sequences of states, and against hmmlearn."""

import itertools
import json
import warnings

import numpy as np
import pytest
from checks import refused, reloaded, same
from scipy.sparse import csr_array
from shell import works
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import structsolve
from structsolve import HiddenMarkovModel, WeightedLabels
from structsolve.plugins.hidden_markov.emissions import Gaussian


class Frame(list):
    """Stands for a data frame, whose items are names of columns."""

    columns = ["ab", "ba"]


def random_tables(rng, K, V):
    return {
        "start": rng.dirichlet(np.ones(K)),
        "transition": rng.dirichlet(np.ones(K), size=K),
        "table": rng.dirichlet(np.ones(V), size=K),
    }


def random_sequences(rng, V, n=4, longest=4):
    X = [rng.integers(0, V, rng.integers(1, longest + 1)) for _ in range(n)]
    return [*X, np.arange(V)]  # every symbol occurs


def joint(init, x, states):
    p = init["start"][states[0]]
    for s, t in zip(states, states[1:]):
        p = p * init["transition"][s, t]
    return p * np.prod([init["table"][s, v] for s, v in zip(states, x)])


def step_by_enumeration(init, X, known=None, smoothing=0.0):
    """Return the log-likelihood, and the tables after one step of expectation-maximisation."""
    K, V = init["table"].shape
    start, transition, table = (np.full(shape, smoothing) for shape in (K, (K, K), (K, V)))
    total = 0.0
    for i, x in enumerate(X):
        every = [*itertools.product(range(K), repeat=len(x))]
        if known is not None and known[i] is not None:
            every = [s for s in every if all(k in (None, a) for a, k in zip(s, known[i]))]
        weights = np.array([joint(init, x, states) for states in every])
        total += np.log(weights.sum())
        for states, weight in zip(every, weights / weights.sum()):
            start[states[0]] += weight
            for s, t in zip(states, states[1:]):
                transition[s, t] += weight
            for s, v in zip(states, x):
                table[s, v] += weight
    sums = transition.sum(axis=1, keepdims=True)
    transition = np.where(sums > 0, transition / np.where(sums > 0, sums, 1), init["transition"])
    return total, {
        "start": start / start.sum(),
        "transition": transition,
        "table": table / table.sum(axis=1, keepdims=True),
    }


def tables(model):
    return {
        "start": model.start_, "transition": model.transition_, "table": model.emission_.table,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_steps_against_sums_over_all_sequences_of_states(smoothing):
    rng = np.random.default_rng(0)
    for K, V in [(1, 2), (2, 2), (2, 3), (3, 2), (3, 4)] * 3:
        init, X = random_tables(rng, K, V), random_sequences(rng, V)
        model = HiddenMarkovModel(K, smoothing=smoothing, init=init, max_iter=1).fit(X)
        total, expected = step_by_enumeration(init, X, smoothing=smoothing)
        np.testing.assert_allclose(model.history_[0]["log_likelihood"], total, rtol=1e-12)
        for name, table in tables(model).items():
            np.testing.assert_allclose(table, expected[name], rtol=1e-9, atol=1e-14)
        second = step_by_enumeration(expected, X)[0]
        np.testing.assert_allclose(model.log_likelihood(X), second, rtol=1e-12)
        assert model.score(X) == model.log_likelihood(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_known_states_among_hidden_ones():
    rng = np.random.default_rng(1)
    for _ in range(10):
        init, X = random_tables(rng, 2, 3), random_sequences(rng, 3)
        Y = [[[None, 0, 1][rng.integers(3)] for _ in x] for x in X]
        Y[0], Y[-1] = None, [0, 1, None]
        model = HiddenMarkovModel(2, smoothing=0.1, init=init, max_iter=1).fit(X, Y)
        total, expected = step_by_enumeration(init, X, Y, 0.1)
        np.testing.assert_allclose(model.history_[0]["log_likelihood"], total, rtol=1e-12)
        for name, table in tables(model).items():
            np.testing.assert_allclose(table, expected[name], rtol=1e-9, atol=1e-14)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_no_step_decreases_the_objective(emission, smoothing):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = random_sequences(rng, 4, 6, 9)
        if emission == "gaussian":
            X = [rng.normal(size=(len(x), 2)).round(1) for x in X]
        model = HiddenMarkovModel(
            3, emission=emission, smoothing=smoothing, max_iter=60, tol=0, random_state=seed
        ).fit(X)
        gains = np.diff([record["objective"] for record in model.history_])
        assert (gains > -1e-9).all() and len(gains) > 2
        if smoothing == 0:
            assert all(r["objective"] == r["log_likelihood"] for r in model.history_)


def test_counts():
    X, Y = ["hht", "t"], [["a", "a", "b"], ["b"]]
    bare = HiddenMarkovModel(smoothing=0)
    refused("state 'b' is seen only as the last of a sequence", bare.fit, X, Y)
    X, Y = ["hht", "th"], [["a", "a", "b"], ["b", "a"]]
    model = HiddenMarkovModel(smoothing=0).fit(X, Y)
    assert model.start_.tolist() == [0.5, 0.5] and model.classes_.tolist() == ["a", "b"]
    assert model.transition_.tolist() == [[0.5, 0.5], [1, 0]]
    assert model.emission_.symbols.tolist() == ["h", "t"]
    assert model.emission_.table.tolist() == [[1, 0], [0, 1]]
    expected = np.log([0.5 * 0.5 * 0.5, 0.5]).sum()
    np.testing.assert_allclose(model.history_[0]["log_likelihood"], expected)
    smooth = HiddenMarkovModel(smoothing=1).fit(X, Y)
    np.testing.assert_allclose(smooth.transition_, [[0.5, 0.5], [2 / 3, 1 / 3]])
    assert model.score(X, Y) == 1


def test_answers_against_all_sequences_of_states():
    rng = np.random.default_rng(2)
    for K, V in [(2, 2), (3, 2), (2, 4)] * 3:
        X = random_sequences(rng, V)
        Y = [rng.integers(0, K, len(x)) for x in X]
        Y[-1] = np.arange(V) % K
        model = HiddenMarkovModel(smoothing=0.2).fit(X, Y)
        init = tables(model)
        best, probabilities = model.predict_kbest(X, 3), model.predict_proba(X)
        for x, own, proba, label in zip(X, best, probabilities, model.predict(X)):
            every = [*itertools.product(range(len(model.classes_)), repeat=len(x))]
            weights = np.array([joint(init, x, states) for states in every])
            ranked = np.log(np.sort(weights)[::-1])[:3]
            np.testing.assert_allclose([value for _, value in own], ranked, rtol=1e-10)
            same(own[0][0], label)
            mean = [[weights[[s[t] == k for s in every]].sum() for k in range(proba.shape[1])]
                    for t in range(len(x))]  # fmt: skip
            np.testing.assert_allclose(proba, np.array(mean) / weights.sum(), rtol=1e-9)


def test_samples_are_those_of_choices_one_by_one():
    X, y = [["a", "b", "a", "c"], ["c", "a"]], [[0, 1, 1, 2], [2, 0]]
    model, rng = HiddenMarkovModel(smoothing=0.5).fit(X, y), np.random.default_rng(7)
    for x, states in zip(*model.sample([3, 0, 8], random_state=7)):
        drawn = []
        for _ in states:
            p = model.transition_[drawn[-1]] if drawn else model.start_
            drawn.append(rng.choice(3, p=p))
        assert states.tolist() == drawn
        assert x.tolist() == [
            rng.choice(["a", "b", "c"], p=model.emission_.table[s]) for s in drawn
        ]


def test_samples_have_the_model_s_frequencies():
    X, Y = ["hhthtt", "thh"], [list("aabbba"), list("bba")]
    model = HiddenMarkovModel(smoothing=0.5).fit(X, Y)
    drawn, states = model.sample([400] * 20, random_state=0)
    again = HiddenMarkovModel(smoothing=0).fit(drawn, states)
    np.testing.assert_allclose(again.transition_, model.transition_, atol=0.03)
    np.testing.assert_allclose(again.emission_.table, model.emission_.table, atol=0.03)
    same(model.sample([5], random_state=1), model.sample([5], random_state=1))


@pytest.mark.pandas
def test_columns_of_data_frames_keep_their_names(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = [pd.DataFrame(rng.normal(size=(5, 2)), columns=["a", "b"]) for _ in range(4)]
    model = HiddenMarkovModel(2, emission="gaussian", random_state=0).fit(X)
    again = reloaded(model, tmp_path)
    same(again.predict(X), model.predict(X))
    for one in (model, again):
        assert one.feature_names_in_.tolist() == ["a", "b"]
        turned = [x[["b", "a"]] for x in X]
        refused("Feature names must be in the same order", one.predict, turned)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.score([x.to_numpy() for x in X])
    assert not hasattr(model.fit([x.to_numpy() for x in X]), "feature_names_in_")


@pytest.mark.filterwarnings("ignore:stopped after max_iter=2")
@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
def test_files_and_clones(tmp_path, emission):
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 3, 6) for _ in range(5)]
    if emission == "gaussian":
        X = [np.column_stack([x, x + rng.normal(size=len(x))]) for x in X]
    init = {"start": np.array([0.9, 0.1])}
    model = HiddenMarkovModel(2, emission=emission, random_state=3, init=init, max_iter=2)
    model.fit(X)
    again = reloaded(model, tmp_path)
    assert type(again) is HiddenMarkovModel and again.history_ == model.history_
    same(again.predict_proba(X), model.predict_proba(X))
    assert again.score(X) == model.score(X)
    for other in (model, again):  # settings are in files
        same(clone(other).fit(X).predict_proba(X), model.predict_proba(X))
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    assert "HiddenMarkovModel" in structsolve.registry.default().names("estimators")


def test_info_names_the_largest_numbers(tmp_path, capsys):
    path = tmp_path / "m.structsolve"
    model = HiddenMarkovModel(smoothing=0).fit(["hht", "tt"], [list("aab"), list("bb")])
    model.save(path)
    assert model.info()["transition"] == [
        {"from": "b", "to": "b", "weight": 1.0},
        {"from": "a", "to": "a", "weight": 0.5},
        {"from": "a", "to": "b", "weight": 0.5},
    ]
    assert model.info(1)["emission"] == [{"state": "a", "symbol": "h", "weight": 1.0}]
    assert works(capsys, "info", path).splitlines()[:3] == [
        "start: state, 2 of 2 probabilities are not 0", "    0.5000  a", "    0.5000  b"
    ]  # fmt: skip
    assert works(capsys, "info", path, "--json") == str(json.dumps(model.info(), indent=2)) + "\n"
    rows = [[[-3.0, 1.0], [2.0, 1.0]]]
    model = HiddenMarkovModel(emission="gaussian").fit(rows, [["a", "b"]])
    means = model.info(1, ["left", "right"])["means"]
    assert [(row["state"], row["feature"], row["weight"]) for row in means] == [
        ("b", "left", 2.0), ("a", "left", -3.0)
    ]  # fmt: skip
    refused("feature_names has 1 entries, expected 2", model.info, 1, ["left"])
    with pytest.raises(NotFittedError):
        clone(model).info()


def test_gaussians_of_known_states():
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(30, 2)) for _ in range(3)], [rng.integers(0, 2, 30) for _ in range(3)]
    model = HiddenMarkovModel(emission="gaussian").fit(X, Y)
    flat, states = np.concatenate(X), np.concatenate(Y)
    for s in (0, 1):
        np.testing.assert_allclose(model.emission_.means[s], flat[states == s].mean(axis=0))
        np.testing.assert_allclose(model.emission_.variances[s], flat[states == s].var(axis=0))


@pytest.mark.parametrize(
    ("settings", "X", "y", "message"),
    [
        ({}, ["ab"], None, "n_states is None, expected a number"),
        ({"n_states": 3}, ["ab"], [[0, 1]], "n_states is 3, but y has 2 states"),
        ({"n_states": 0}, ["ab"], None, "n_states is 0"),
        ({"smoothing": -1}, ["ab"], [[0, 1]], "smoothing is -1"),
        ({"emission": "poisson"}, ["ab"], [[0, 1]], "emission is 'poisson'"),
        ({}, ["ab"], [[0]], "y, example 0: found 1 states, expected 2"),
        ({}, ["ab", "a"], [[0, 1]], "y: expected the states, or None, of each of 2 sequences"),
        ({}, ["ab", ""], [[0, 1], []], "X, example 1: found no symbols, expected at least one"),
        ({}, ["ab", []], None, "X, example 1: found no symbols, expected at least one"),
        (
            {"emission": "gaussian"},
            [[[1.0]], [[0.0], [-1e200]]],
            [[0], [0, 1]],
            r"X: found -1e\+200 \(example 1, row 1\), expected numbers from -1e\+140 to 1e\+140",
        ),
        ({}, [], [], "X: expected a list"),
        ({"emission": "gaussian"}, [[[], []]], [[0, 1]], "X: found rows of no columns"),
        ({}, ["ab", [["a"], ["b", "c"]]], None, "X, example 1: found lists of unequal lengths"),
        ({}, [[1.5, 2.0]], [[0, 1]], "emission='gaussian' takes numbers"),
        ({}, csr_array(np.eye(2)), [[0, 1]] * 2, "X: expected a list .*, found a csr_array"),
        ({}, Frame(), [[0, 1]] * 2, "X: expected a list .*, found a Frame"),
        ({"n_states": 1}, [[0, 1], [2**70, 1]], None, "X, example 1: found integers beyond 64"),
        ({}, ["ab", "ba"], [[0, 1], [1, np.nan]], "y, example 1: found the state nan, expected"),
        ({}, ["ab", "ba"], [[0, 1j], [1, 0]], "y, example 0: found the state 1j, expected"),
        ({}, ["ab", "ba"], [[0, 2**70], [1, 0]], "y, example 0: found the state 11805916207"),
        ({}, ["ab", "ba"], [WeightedLabels([0, 1], [1, 2]), [0, 0]], "y, example 0: found Weight"),
        ({"emission": "gaussian"}, [[[1.0], [np.nan]]], [[0, 1]], "X: Input contains NaN"),
        ({"n_states": 2, "init": {"start": [1]}}, ["ab"], None, r"'start' has the shape \(1,\)"),
    ],
)
def test_bad_data(settings, X, y, message):
    refused(message, HiddenMarkovModel(**settings).fit, X, y)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ([0.5, 0.5], "init is a list, expected a dict"),
        ({"start": [0.5, "x"]}, "init: 'start': found no array of numbers"),
        ({"start": [0.5, 0.5j]}, "init: 'start': found no array of numbers"),
        ({"start": [np.nan, 1]}, "init: 'start' has numbers that are not finite"),
        ({"start": [1.5, -0.5]}, "init: 'start' has the number -0.5, expected all >= 0"),
        ({"start": [0.5, 0.4]}, "init: row 0 of 'start' sums to 0.9, expected probabilities"),
        ({"transition": [[0.5, 0.5], [1, 1]]}, "init: row 1 of 'transition' sums to 2"),
        ({"table": np.ones((2, 2))}, "init: row 0 of 'table' sums to 2"),
        ({"means": np.ones((2, 1))}, "init: found 'means', expected names among .*'table'"),
    ],
)
def test_bad_first_parameters(init, message):
    refused(message, HiddenMarkovModel(2, init=init).fit, ["ab", "ba"])


def test_first_parameters_without_steps_are_refused():
    """They were ignored, silently."""
    told = "init: found 'start', but y has all states"
    refused(told, HiddenMarkovModel(init={"start": [1, 0]}).fit, ["ab"], [[0, 1]])
    model = HiddenMarkovModel(init={"start": [1, 0]}, max_iter=1)
    assert model.fit(["ab", "a"], [[0, 1], [None]]).n_iter_ == 1


@pytest.mark.parametrize("exponent", [-664, -400, 0, 400])
def test_first_states_do_not_depend_on_the_unit(exponent):
    """Squares of numbers around 1e-200 are 0, and k-means then found one cluster."""
    rows = np.random.default_rng(0).normal(size=(20, 2)) + 4 * (np.arange(20)[:, None] % 2)
    given, scaled = (Gaussian(1e-3) for _ in range(2))
    first = given.start(rows, 2, np.random.default_rng(1))
    same = scaled.start(np.ldexp(rows, exponent), 2, np.random.default_rng(1))
    np.testing.assert_array_equal(first, same)
    assert set(first.sum(axis=0)) == {10}


def test_bad_variances():
    X = [[[0.0], [1.0]], [[2.0], [5.0]]]
    for variances, message in (([[1], [0]], "number 0"), ([[1], [np.inf]], "numbers that are not")):
        model = HiddenMarkovModel(2, emission="gaussian", init={"variances": variances})
        refused(f"init: 'variances' has .*{message}", model.fit, X)
    for least in (0.0, -1.0, np.inf):
        model = HiddenMarkovModel(2, emission="gaussian", least_variance=least)
        refused("least_variance is .*, expected a finite number above 0", model.fit, X)
    model = HiddenMarkovModel(2, emission="gaussian")
    refused("state 1 has no observation, .*give fewer states", model.fit, np.ones((1, 3, 2)))
    refused("X has 1 rows of numbers, expected at least n_states=2", model.fit, np.ones((1, 1, 2)))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (
            ["ab", [1, 2]],
            [[0, 1]] * 2,
            "X, example 1: found integers, expected symbols that are all",
        ),
        (["ab", ["a", 1]], [[0, 1]] * 2, "X, example 1: found integers and strings"),
        (
            [[1, 2], np.array([1, "a"], object)],
            [[0, 1]] * 2,
            "X, example 1: found integers and str",
        ),
        ([[1, 2], [1, None]], [[0, 1]] * 2, "X, example 1: found a NoneType and integers"),
        (["ab", "ab"], [[0, 1], ["a", "b"]], "y, example 1: found the state 'a', expected all"),
        (["ab", "ab"], [None, [0, "b"]], "y, example 1: found the state 'b', expected all"),
        (["ab", "ab"], [[0, 1], [(1,), 0]], r"y, example 1: found the state \(1,\)"),
        (["ab", "ab"], [[0, 1], 1], "y, example 1: found 1, expected 2 states, or None"),
    ],
)
def test_mixed_symbols_and_states_are_refused(X, y, message):
    refused(message, HiddenMarkovModel().fit, X, y)


def test_arrays_of_objects_and_strings_of_any_length():
    numbers = HiddenMarkovModel().fit([[0, 1, 2]], [list("aba")])
    objects = np.array([0, 2], dtype=object)
    assert numbers.predict([objects])[0].tolist() == numbers.predict([[0, 2]])[0].tolist()
    refused("found the symbol 9", numbers.predict, [np.array([0, 9], dtype=object)])
    for kind in (object, getattr(np.dtypes, "StringDType", lambda: object)()):
        letters = HiddenMarkovModel().fit([np.array(["x", "y"]).astype(kind)], [list("ab")])
        assert letters.emission_.symbols.tolist() == ["x", "y"]
        assert letters.emission_.symbols.dtype.kind == "U"


@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
def test_masked_entries_are_refused(emission):
    X = [[0, 1, 1]] if emission == "categorical" else [np.eye(3)]
    model = HiddenMarkovModel(emission=emission).fit(X, [list("aba")])
    masked = [np.ma.masked_equal(X[0], 0)]
    for call in (model.predict, model.score, model.predict_proba, clone(model).fit):
        refused("X, example 0: found a masked array", call, masked)
    refused("y, example 0: found a masked array", model.fit, X, [np.ma.masked_equal([0, 1, 0], 1)])


def test_a_refused_fit_leaves_the_model_as_it_was():
    model = HiddenMarkovModel(smoothing=0)
    bad = [[5, 6], [7]], [["a", "b"], ["c"]]
    refused("transitions sum to 0", model.fit, *bad)
    with pytest.raises(NotFittedError):
        model.predict(bad[0])
    X, Y = [[0, 1, 0]], [list("aba")]
    answer = model.fit(X, Y).predict(X)[0].tolist()
    refused("transitions sum to 0", model.fit, *bad)
    assert model.predict(X)[0].tolist() == answer and model.classes_.tolist() == ["a", "b"]


def test_scores_of_states():
    X, Y = ["aabb", "bba"], [[0, 0, 1, 1], [1, 1, 0]]
    model = HiddenMarkovModel(smoothing=0.1).fit(X, Y)
    assert model.score(X, Y) == 1 and model.score(X, [[0, 0, 1, 0], Y[1]]) == pytest.approx(6 / 7)
    refused("y: expected the states, or None, of each of 2 sequences", model.score, X, Y[:1])
    refused("y, example 1: found 1 states, expected 3", model.score, X, [Y[0], [1]])
    refused("y, example 1: found None in place of a state", model.score, X, [Y[0], None])


@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
def test_lengths_of_samples(emission):
    X = ["aabb", "bba"] if emission == "categorical" else [np.eye(4), np.eye(4)[:3]]
    model = HiddenMarkovModel(emission=emission, smoothing=0.1)
    model.fit(X, [[0, 0, 1, 1], [1, 1, 0]])
    drawn, states = model.sample([0, 3, 1], random_state=0)
    assert [len(x) for x in drawn] == [len(y) for y in states] == [0, 3, 1]
    assert model.sample([]) == ([], [])
    refused("lengths is 3, expected a list with an integer for each sequence", model.sample, 3)
    refused("lengths is .*, expected a list with an integer", model.sample, [2.5])
    refused("lengths, example 1: found -1, expected at least 0", model.sample, [2, -1])


def test_impossible_sequences_are_named():
    model = HiddenMarkovModel(smoothing=0).fit(["ab", "ba"], [[0, 1], [1, 0]])
    for call in (model.predict, model.predict_proba, model.score):
        refused("X, example 1: the model gives it the probability 0", call, ["ab", "aa"])
        refused("X, example 1, position 2: found the symbol .*'c'", call, ["ab", "bac"])
        refused("X, example 0, position 0: found the symbol", call, [[3, 4]])
    refused("X, example 1: the model gives it", model.predict_kbest, ["ab", "aa"], 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
def test_hmmlearn_has_the_same_likelihood_at_every_step(emission):
    hmm = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(5)
    init = random_tables(rng, 3, 4)
    X = random_sequences(rng, 4, 12, 20)
    steps = 15
    if emission == "categorical":
        theirs = hmm.CategoricalHMM(3, n_iter=steps, tol=-np.inf, init_params="", params="ste")
        theirs.emissionprob_ = init["table"]
        flat = np.concatenate(X)[:, None]
    else:
        X = [rng.normal(size=(len(x), 2)) + x[:, None] for x in X]
        init = {"start": init["start"], "transition": init["transition"],
                "means": rng.normal(size=(3, 2)), "variances": np.ones((3, 2))}  # fmt: skip
        theirs = hmm.GaussianHMM(3, "diag", n_iter=steps, tol=-np.inf, init_params="",
                                 min_covar=0, covars_prior=0, covars_weight=1)  # fmt: skip
        theirs.means_, theirs.covars_ = init["means"], init["variances"]
        flat = np.concatenate(X)
    theirs.startprob_, theirs.transmat_ = init["start"], init["transition"]
    theirs.fit(flat, [len(x) for x in X])
    model = HiddenMarkovModel(
        3, emission=emission, smoothing=0, init=init, max_iter=steps, tol=0, least_variance=1e-300
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    own = [record["log_likelihood"] for record in model.history_]
    np.testing.assert_allclose(own, [*theirs.monitor_.history][-len(own) :], rtol=1e-9)
    np.testing.assert_allclose(model.transition_, theirs.transmat_, rtol=1e-6, atol=1e-9)
    labels = theirs.predict(flat, [len(x) for x in X])
    np.testing.assert_array_equal(np.concatenate(model.predict(X)), labels)
