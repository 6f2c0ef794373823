"""Marginals as torch layers: derivatives of log-partitions, which have derivatives themselves."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from torch_cases import CASES, GIBBS  # noqa: E402

from structsolve.torch import Marginals  # noqa: E402


def log_partition(case, i):
    return torch.logsumexp(
        torch.stack([torch.as_tensor(case.score(i, y)) for y in case.every[i]]), 0
    )


@pytest.mark.parametrize("name", GIBBS)
def test_marginals_are_derivatives_of_the_log_partition(name):
    for seed in range(3):
        case = GIBBS[name](np.random.default_rng(seed))
        answer = Marginals(case.structure)(case.scores, **case.given)
        for i in range(len(case.every)):
            theirs = torch.autograd.grad(
                log_partition(case, i), list(case.scores.values()), allow_unused=True
            )
            for (block, mine), other, scores in zip(answer.items(), theirs, case.scores.values()):
                other = torch.zeros_like(scores) if other is None else other
                if mine.ndim == scores.ndim:  # a block of all examples: the others' part is 0
                    other = other[i]
                torch.testing.assert_close(mine[i], other, msg=block)


@pytest.mark.parametrize(
    ("name", "projection"),
    [
        *((name, "entropy") for name in GIBBS),
        *((name, "euclidean") for name in GIBBS),
        ("matching", "entropy"),
        ("ranking", "euclidean"),
    ],
)
def test_derivatives_of_marginals(name, projection):
    case = CASES[name](np.random.default_rng(2), n=2)
    layer = Marginals(case.structure, projection)
    names = list(case.scores)

    def value(*tensors):
        return tuple(layer(dict(zip(names, tensors)), **case.given).values())

    assert torch.autograd.gradcheck(value, tuple(case.scores.values()), atol=1e-5, rtol=1e-4)
