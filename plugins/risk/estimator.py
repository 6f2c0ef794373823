"""ConditionalRiskMinimizer: predicts the label of least estimated risk (Goh and Jaillet 2017)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from structsolve import registry
from structsolve.estimators.alpha import AUTO, is_auto
from structsolve.estimators.class_weight import check_class_weight, weighed_loss
from structsolve.estimators.common import generator_of
from structsolve.examples.given import is_sparse, listed
from structsolve.plugins.risk.held_out import held_out_loss
from structsolve.plugins.risk.loading import load
from structsolve.plugins.risk.own_alpha import chosen_alpha
from structsolve.plugins.risk.prediction import RiskPredictionMixin
from structsolve.plugins.risk.ridge import FeatureSmoother, KernelSmoother
from structsolve.plugins.risk.saving import save
from structsolve.plugins.risk.targets import PartTargets
from structsolve.plugins.risk.width import widening
from structsolve.potentials.mercer import PRECOMPUTED, refuse_own_features
from structsolve.structure.pack import learn_space
from structsolve.utils.parallel import effective_jobs
from structsolve.utils.params import check_types, cloned_transformer
from structsolve.utils.progress import stage

# Examples beyond which features stand for a kernel, and how many: a factorisation of 10,000 kernel
# values squared takes most of a minute, of 1000 features a second.
MOST_EXACT, LANDMARKS = 4000, 1000


class ConditionalRiskMinimizer(RiskPredictionMixin, BaseEstimator):
    """Predicts ``argmin_y sum_i w_i(x) L(y, y_i)``, the label of least expected loss at x.

    The weights are those of kernel ridge regression, ``w(x) = (K + n alpha I)^{-1} k(x)``: training
    is one factorisation of the kernel matrix for any number of labels and any loss. No surrogate
    replaces the loss, and only prediction calls the structure's oracle.

    Parameters
    ----------
    structure : str or Structure, default="multiclass"
        Kind of output. All examples must have one shape (for chains: one length).
    loss : str or object, default="hamming"
        A loss that is linear in the parts of both labels; "squared" or "absolute" for "flow".
    class_weight : {"balanced"}, dict or None, default=None
        Weight per class, 1 for those left out: the factor of errors on nodes of that class, as in
        :class:`~structsolve.ClassWeights`, for loss "hamming" or "normalized-hamming". "balanced"
        gives all classes the same total weight. ``score`` uses ``loss`` without these weights.
    alpha : float or "auto", default="auto"
        The paper's lambda: each risk minimises ``mean_i (f(x_i) - L_i)^2 + alpha ||f||^2``. It is
        ``1/n`` of the alpha of :class:`sklearn.kernel_ridge.KernelRidge`, and the alpha of
        :class:`~structsolve.StructuredSVM` on half the squared error. "auto" tries 13 values on up
        to 512 rows, each left out, and takes the value of least mean loss, or of largest micro-F1
        for label sets; it ignores the joint kernel, and is 1e-2 for continuous labels.
    alphas : sequence of float, optional
        ``fit`` chooses the value of least held-out loss and ignores ``alpha``.
    cv : int, optional
        Number of held-out folds, consecutive rows as in scikit-learn's ``KFold``. If rows are
        ordered (by class, by time), the folds measure the loss on another part of the order. None
        leaves out one example at a time, without further factorisations.
    kernel : str, callable or None, default="rbf"
        The Mercer kernel that compares examples, as in :class:`~structsolve.StructuredSVM`; the
        features of an example of several nodes are concatenated. None: the inner product of
        features (of ``feature_map`` or X), at a cost that does not grow with the number of pairs of
        examples.
    kernel_params : dict, optional
        Named arguments of the kernel; ``gamma`` is a number, "scale" or "auto", as of
        :class:`~structsolve.StructuredSVM`. Without any it is "scale", for "rbf" less where
        distances are nearly all alike, as between texts (:mod:`structsolve.plugins.risk.width`).
    feature_map : transformer, "auto", "nystroem:N", "rff:N" or None, default="auto"
        "nystroem:N": N features take the place of a named kernel, its values with N examples drawn
        at random (:class:`sklearn.kernel_approximation.Nystroem`); "rff:N": N random waves
        (``RBFSampler``), for "rbf". "auto" is "nystroem:1000" beyond 4000 examples, and the log
        tells. None: the kernel itself, whatever the number of examples. With ``kernel=None``, a
        transformer of scikit-learn that makes features, which is cloned, then fitted.
    joint_kernel : ndarray of shape (q, q), networkx graph or dict of children by node, optional
        Kernel over the q parts of a label, which shares information between parts (an additive
        model, section 5 of the paper). :func:`structsolve.plugins.risk.hierarchy_kernel` makes
        it from a graph over the labels; names of a data frame are compared. Needs ``kernel``;
        ``alphas`` then needs ``cv``.
    fit_intercept : bool, default=True
        Penalise deviations from the mean risk (supplement B). The weights then sum to 1.
    n_jobs : int or None, default=1
        Threads for decoding; the result does not depend on it.
    random_state : int, RandomState or None, default=0
        Draws the features that stand for a kernel.

    Attributes
    ----------
    alpha_ : float
        The regularisation constant.
    gamma_ : float
        The kernel's gamma, where it was computed from X.
    cv_losses_ : ndarray of shape (n_alphas,), with ``alphas``
        Mean held-out loss.
    classes_ : ndarray, where the structure has classes
    n_features_in_ : int
    feature_names_in_ : ndarray, where X is a data frame
    space_ : Space

    Examples
    --------
    >>> from structsolve import ConditionalRiskMinimizer
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"]
    >>> ConditionalRiskMinimizer(alpha=0.1).fit(X, y).predict([[0.5], [4.5]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        structure: Any = "multiclass",
        *,
        loss: Any = "hamming",
        class_weight: Any = None,
        alpha: float | str = "auto",
        alphas: Any = None,
        cv: int | None = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        feature_map: Any = "auto",
        joint_kernel: Any = None,
        fit_intercept: bool = True,
        n_jobs: int | None = 1,
        random_state: Any = 0,
    ):
        self.structure, self.loss, self.class_weight = structure, loss, class_weight
        self.alpha, self.alphas, self.cv, self.kernel = alpha, alphas, cv, kernel
        self.kernel_params, self.feature_map = kernel_params, feature_map
        self.joint_kernel, self.fit_intercept, self.n_jobs = joint_kernel, fit_intercept, n_jobs
        self.random_state = random_state

    # -- training -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> ConditionalRiskMinimizer:
        """Factorise the kernel matrix and store the labels.

        Parameters
        ----------
        X, y : in the form of the structure
            All examples of one shape.

        Returns
        -------
        ConditionalRiskMinimizer
            The estimator itself.

        Raises
        ------
        ValueError
            The message names the parameter or the example that does not fit.
        """
        alphas, X, y = self._check_settings(), listed(X), listed(y, "y")
        structure = registry.get_structure(self.structure)
        # Continuous labels are no labels of the structure: the targets read them.
        rows_of_numbers = self.loss in getattr(structure, "continuous_losses", ())
        space, examples = learn_space(
            structure, X, None if rows_of_numbers else y, fit_intercept=False
        )
        refuse_own_features(space)
        if getattr(structure, "void", None) is not None:
            sizes = np.diff([space.pack(X).offsets, examples.offsets], axis=1)
            if (sizes[0] != sizes[1]).any():
                i = int(np.argmax(sizes[0] != sizes[1]))
                raise ValueError(
                    f"y, example {i}: found void nodes, but labels of other nodes have no average; "
                    "leave such examples out, or take StructuredSVM"
                )
        own = getattr(space, "risk_targets", lambda *_: None)
        loss = weighed_loss(self.class_weight, self.loss, space, examples)
        targets = own(examples, y, loss)
        if targets is None:
            targets = PartTargets(space, examples, loss)
        kernel = self._kernel()
        rows = self._rows(kernel, examples, X)
        for name in ("feature_map_", "gamma_"):
            self.__dict__.pop(name, None)
        if kernel is not None:
            kernel = self._fitted_kernel(kernel, rows)
        if self.feature_map is not None and not isinstance(self.feature_map, str):
            self.feature_map_ = cloned_transformer("feature_map", self.feature_map)
        elif _is_named(self.feature_map) or (
            is_auto(self.feature_map) and examples.n > MOST_EXACT and self._can_be_mapped()
        ):
            self.feature_map_ = self._map_of(kernel, rows)
        if self._is_mapped():
            kernel, rows = None, self._mapped(rows, fit=True)
        gram = None
        if kernel is None:
            rows = rows.toarray() if is_sparse(rows) else rows
            smoother: Any = FeatureSmoother(rows, bool(self.fit_intercept))
        else:
            kernel.check(rows, np.arange(examples.n + 1))
            gram = rows if kernel.precomputed else kernel.matrix(rows, rows)
            gram = (gram + gram.T) / 2
            smoother = KernelSmoother(gram, bool(self.fit_intercept))
            self.kernel_bound_ = float(gram.diagonal().max())
            rows = None if kernel.precomputed else rows
        self._become_fitted(space, targets, smoother, rows)
        self._remember_names(X)
        if self.alphas is None:
            self.alpha_ = chosen_alpha(self)
        else:
            folds: dict[int, Any] = {}
            with smoother.one_factorisation():
                self.cv_losses_ = np.array([held_out_loss(self, a, gram, folds) for a in alphas])
            # If several have the same loss, the strongest regularisation.
            best = max(range(len(alphas)), key=lambda k: (-self.cv_losses_[k], alphas[k]))
            self.alpha_ = alphas[best]
        return self

    def path(self, X: Any, y: Any, alphas: Any) -> list[ConditionalRiskMinimizer]:
        """Return one fitted model per alpha, in their order; they share one factorisation.

        Parameters
        ----------
        X, y : as for :meth:`fit`
        alphas : sequence of float

        Returns
        -------
        list of ConditionalRiskMinimizer
        """
        first = clone(self).set_params(alphas=None, alpha=_check_alphas(alphas)[0]).fit(X, y)
        models = []
        for alpha in _check_alphas(alphas):
            model = clone(self).set_params(alphas=None, alpha=alpha)
            fitted = {k: v for k, v in vars(first).items() if k.endswith("_") or k[0] == "_"}
            vars(model).update(fitted)
            model.alpha_ = alpha
            models.append(model)
        return models

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file without pickle, which :func:`structsolve.load` reads.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        ValueError
            The message names the parameter that such a file cannot hold.
        """
        self._require_fitted()
        save(self, path)

    #: Types of its files' arrays.
    array_types = (
        ("smoother_.*|joint|cv_losses_", "float64"),
        ("map_component_indices_", "integers"),
        ("map_.*|rows", "numbers"),
        ("targets_labels", "int32"),
        ("targets_(offsets|label_offsets|edge_offsets)", "integers"),
        ("targets_.*", "numbers"),
    )

    @classmethod
    def from_file(
        cls, meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any = None
    ) -> Any:
        """Return the model of a file, from its contents; :func:`structsolve.load` calls it.

        Parameters
        ----------
        meta : dict
            The file's numbers and names.
        arrays : dict of str to ndarray
        kernel : callable, optional
            The kernel of a model trained with a function.

        Returns
        -------
        ConditionalRiskMinimizer

        Raises
        ------
        ValueError
            If parts of the file do not fit together.
        """
        return load(cls, meta, arrays, kernel)

    # -- parts of the above ---------------------------------------------------------------------

    def _check_settings(self) -> list[float]:
        if not is_auto(self.alpha):
            _check_alphas([self.alpha], "alpha")
        alphas = [] if self.alphas is None else _check_alphas(self.alphas)
        effective_jobs(self.n_jobs)
        check_class_weight(self.class_weight)
        if self.cv is not None and (not isinstance(self.cv, (int, np.integer)) or self.cv < 2):
            raise ValueError(f"cv is {self.cv!r}, expected None or an integer >= 2")
        check_types(self)
        if not isinstance(self.random_state, np.random.RandomState):  # which it would advance
            generator_of(self.random_state)
        self._check_map()
        if self.joint_kernel is not None:
            if self.kernel is None:
                raise ValueError("joint_kernel needs a kernel of examples, found kernel=None")
            if self.alphas is not None and self.cv is None:
                raise ValueError(
                    "alphas with a joint kernel: leaving out one example at a time is not "
                    "available; set cv=, a number of folds"
                )
        return alphas

    def _fitted_kernel(self, kernel: Any, rows: Any) -> Any:
        kernel = kernel.fitted(rows)
        if kernel.gamma is not None and self.kernel == "rbf" and not self.kernel_params:
            kernel = kernel.with_gamma(kernel.gamma * widening(rows))
        if kernel.gamma is not None:
            self.gamma_ = kernel.gamma
        return kernel

    def _can_be_mapped(self) -> bool:
        named = isinstance(self.kernel, str) and self.kernel != PRECOMPUTED
        return named and self.joint_kernel is None

    def _check_map(self) -> None:
        given = self.feature_map
        if given is None or is_auto(given):
            return
        if not isinstance(given, str):
            if self.kernel is not None:
                raise ValueError(f"feature_map replaces kernel={self.kernel!r}: set kernel=None")
            return
        if not _is_named(given):
            raise ValueError(
                f"feature_map is {given!r}, expected a transformer, {AUTO!r}, 'nystroem:N' or "
                "'rff:N', such as 'nystroem:300', or None"
            )
        if not self._can_be_mapped():
            raise ValueError(
                f"feature_map is {given!r}, features for a kernel by its name; found "
                f"kernel={self.kernel!r}" + (" with joint_kernel" * (self.joint_kernel is not None))
            )
        if given.startswith("rff") and (
            self.kernel != "rbf" or set(self.kernel_params or {}) - {"gamma"}
        ):
            raise ValueError(
                f"feature_map is {given!r}, which is for kernel 'rbf', with only gamma; found "
                f"kernel={self.kernel!r}, kernel_params={self.kernel_params!r}"
            )

    def _map_of(self, kernel: Any, rows: Any) -> Any:
        """Return features that stand for the kernel; tell so where nobody asked for them."""
        from sklearn.kernel_approximation import Nystroem, RBFSampler  # heavy

        name, _, count = str(self.feature_map).partition(":")
        if name == AUTO:
            text = (
                f"kernel {self.kernel!r} by {LANDMARKS} Nystroem features, as there are "
                f"{rows.shape[0]} examples, more than {MOST_EXACT}; feature_map=None takes the "
                "kernel itself"
            )
            stage(0, type(self).__name__, text)
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**31))
        own = {"n_components": int(count or LANDMARKS), "random_state": seed}
        if name == "rff":
            gamma = kernel.params["gamma"]
            return RBFSampler(gamma=1.0 / rows.shape[1] if gamma is None else gamma, **own)
        return Nystroem(kernel=self.kernel, **kernel.params, **own)

    def _become_fitted(self, space: Any, targets: Any, smoother: Any, rows: Any) -> None:
        for name in ("cv_losses_", "classes_"):
            self.__dict__.pop(name, None)
        self.space_, self._targets = space, targets
        self._forget_operators()
        self._smoother, self._train_rows = smoother, rows
        self._joint = self._costs = None
        if self.joint_kernel is not None:
            self._joint = self._make_joint(smoother)
            self._costs = self._part_costs()
        if hasattr(space, "classes_"):
            self.classes_ = space.classes_
        self.n_features_in_ = space.layout.n_features


def _is_named(feature_map: Any) -> bool:
    """Return whether features for a kernel are named, with their number.

    >>> _is_named("nystroem:300"), _is_named("rff:0"), _is_named("auto")
    (True, False, False)
    """
    name, _, count = feature_map.partition(":") if isinstance(feature_map, str) else ("", "", "")
    return name in ("nystroem", "rff") and count.isdecimal() and int(count) > 0


def _check_alphas(alphas: Any, what: str = "alphas") -> list[float]:
    """Return regularisation constants as floats; refuse those not finite or not positive."""
    values = np.atleast_1d(np.asarray(alphas))
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iuf":
        if what == "alpha":
            raise ValueError(f"alpha is {alphas[0]!r}, expected a number > 0 or 'auto'")
        raise ValueError(f"{what} is {alphas!r}, expected numbers > 0")
    wrong = np.flatnonzero(~np.isfinite(values) | (values <= 0))
    if wrong.size:
        raise ValueError(f"{what}: found {values[wrong[0]]}, expected a finite number > 0")
    return [float(a) for a in values]
