"""Numbers of distributions of labels: against the sum over all labels, for every structure."""

from functools import partial

import numpy as np
import pytest
from batch_cases import KINDS, random_batch, theta_of
from checks import refused

from structsolve import TaskLoss, get_structure
from structsolve.batch import (
    Scores,
    cross_entropy,
    entropy,
    expected_loss,
    k_best,
    kl_divergence,
    least_loss,
    log_partition,
    log_proba,
    most_probable,
    score_space,
)
from structsolve.batch.binding import binding_of
from structsolve.batch.numbers import number, number_gradient
from structsolve.structure import calls
from structsolve.structure.ask import loss_names, make_layout

#: No sum over labels: #P-hard, or unknown.
NO_SUM = {"ranking", "matching", "flow"}
SUMS = sorted(set(KINDS) - NO_SUM)


def forbidding(scores, rng, share):
    """Return scores some of which are -inf."""

    def some(array):
        if array is None:
            return None
        return np.where(rng.random(array.shape) < share, -np.inf, array).astype(array.dtype)

    shared = {name: some(array) for name, array in scores.shared.items()}
    rows = scores.examples, scores.rows, scores.edge_rows
    return Scores(some(scores.node), shared, some(scores.edge), *rows)


class Sum:
    """All labels of one example, their parts, and their probabilities."""

    def __init__(self, space, scores, i):
        layout = make_layout(space, scores.examples)
        parts = space.make_parts()(layout)
        self.labels = [np.asarray(y, np.int32) for y in space.enumerate_labels(scores.examples, i)]
        theta = theta_of(space, scores, layout, i)
        rows = []
        for label in self.labels:
            index, value = calls.encode(parts, i, label)
            rows.append(np.bincount(index, value, minlength=len(theta)))
        self.matrix = np.array(rows)
        never = np.isneginf(theta)
        self.scores = self.matrix @ np.where(never, 0, theta)
        self.scores[(self.matrix != 0) @ never > 0] = -np.inf
        top = self.scores.max()
        self.possible = top > -np.inf
        if self.possible:
            self.total = top + np.log(np.exp(self.scores - top).sum())
            self.logs = self.scores - self.total
            self.p = np.exp(self.logs)

    def mean(self, values):
        """Return the mean of a value of each label; impossible labels count 0."""
        some = self.p > 0
        return float(self.p[some] @ np.asarray(values)[some])


def batches(kind, seed, many=6):
    """Batches of a structure: plain ones, wide scores, and scores of -inf."""
    rng = np.random.default_rng([seed, *map(ord, kind)])
    for k in range(many):
        space, scores, labels = random_batch(kind, rng, n=5, padded=k % 2 == 1)
        if k % 3 == 1 and kind != "thresholds":  # whose parts are counted, not on or off
            scores = forbidding(scores, rng, 0.15)
        if k % 3 == 2:
            scores.node *= 50
        yield rng, space, scores, labels


def sums(space, scores):
    """Return the enumeration of every example; None if one has no possible label."""
    every = [Sum(space, scores, i) for i in range(scores.examples.n)]
    if all(one.possible for one in every):
        return every
    first = next(i for i, one in enumerate(every) if not one.possible)
    for call in (log_partition, entropy, least_loss):
        refused(f"example {first}: ", call, space, scores)
    return None


def close(given, expected, scale=1.0):
    np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-9 * scale)


def pieces(flat, examples):
    return np.split(flat, examples.label_offsets[1:-1])


def table_of(loss, i, one, truths, rng):
    """Return the loss [label, truth]; one call for a truth, and some pairs one by one."""
    labels, truths = np.array(one.labels), np.array(truths)
    if loss.zero_one:
        table = (labels[:, None] != truths).any(axis=2).astype(float)
    else:
        table = np.empty((len(labels), len(truths)))
        for column, truth in zip(table.T, truths):
            theta = np.zeros(one.matrix.shape[1])
            column[:] = calls.augment(loss, i, truth, 1.0, theta)
            column += one.matrix @ theta
    pairs = rng.integers(table.shape, size=(50, 2))
    values = np.array([calls.loss_value(loss, i, truths[c], labels[r]) for r, c in pairs])
    assert (
        np.abs(table[tuple(pairs.T)] - values) <= np.maximum(1e-6 * np.abs(values), 1e-12)
    ).all()
    return table


def row_of(one, label):
    return next(r for r, y in enumerate(one.labels) if np.array_equal(y, label))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", SUMS)
def test_numbers_of_one_distribution(kind, seed):
    for _, space, scores, labels in batches(kind, seed):
        every = sums(space, scores)
        if every is None:
            continue
        close(log_partition(space, scores), [one.total for one in every])
        close(entropy(space, scores), [-one.mean(one.logs) for one in every], 100)
        rows = [row_of(one, y) for one, y in zip(every, pieces(labels, scores.examples))]
        expected = [one.logs[r] for one, r in zip(every, rows)]
        close(log_proba(space, scores, labels), expected, 100)
        best, logs = most_probable(space, scores, 4)
        for one, some, values in zip(every, best, logs):
            close(values, [one.logs[row_of(one, y)] for y in some], 100)


@pytest.mark.parametrize("kind", SUMS)
def test_two_distributions(kind):
    infinite = 0
    for rng, space, scores, _ in batches(kind, 7, 12):
        shared = {name: rng.normal(size=array.shape) for name, array in scores.shared.items()}
        edge = None if scores.edge is None else rng.normal(size=scores.edge.shape)
        rows = scores.examples, scores.rows, scores.edge_rows
        other = Scores(rng.normal(size=scores.node.shape), shared, edge, *rows)
        every, others = sums(space, scores), sums(space, other)
        for p, q, first, second in (
            (scores, other, every, others),
            (other, scores, others, every),
            (scores, scores, every, every),
        ):
            if first is None or second is None:
                continue
            crossed = [-a.mean(b.logs) for a, b in zip(first, second)]
            infinite += sum(np.isinf(crossed))
            close(cross_entropy(space, p, q), crossed, 100)
            apart = [c + a.mean(a.logs) for a, c in zip(first, crossed)]
            close(kl_divergence(space, p, q), apart, 100)
        if every:
            assert (kl_divergence(space, scores, scores) == 0).all()
    # Few paths of a small grid are left once others are forbidden.
    assert infinite or kind in ("leaves", "thresholds", "paths", "paths with edges")


def test_a_loss_without_an_expectation_says_what_it_lacks():
    class Plain(TaskLoss):
        def loss(self, space, examples, i, truth, label):
            return float((truth != label).sum())

    chain = score_space("chain", 2)
    scores = Scores(np.zeros((2, 2)), examples=chain.pack_sizes([2]))
    message = r"because Plain, without loss_costs\(\) and costs\(\), is not linear"
    refused(message, expected_loss, chain, scores, np.zeros(2, int), Plain())


@pytest.mark.parametrize("kind", SUMS)
def test_expected_losses(kind):
    counted = 0
    for rng, space, scores, labels in batches(kind, 11):
        every = sums(space, scores)
        binding = binding_of(space, scores)
        for name in loss_names(space):
            loss = binding.loss(name)
            if not (loss.has_costs or loss.zero_one):
                for call in (
                    partial(expected_loss, space, scores, labels),
                    partial(least_loss, space, scores),
                ):
                    refused("has no expectation by marginals.*use l", call, name)
                continue
            if every is None:
                continue
            counted += 1
            given = expected_loss(space, scores, labels, name)
            best, least = least_loss(space, scores, name)
            splits = [pieces(flat, scores.examples) for flat in (labels, best)]
            expected, reached = [], []
            for i, (one, label, chosen) in enumerate(zip(every, *splits)):
                truths = [truth for truth, p in zip(one.labels, one.p) if p > 0]
                risks = table_of(loss, i, one, truths, rng) @ one.p[one.p > 0]
                allowed, row = one.scores > -np.inf, row_of(one, chosen)
                assert allowed[row]
                expected.append((risks[row_of(one, label)], risks[allowed].min()))
                reached.append(risks[row])
            close(np.transpose([given, least]), expected, 100)
            close(reached, least, 100)
    assert counted


def along(space, scores, step, moves):
    """Return scores moved by a step; -inf remains."""
    shared = {name: a + step * moves[name] for name, a in scores.shared.items()}
    rows = scores.examples, scores.rows, scores.edge_rows
    edge = None if scores.edge is None else scores.edge + step * moves["edge"]
    return Scores(scores.node + step * moves["node"], shared, edge, *rows)


def slope(gradient, moves):
    blocks = {"node": gradient.node, "edge": gradient.edge, **gradient.shared}
    return sum(float((a * moves[name]).sum()) for name, a in blocks.items() if a is not None)


OPERANDS = {
    "log_partition": [], "log_proba": ["labels"], "entropy": [], "cross_entropy": ["other"],
    "kl_divergence": ["other"], "expected_loss": ["labels", "loss"],
}  # fmt: skip


@pytest.mark.parametrize("number_kind", OPERANDS)
@pytest.mark.parametrize("kind", SUMS)
def test_gradients(kind, number_kind):
    for rng, space, scores, labels in batches(kind, 13, 5):
        if np.abs(scores.node[np.isfinite(scores.node)]).max(initial=0) > 10:
            continue  # steep: differences say little
        moves = {
            name: rng.normal(size=array.shape)
            for name, array in {"node": scores.node, "edge": scores.edge, **scores.shared}.items()
            if array is not None
        }
        other = along(space, scores, 0.7, moves) if "other" in OPERANDS[number_kind] else None
        given = {
            "labels": labels if "labels" in OPERANDS[number_kind] else None,
            "loss": "hamming" if "loss" in OPERANDS[number_kind] else None,
        }
        if sums(space, scores) is None:
            continue
        weights = rng.normal(size=5)

        ask = partial(number, number_kind, space, **given)

        def value(p, q, ask=ask, weights=weights):
            values = ask(p, other=q)
            return float(np.where(np.isfinite(values), weights * values, 0).sum())

        h = 1e-5
        for by_other in (False, True)[: 1 + (other is not None)]:
            ways = []
            for step in (h, -h):
                p = along(space, scores, 0 if by_other else step, moves)
                q = other and along(space, other, step if by_other else 0, moves)
                ways.append(value(p, q))
            expected = (ways[0] - ways[1]) / (2 * h)
            for each in (False, True):
                gradient = number_gradient(
                    number_kind,
                    space,
                    scores,
                    other=other,
                    weights=weights,
                    by_other=by_other,
                    each=each,
                    **given,
                )
                finite = {name: np.where(np.isfinite(a), a, 0) for name, a in moves.items()}
                np.testing.assert_allclose(slope(gradient, finite), expected, 1e-5, 1e-6)


@pytest.mark.parametrize("kind", sorted(NO_SUM))
def test_structures_without_a_sum_are_named(kind):
    space, scores, labels = random_batch(kind, np.random.default_rng(0))
    calls = [partial(log_partition), partial(entropy), partial(least_loss)]
    calls += [partial(log_proba, labels=labels), partial(kl_divergence, other=scores)]
    calls += [partial(expected_loss, labels=labels), partial(most_probable, k=2)]
    name = space.structure.name
    why = "no sum over its labels, which is #P-hard" if name == "permutation" else "entropy"
    for call in calls:
        with pytest.raises(ValueError, match=why) as error:
            call(space, scores)
        assert repr(name) in str(error.value)


def test_labels_outside_of_the_space_have_probability_0():
    """Trees that are none, of another kind, or with arcs that are no candidates."""
    rng = np.random.default_rng(0)
    for projective in (False, True):
        for single_root in (False, True):
            structure = get_structure("dependency", projective=projective, single_root=single_root)
            space = score_space(structure)
            examples = space.pack_sizes([3] * 64)
            scores = Scores(rng.normal(size=64 * 9), examples=examples)
            heads = np.array(np.unravel_index(np.arange(64), (4, 4, 4))).T.astype(np.int32)
            logs = log_proba(space, scores, heads.ravel())
            every = [{tuple(y) for y in space.enumerate_labels(examples, 0)}] * 64
            inside = np.array([tuple(y) in own for y, own in zip(heads.tolist(), every)])
            assert (np.isfinite(logs) == inside).all() and inside.any() and not inside.all()
            gradient = number_gradient("log_proba", space, scores, labels=heads.ravel())
            moved = np.abs(gradient.node.reshape(64, 9)).sum(1) > 0
            assert (moved == inside).all()
    tags = score_space(get_structure("chain", forbidden=[(0, 1)]), 2)
    scores = Scores(np.zeros((4, 2)), examples=tags.pack_sizes([2, 2]))
    assert np.isneginf(log_proba(tags, scores, np.array([0, 1, 1, 0]))).tolist() == [True, False]
    refused("example 0: found 0 before 1", expected_loss, tags, scores, np.array([0, 1, 1, 0]))


def test_probabilities_at_scores_that_round():
    """Scores far above 1: the probability of a label is 0 to 1 nonetheless."""
    chain, rng = score_space("chain", 3), np.random.default_rng(0)
    examples = chain.pack_sizes([6] * 50)
    for scale in (1e14, 1e200):
        shared = {"transition": rng.normal(size=(3, 3)) * scale}
        scores = Scores(rng.normal(size=(300, 3)) * scale, shared, examples=examples)
        best, logs = most_probable(chain, scores, 1)
        assert max(one[0] for one in logs) <= 0
        labels = np.concatenate([answers[0] for answers in best])
        assert (log_proba(chain, scores, labels) <= 0).all()
        losses = expected_loss(chain, scores, labels, "zero-one")
        assert ((losses >= 0) & (losses <= 1)).all()


def test_expected_losses_of_what_is_certain_are_not_below_zero():
    """Marginals of a single class sum to the length up to rounding, which is no loss."""
    rng = np.random.default_rng(0)
    space = score_space(get_structure("semi-markov", max_length=2), 1)
    examples = space.pack_sizes([4] * 200)
    scores = Scores(rng.integers(-1, 2, (800, 3, 1)).astype(float), examples=examples)
    labels = np.concatenate(k_best(space, scores, 1)[0]).ravel()
    assert (expected_loss(space, scores, labels) >= 0).all()
    assert (least_loss(space, scores)[1] >= 0).all()


def test_bad_input():
    chain = score_space("chain", 2)
    node, table = np.zeros((3, 2)), np.array([[0, -np.inf], [0, 0]])
    scores = Scores(node, {"transition": table}, examples=chain.pack_sizes([2, 1]))
    assert np.isneginf(log_proba(chain, scores, np.array([0, 1, 1]))).tolist() == [True, False]
    gradient = number_gradient("log_proba", chain, scores, labels=np.array([0, 1, 1]))
    assert (gradient.node[:2] == 0).all()
    plain = Scores(node, examples=chain.pack_sizes([2, 1]))
    assert np.isinf(cross_entropy(chain, plain, scores)).tolist() == [True, False]
    assert np.isfinite(cross_entropy(chain, scores, plain)).all()
    for by_other in (False, True):
        with pytest.raises(ValueError, match="example 0: the cross-entropy is infinite"):
            number_gradient("kl_divergence", chain, plain, other=scores, by_other=by_other)
    never = Scores(np.full((3, 2), -np.inf), examples=chain.pack_sizes([2, 1]))
    for call in (log_partition, entropy, least_loss):
        refused("example 0: every label", call, chain, never)
    with pytest.raises(ValueError, match="other: its examples have other sizes"):
        kl_divergence(chain, plain, Scores(node, examples=chain.pack_sizes([1, 2])))
    refused("found 2 numbers, expected 3", log_proba, chain, plain, np.array([0, 1]))
    refused("example 1: its label holds 2", log_proba, chain, plain, np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="example 1: the block 'node' holds nan"):
        entropy(chain, Scores(np.array([[0, 0], [0, 0], [0, np.nan]]), examples=plain.examples))
    refused("unknown loss 'hamming2'", least_loss, chain, plain, "hamming2")
    huge = Scores(np.full((3, 2), 1e308), examples=chain.pack_sizes([2, 1]))
    refused("example 0: .*too large", log_partition, chain, huge)


def test_any_number_of_threads_and_single_precision():
    rng = np.random.default_rng(1)
    space, scores, labels = random_batch("chain", rng, n=300)
    single = Scores(scores.node.astype(np.float32), scores.shared, None, scores.examples)
    for kind in ("entropy", "log_proba"):
        given = {"labels": labels} if kind == "log_proba" else {}
        one, two = (number(kind, space, scores, n_jobs=n, **given) for n in (1, 2))
        assert (one == two).all() and (number(kind, space, single, **given) == one).all()
        one, two = (number_gradient(kind, space, scores, n_jobs=n, **given) for n in (1, 2))
        assert (one.node == two.node).all()
        assert all((one.shared[name] == two.shared[name]).all() for name in one.shared)
