"""Functions of layers, compiled by torch."""

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo import config, guards  # noqa: E402

# Looks for garbage, and times of guards with caches emptied for it: a tenth of the time to compile.
if hasattr(config, "run_gc_after_compile"):
    config.run_gc_after_compile = False
guards.profile_guard_manager = lambda *args: 0.0


def compiled(function, **settings):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", **settings)


def draw(seed=0, shape=(4, 5, 3), dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    node = torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True)
    table = torch.randn(shape[-1:] * 2, generator=generator, dtype=dtype, requires_grad=True)
    labels = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    return node, table, labels


def same(function, *args):
    """The answers and first derivatives of a compiled function are those of the function."""
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    plain = function(*args)
    graph = compiled(function)(*args)
    assert torch.allclose(plain, graph, equal_nan=True)
    if plain.is_floating_point():
        weights = torch.arange(1.0, plain.numel() + 1).reshape(plain.shape)
        for one, other in zip(
            torch.autograd.grad((plain * weights).sum(), leaves),
            torch.autograd.grad((graph * weights).sum(), leaves),
            strict=True,
        ):
            assert torch.allclose(one, other, atol=1e-6)
