"""Linear constraints on labels, against enumeration, in prediction and in training."""

import numpy as np
import pytest
from checks import refused
from lp_cases import STRUCTURES, packed, vectors

import structsolve
from structsolve import StructuredSVM
from structsolve.lp import Cvxpy, Highs, LabelConstraint
from structsolve.lp.ask import ask_oracle, ask_program_power
from structsolve.structure import calls
from structsolve.structure.ask import make_layout


def drawn(space, examples, i, mu, rng):
    """Return two constraints on random parts that some labels satisfy and others do not."""
    layout, made = space.layout, []
    nodes = int(examples.offsets[i + 1] - examples.offsets[i])
    edges = 0
    if examples.edge_offsets is not None:
        edges = int(examples.edge_offsets[i + 1] - examples.edge_offsets[i])
    for _ in range(30):
        row, parts = np.zeros(layout.theta_size(nodes, edges)), {}
        for name, view in layout.theta_views(row, nodes, edges).items():
            shape = view.shape
            if layout.node is not None and name == layout.node.name and rng.integers(2):
                shape = shape[1:]
            parts[name] = rng.integers(-1, 2, shape)
            view[...] = parts[name]
        totals = mu @ row
        low, high = np.sort(rng.choice(totals, 2))
        fits = (totals >= low) & (totals <= high)
        if not fits.all():
            made.append((LabelConstraint(parts, low, high), fits))
    assert len(made) > 1
    return made[:2]


@pytest.mark.parametrize("name, params", STRUCTURES)
def test_constrained_labels_are_those_of_enumeration(name, params):
    rng = np.random.default_rng(3)
    space, examples = packed(name, params)
    layout = make_layout(space, examples)
    several = [i for i in range(5) if len(vectors(space, layout, i)[0]) > 1]
    for i in several[:2]:
        _, mu, used = vectors(space, layout, i)
        (one, fits), (two, both) = drawn(space, examples, i, mu, rng)
        if (fits & both).any():
            given, allowed = [one, two], fits & both
        else:
            given, allowed = [one], fits
        theta = np.where(used, rng.integers(-3, 4, used.size), 0.0)
        best = (mu @ theta)[allowed].max()
        bare = space.pack(structsolve.get_structure(name, **params).sample(0, n=5, size=3)[0])
        bound_to = make_layout(space, bare)
        for backend in (Highs, Cvxpy):
            arguments = {"solver": "SCIPY"} if backend is Cvxpy else {}
            oracle = backend(
                **arguments, constraints=lambda _, j, i=i, g=given: g if i == j else []
            )
            program = ask_oracle(space, oracle)(bound_to)
            assert not program.exact
            label, value, bound = calls.argmax(program, i, theta)
            assert value == pytest.approx(best, abs=1e-6)
            assert bound >= best - 1e-9
            relaxation = ask_program_power(space, oracle, "relaxation")(bound_to)
            assert calls.relax(relaxation, i, theta)[3] >= best - 1e-9
            if backend is Highs:
                whole = Highs(integer=True, constraints=oracle.constraints)
                exact = ask_oracle(space, whole)(bound_to)
                assert exact.exact
                assert calls.argmax(exact, i, theta)[1] == pytest.approx(best, abs=1e-6)


def test_training_and_prediction_are_constrained(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 3)), np.zeros((8, 4), dtype=int)
    Y[np.arange(8), rng.integers(0, 4, 8)] = 1
    Y[:4, 0] = 1
    for kind in ("none", "full"):
        one_or_two = [LabelConstraint({"node": np.ones(4)}, 1, 2)]
        models = [
            StructuredSVM(
                structsolve.get_structure("multilabel", edges=kind),
                alpha=0.3,
                oracle=oracle,
                tol=1e-2,
                solver="cutting-plane",
            ).fit(X, Y)
            for oracle in ("lp", Highs(constraints=one_or_two))
        ]
        last = [model.history_[-1] for model in models]
        # Fewer labels compete with the truth.
        assert last[1]["dual"] <= last[0]["primal"]
        assert models[1].stop_reason_ == "converged"
        far = 5 * rng.normal(size=(8, 3))
        counts = models[1].predict(far).sum(axis=1)
        assert ((counts >= 1) & (counts <= 2)).all()
        three = [LabelConstraint({"node": np.ones(4)}, 3, 3)]
        assert (models[0].predict(far).sum(axis=1) != 3).any()
        models[0].set_params(oracle=Highs(constraints=three))
        assert (models[0].predict(far).sum(axis=1) == 3).all()
        models[1].save(tmp_path / "m.structsolve")
        again = structsolve.load(tmp_path / "m.structsolve")
        assert (again.predict(far).sum(axis=1) == counts).all()
        again.set_params(oracle=Cvxpy("HIGHS", constraints=one_or_two, batch=500), n_jobs=2)
        assert (again.predict(far).sum(axis=1) == counts).all()


def test_a_function_constrains_each_example_apart():
    structure = structsolve.get_structure("chain")
    X, Y = structure.sample(0, n=4, size=3)
    model = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(X, Y)
    K = len(model.classes_)

    def first_is(examples, i):
        nodes = int(examples.offsets[i + 1] - examples.offsets[i])
        coef = np.zeros((nodes, K))
        coef[0, i % K] = 1
        return [LabelConstraint({"node": coef}, lower=1)]

    predicted = model.set_params(oracle=Highs(constraints=first_is)).predict(X)
    assert [y[0] for y in predicted] == [model.classes_[i % K] for i in range(len(X))]
    refused("cannot be saved without pickle", model.save, "never-written")


NODE = {"node": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize(
    "constraints, message",
    [
        ([LabelConstraint(NODE, upper=0)], "no label satisfies the constraints of 'lp'"),
        (
            [LabelConstraint({"edges": [1]})],
            r"constraint 0 names the parts 'edges', expected .*node",
        ),
        ([LabelConstraint({"node": [1, 1]})], r"shape \(2,\) .*, expected .* \(1, 3\) or \(3,\)"),
        ([LabelConstraint({"node": [1, np.nan, 1]})], "expected finite numbers"),
        ([LabelConstraint(NODE), LabelConstraint(NODE, 2, 1)], "constraint 1 .* asks for 2 to 1"),
        ([LabelConstraint({})], "constraint 0 on .* expected parts"),
        ([3], "constraint 0 is 3, expected a LabelConstraint"),
    ],
)
@pytest.mark.parametrize("backend", [Highs, lambda **given: Cvxpy("HIGHS", **given)])
def test_constraints_that_do_not_fit_are_refused(constraints, message, backend):
    model = StructuredSVM("multiclass", tol=0.1).fit(np.eye(3), [0, 1, 2])
    model.set_params(oracle=backend(constraints=constraints))
    refused(f"example 0: .*{message.replace('lp', '(lp|cvxpy:HIGHS)')}", model.predict, np.eye(3))


def test_constraints_are_a_list_or_a_function():
    model = StructuredSVM("multiclass", oracle=Highs(constraints=3))
    refused("constraints is 3, expected a list", model.fit, np.eye(2), [0, 1], error=TypeError)
    model.set_params(oracle=Highs(constraints=lambda examples, i: None))
    message = "example 0: the function constraints returned None, expected a list"
    refused(message, model.fit, np.eye(2), [0, 1], error=TypeError)


def test_truths_that_break_a_constraint_are_named():
    never = [LabelConstraint({"node": [0, 0, 1.0]}, upper=0)]
    model = StructuredSVM("multiclass", oracle=Highs(constraints=never))
    message = "example 2: the true label breaks constraint 0: found 1, expected -inf to 0; leave"
    refused(message, model.fit, np.eye(3), [0, 1, 2])
    model = StructuredSVM("multiclass", tol=0.1).fit(np.eye(3), [0, 1, 2])
    assert 2 not in model.set_params(oracle=Highs(constraints=never)).predict(np.eye(3))


def test_scores_take_truths_that_break_a_constraint():
    """Only training compares truths with the labels that are allowed."""
    never = Highs(constraints=[LabelConstraint({"node": [0, 0, 1.0]}, upper=0)])
    model = StructuredSVM("multiclass", alpha=0.01, tol=0.1).fit(np.eye(3), [0, 1, 2])
    model.set_params(oracle=never)
    assert model.score(np.eye(3), [0, 1, 2]) == pytest.approx(2 / 3)
    assert model.score(np.eye(3), [0, 1, 7]) == pytest.approx(2 / 3)
    X, Y = [np.eye(3)[[0, 1]], np.eye(3)[[1, 2]]], [["a", "b"], ["b", "c"]]
    one_b = Highs(constraints=[LabelConstraint({"node": [0, 1.0, 0]}, upper=1)])
    chain = StructuredSVM("chain", alpha=0.01, tol=0.1, oracle=one_b)
    chain.fit(X, Y, validation=([np.eye(3)[[1, 1]]], [["b", "b"]]))
    assert chain.history_[-1]["validation_score"] == 0.5
