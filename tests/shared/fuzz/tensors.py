"""Batches of scores as arrays and as tensors of PyTorch and JAX, with something odd in them."""

from __future__ import annotations

from typing import Any

import batch_cases
import numpy as np

from structsolve import batch

from .api import odd
from .base import Target, judged, short

_KINDS = sorted(batch_cases.KINDS)
_SURROGATES = ["margin", "crf", "slack", "max-min", "sparsemap", "x", None, 3]
_LOSSES = ["hamming", "zero-one", "x", None]


class Batch(Target):
    """The functions of ``structsolve.batch``."""

    name = "batch"
    refusals = (ValueError, TypeError, NotImplementedError)

    def __init__(self, folder: str):
        pass

    def run(self, rng: np.random.Generator) -> None:
        """Make one call; see the package."""
        kind = _KINDS[int(rng.integers(len(_KINDS)))]
        dtype = [np.float64, np.float32][int(rng.integers(2))]
        space, scores, labels = batch_cases.random_batch(kind, rng, 3, dtype, rng.random() < 0.3)
        given: dict[str, Any] = dict(vars(scores))
        if rng.random() < 0.7:
            name = [k for k in sorted(given) if given[k] is not None and k != "examples"]
            name = name[int(rng.integers(len(name)))]
            if name == "shared" and given[name]:
                block = sorted(given[name])[int(rng.integers(len(given[name])))]
                given[name] = {**given[name], block: odd(rng, given[name][block])}
            else:
                given[name] = odd(rng, given[name])
        truths = odd(rng, labels) if rng.random() < 0.3 else labels
        more = [1, 2, 3, 0, -1, 10**9, 2.5, "x", None][int(rng.integers(9))]
        surrogate = _SURROGATES[int(rng.integers(len(_SURROGATES)))]
        loss = _LOSSES[int(rng.integers(len(_LOSSES)))]
        projection = ["entropy", "euclidean", "x"][int(rng.integers(3))]
        weights = odd(rng, np.ones(3)) if rng.random() < 0.3 else None
        try:
            made = batch.Scores(**given)
            calls = {
                "argmax": lambda: batch.argmax(space, made),
                "k_best": lambda: batch.k_best(space, made, more if more != 10**9 else 50),
                "marginals": lambda: batch.marginals(space, made, projection),
                "marginals_vjp": lambda: batch.marginals_vjp(space, made, scores, projection),
                "samples": lambda: batch.samples(space, made, more if more != 10**9 else 50),
                "encode": lambda: batch.encode(space, made, truths),
                "log_proba": lambda: batch.log_proba(space, made, truths),
                "entropy": lambda: batch.entropy(space, made),
                "kl_divergence": lambda: batch.kl_divergence(space, made, scores),
                "expected_loss": lambda: batch.expected_loss(space, made, truths),
                "least_loss": lambda: batch.least_loss(space, made),
                "most_probable": lambda: batch.most_probable(space, made, 3),
                "value_and_gradient": lambda: batch.value_and_gradient(
                    space, made, truths, surrogate, loss, weights=weights
                ),
            }
            call = sorted(calls)[int(rng.integers(len(calls)))]
            told = {k: v for k, v in given.items() if k != "examples"}
            self.say(
                f"batch.{call}({kind}, {short(told, 500)}, {short(truths)}, {more!r}, "
                f"{surrogate}, {loss}, {projection}, {weights!r})"
            )
            calls[call]()
        except TypeError as error:
            raise judged(error) from None


class Torch(Target):
    """Layers of PyTorch, their gradients, and decoding."""

    name = "torch"
    refusals: tuple[type[Exception], ...] = (ValueError, TypeError, NotImplementedError)
    batch = 100

    def __init__(self, folder: str):
        import torch
        import torch_cases

        import structsolve.torch as module

        torch.set_num_threads(1)
        self.module, self.cases, self.torch = module, torch_cases.CASES, torch

    def run(self, rng: np.random.Generator) -> None:
        """Make one call; see the package."""
        kind = sorted(self.cases)[int(rng.integers(len(self.cases)))]
        case = self.cases[kind](rng)
        scores = {name: self.array(given) for name, given in case.scores.items()}
        labels, more = self.array(case.labels), dict(case.given)
        if rng.random() < 0.6:
            name = sorted(scores)[int(rng.integers(len(scores)))]
            scores[name] = self.odd(rng, scores[name])
        if rng.random() < 0.3:
            labels = self.odd(rng, labels)
        if more and rng.random() < 0.2:
            name = sorted(more)[int(rng.integers(len(more)))]
            more[name] = odd(rng, more[name])
        surrogate = _SURROGATES[int(rng.integers(len(_SURROGATES)))]
        names = sorted(set(self.module.__all__) & {"StructuredLoss", "Marginals", "decode"})
        call = names[int(rng.integers(len(names)))]
        told = f"{kind}, {surrogate}, {short(scores, 500)}, {short(labels)}, {more}"
        self.say(f"{self.name}.{call}({told})")
        try:
            if call == "decode":
                self.module.decode(case.structure, scores, **more)
            elif call == "Marginals":
                self.module.Marginals(case.structure)(scores, **more)
            else:
                layer = self.module.StructuredLoss(case.structure, surrogate)
                self.train(layer, scores, labels, more)
        except TypeError as error:
            raise judged(error) from None
        except RuntimeError as error:  # errors of a callback, as JAX tells them
            if type(error).__name__ != "JaxRuntimeError":
                raise
            if "ValueError: " in str(error) or "NotImplementedError: " in str(error):
                raise ValueError("refused") from None
            if "TypeError: " in str(error):
                raise judged(TypeError(str(error).rsplit("TypeError: ", 1)[1])) from None
            raise

    def train(self, layer: Any, scores: Any, labels: Any, more: Any) -> None:
        loss = layer(scores, labels, **more)
        if loss.requires_grad:
            loss.backward()

    def array(self, tensor: Any) -> Any:
        return tensor

    def odd(self, rng: np.random.Generator, value: Any) -> Any:
        """Return something else, as a tensor if possible."""
        other = odd(rng, value.detach().numpy())
        if isinstance(other, np.ndarray) and other.dtype.kind in "fiub" and other.size:
            made = self.torch.as_tensor(other.copy())
            return made.requires_grad_() if other.dtype.kind == "f" else made
        return other


class Jax(Torch):
    """Losses, marginals and labels of JAX arrays."""

    name = "jax"
    batch = 25

    def __init__(self, folder: str):
        super().__init__(folder)
        import jax

        import structsolve.jax as module

        self.module, self.jax = module, jax

    def train(self, layer: Any, scores: Any, labels: Any, more: Any) -> None:
        lengths = more.pop("lengths", None)
        self.jax.grad(lambda given: layer(given, labels, lengths, **more))(scores)

    def array(self, tensor: Any) -> Any:
        return self.jax.numpy.asarray(tensor.detach().numpy())

    def odd(self, rng: np.random.Generator, value: Any) -> Any:
        other = odd(rng, np.asarray(value))
        if isinstance(other, np.ndarray) and other.dtype.kind in "fiub":
            return self.jax.numpy.asarray(other)
        return other
