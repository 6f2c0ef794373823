"""The methods of the distributions in PyTorch and JAX: numbers of labels by their names."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Array = TypeVar("Array")


class NumberMethods(Generic[Array]):
    """Mixin: numbers of the distribution of labels at a batch of scores.

    A class with it computes them, differentiable, in ``_of(kind, scores, lengths, ...)``.

    Parameters
    ----------
    structure : str or Structure
    loss : str or loss object, default="hamming"
    classes : int or sequence, optional
    n_jobs : int, optional
    """

    def __init__(
        self, structure: Any, loss: Any = "hamming", classes: Any = None, n_jobs: int | None = None
    ):
        super().__init__(structure, classes, n_jobs)  # type: ignore[call-arg]
        self.loss = loss

    def _of(self, kind: str, scores: Any, lengths: Any, **batch: Any) -> Array:
        raise NotImplementedError

    def log_partition(self, scores: Any, lengths: Any = None, **batch: Any) -> Array:
        """Return the logarithm of the sum of ``exp(score)`` over all labels.

        Parameters
        ----------
        scores : Tensor or array, or dict of str to them
        lengths : Tensor, array or list of int, optional
        **batch : object
            ``examples`` and graphs; in PyTorch also ``mask``.

        Returns
        -------
        Tensor or array of shape (n,)
        """
        return self._of("log_partition", scores, lengths, **batch)

    def log_proba(self, scores: Any, labels: Any, lengths: Any = None, **batch: Any) -> Array:
        """Return the log-probability of one label of every example.

        Parameters
        ----------
        scores : Tensor or array, or dict of str to them
        labels : Tensor or array of int
        lengths : Tensor, array or list of int, optional
        **batch : object
            See :meth:`log_partition`.

        Returns
        -------
        Tensor or array of shape (n,)
            -inf for labels that are forbidden, or none of the structure.
        """
        return self._of("log_proba", scores, lengths, labels=labels, **batch)

    def entropy(self, scores: Any, lengths: Any = None, **batch: Any) -> Array:
        """Return the entropy of labels, in nats.

        Parameters
        ----------
        scores : Tensor or array, or dict of str to them
        lengths : Tensor, array or list of int, optional
        **batch : object
            See :meth:`log_partition`.

        Returns
        -------
        Tensor or array of shape (n,)
        """
        return self._of("entropy", scores, lengths, **batch)

    def cross_entropy(self, scores: Any, other: Any, lengths: Any = None, **batch: Any) -> Array:
        """Return ``-sum_y p(y) log q(y)``.

        Parameters
        ----------
        scores, other : Tensor or array, or dict of str to them
            Those of p and of q, of the same blocks and shapes.
        lengths : Tensor, array or list of int, optional
        **batch : object
            See :meth:`log_partition`.

        Returns
        -------
        Tensor or array of shape (n,)
        """
        return self._of("cross_entropy", scores, lengths, other=other, **batch)

    def kl_divergence(self, scores: Any, other: Any, lengths: Any = None, **batch: Any) -> Array:
        """Return the Kullback-Leibler divergence ``sum_y p(y) log(p(y) / q(y))``.

        Parameters
        ----------
        scores, other : Tensor or array, or dict of str to them
            See :meth:`cross_entropy`.
        lengths : Tensor, array or list of int, optional
        **batch : object
            See :meth:`log_partition`.

        Returns
        -------
        Tensor or array of shape (n,)
        """
        return self._of("kl_divergence", scores, lengths, other=other, **batch)

    def expected_loss(self, scores: Any, labels: Any, lengths: Any = None, **batch: Any) -> Array:
        """Return the expected loss of one label of every example.

        Parameters
        ----------
        scores : Tensor or array, or dict of str to them
        labels : Tensor or array of int
            Predictions.
        lengths : Tensor, array or list of int, optional
        **batch : object
            See :meth:`log_partition`.

        Returns
        -------
        Tensor or array of shape (n,)
        """
        return self._of("expected_loss", scores, lengths, labels=labels, **batch)
