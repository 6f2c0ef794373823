"""Best labels and marginals of a batch of scores."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..batch import marginals
from ..batch.answers import Best
from ..batch.padded import kept
from ..batch.products import jacobian_product
from .host import Function, Given, call
from .linear import Linear
from .mapped import Mapped


def decode(
    structure: Any,
    scores: Any,
    lengths: Any = None,
    examples: Any = None,
    *,
    classes: Any = None,
    oracle: Any = None,
    n_jobs: int | None = None,
    **graphs: Any,
) -> jax.Array:
    """Return the best label of every example.

    Parameters
    ----------
    structure : str, Structure or function
        A function of this package provides its structure, classes and caches.
    scores : array or dict of str to array
        See :class:`StructuredLoss`, also for lengths, examples and graphs.
    lengths : array of int, optional
    examples : Examples, optional
    classes : int or sequence, optional
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads.
    **graphs : object
        Further arguments of the structure.

    Returns
    -------
    array of int32
        Of the shape of labels, -1 beyond the end of an example.

    Raises
    ------
    ValueError, TypeError
        See :class:`StructuredLoss`; also for a packed batch whose lengths are traced.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from structsolve.jax import decode
    >>> scores = jnp.array([[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]])
    >>> decode("chain", {"node": scores, "transition": -3 * jnp.eye(2)}, jnp.array([2])).tolist()
    [[1, 0, -1]]
    """
    function = structure
    if not isinstance(function, Function):
        function = kept(Function, structure, classes, n_jobs)
    given = function.given(scores, lengths, examples, graphs)

    def best(given: Given) -> Any:
        def labels(batch: Mapped, arrays: Any, out: Any) -> Any:
            known = batch.kept.get("best")
            if known is None or not known.again(batch.blocks, (arrays,)):
                known = batch.kept["best"] = Best(batch.batch.space, batch.scores(arrays), oracle)
            return known.allowed(function.n_jobs, out)

        return labels_from(given, labels)

    if oracle is not None and not isinstance(oracle, str):
        return best(given)
    return function.compiled(("best", oracle), best, given)


def labels_from(given: Given, labels_of: Any) -> jax.Array:
    """Return labels of every example.

    Parameters
    ----------
    given : Given
    labels_of : callable
        ``(batch, arrays, out)`` to labels, one after the other, which may be those of out, if it is
        not None; on the host.

    Returns
    -------
    array of int32
        Of the shape of labels, -1 beyond the end of an example.
    """

    def host(batch: Mapped, *arrays: Any) -> Any:
        own, out = batch.batch.places, None
        if batch.out is not None and own.label_index is None:
            out = batch.out[0].reshape(-1)
        flat = labels_of(batch, arrays, out)
        if flat is out:
            return batch.out[0]
        return own.pad_labels(flat).reshape(*batch.lead, *places.label_shape)

    traced = isinstance(given.lengths, jax.core.Tracer)
    places = given.batch(None if traced else given.lengths).places
    labels = jax.ShapeDtypeStruct(places.label_shape, jnp.int32)
    return call(given.host(host), labels, given.lengths, *given.arrays)


class Marginals(Function):
    """Marginals of a structure, differentiable.

    Parameters
    ----------
    structure : str or Structure
    projection : {"entropy", "euclidean"} or str, default="entropy"
        "entropy": the probabilities of parts under ``p(y) ~ exp(score of y)``.  "euclidean":
        SparseMAP (Niculae et al. 2018), most of which are 0.
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    n_jobs : int, optional
        Threads.

    Notes
    -----
    The backward pass multiplies by the Jacobian: for "entropy", the covariance of parts, by a
    second pass of sums; for "euclidean" by the active set.  Second derivatives raise.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from structsolve.jax import Marginals
    >>> tables = {"node": jnp.zeros((1, 2, 2)), "transition": jnp.array([[0.0, 0.0], [0.0, 2.0]])}
    >>> Marginals("chain")(tables)["node"][0, 0].round(2).tolist()
    [0.1899999976158142, 0.8100000023841858]
    """

    def __init__(
        self,
        structure: Any,
        projection: str = "entropy",
        classes: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, n_jobs)
        self.projection = projection

    def __call__(
        self, scores: Any, lengths: Any = None, examples: Any = None, **graphs: Any
    ) -> Any:
        """Return the marginals of a batch.

        Parameters
        ----------
        scores : array or dict of str to array
            See :class:`StructuredLoss`, also for the others.
        lengths : array of int, optional
        examples : Examples, optional
        **graphs : object

        Returns
        -------
        array or dict of str to array
            In the form of the scores, but shared blocks have one array for each example. 0 beyond
            the end of an example.

        Raises
        ------
        ValueError, TypeError
            See :class:`StructuredLoss`; also if the structure has no such projection.
        """
        given = self.given(scores, lengths, examples, graphs)

        def of(given: Given) -> Any:
            return given.in_form(self._function(given)(given.arrays, given.lengths))

        return self.compiled("marginals", of, given)

    def _function(self, given: Given) -> Any:
        like, out = given.like(), given.each()

        def host(batch: Mapped, *arrays: Any) -> Any:
            scores = batch.scores(arrays)
            answer, _ = marginals(batch.batch.space, scores, self.projection, n_jobs=self.n_jobs)
            return batch.apart(answer, True)

        @jax.custom_jvp
        def value(arrays: Any, lengths: Any) -> Any:
            return call(given.host(host), out, lengths, *arrays)

        def product(batch: Mapped, arrays: Any, directions: Any, each: bool) -> Any:
            answer = jacobian_product(
                batch.batch.space,
                batch.scores(arrays),
                batch.scores(directions),
                self.projection,
                each=each or bool(batch.lead),
                n_jobs=self.n_jobs,
            )
            return batch.apart(answer, each)

        jacobian = Linear(
            given.linear(lambda batch, _, a, __, d: product(batch, a, d, True), labelled=False),
            given.linear(lambda batch, _, a, __, d: product(batch, a, d, False), labelled=False),
            like,
            out,
            f"Marginals of structure {self.structure.name!r} has no second derivatives",
        )

        @value.defjvp
        def value_jvp(primals: Any, tangents: Any) -> Any:
            arrays, lengths = primals
            return value(*primals), jacobian(given.residuals(None, lengths, arrays), tangents[0])

        return value
