"""DaskStructuredSVM: StructuredSVM on partitioned data on many machines."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .. import registry
from ..estimators.alpha import alpha_of, chosen_alpha, effective, feature_square, steepness
from ..estimators.common import check_run_settings, score_sums
from ..estimators.fitting import description_of
from ..estimators.structured_svm import StructuredSVM
from ..potentials.model import LinearModel
from ..solvers import ConsensusADMM, CuttingPlane
from ..solvers.base import Solver
from ..solvers.driver import drive
from ..solvers.metric import turned_bytes
from ..solvers.run import Start
from ..structure.ask import make_layout
from ..structure.pack import pack
from ..utils.params import check_count, check_types
from ..utils.suggest import names_parameters
from . import data
from .cluster import DaskEngine, find_client, gathered, refuse_too_large, workers_of
from .consensus import ShardedConsensusRun
from .cuts import ShardedCuttingPlaneRun
from .plugins import check_workers
from .problem import RemoteProblem

# Number of shards from which cutting planes need fewer rounds, as theirs do not grow with it.
MANY_SHARDS = 100


class DaskStructuredSVM(BaseEstimator):
    """:class:`~structsolve.StructuredSVM` on the partitions of Dask collections.

    The examples are split into ``n_shards`` shards, which are kept on the workers.  Shards are
    fixed, so the result is the same, bit for bit, for any number of workers and if workers die (on
    machines of one kind).

    Parameters
    ----------
    structure : str or Structure, default="chain"
        Kind of output, as of :class:`~structsolve.StructuredSVM`.
    surrogate : str or object, default="margin"
    loss : str or object, default="auto"
    solver : str, ConsensusADMM or CuttingPlane, default="auto"
        "admm" (``ConsensusADMM(metric="auto")``, see
        :class:`~structsolve.solvers.ConsensusADMM`), or "cutting-plane" for constraints on the
        weights, free intercepts, surrogates without a dual and hundreds of shards; "auto" chooses
        between them.
    oracle : str or structsolve.lp.Backend, optional
        Linear programs that replace the structure's oracle.
    n_shards : int, default=16
        At least the number of the workers' threads. The result depends on it, within ``tol``.
    alpha : float or "auto", default="auto"
        Regularisation; "auto" as of :class:`~structsolve.StructuredSVM`, from a round over all
        shards.
    max_iter : int, default=200
        Maximum number of rounds.
    tol : float, default=1e-2
        Stop at a certified duality gap of ``tol`` times the primal.
    fit_intercept : bool, default=True
    penalize_intercept : bool, default=True
        False leaves the bias out of the regulariser (cutting planes).
    callbacks : list of callable, optional
        Each is called after every round, as of :class:`~structsolve.StructuredSVM`.
    checkpoint : path, optional
        File for the state of all shards during training; training resumes from it, bit for bit.
    client : distributed.Client, optional
        By default the current one.
    n_jobs : int or None, default=1
        Threads of a task for passes at fixed weights.
    random_state : int, default=0
    verbose : int, default=0
        1 shows a progress bar, 2 a line per round.

    Attributes
    ----------
    alpha_ : float
        The regularisation constant of training.
    history_ : list of dict
        A record per round, as of :class:`~structsolve.StructuredSVM`.
    n_iter_ : int
    stop_reason_ : str
    coef_ : dict of str to ndarray
    classes_ : ndarray
    n_features_in_ : int
    feature_names_in_ : ndarray, where X is a data frame
    space_ : Space
    memory_ : dict of str to int
        Bytes of the shards, and of the weights here.
    solver_ : Solver
        The solver that ran.

    Examples
    --------
    >>> from structsolve.dask import DaskStructuredSVM
    >>> model = DaskStructuredSVM("multiclass", n_shards=2)
    >>> import dask.array as da                                       # doctest: +SKIP
    >>> from distributed import Client                                # doctest: +SKIP
    >>> client = Client()                                             # doctest: +SKIP
    >>> X, y = da.random.normal(size=(1000, 5), chunks=(250, 5)), da.ones(1000, chunks=250)
    ... # doctest: +SKIP
    >>> model.fit(X, y).predict(X).compute().shape                    # doctest: +SKIP
    (1000,)
    """

    @names_parameters
    def __init__(
        self,
        structure: Any = "chain",
        *,
        surrogate: Any = "margin",
        loss: Any = "auto",
        solver: Any = "auto",
        oracle: Any = None,
        n_shards: int = 16,
        alpha: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-2,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        callbacks: Any = None,
        checkpoint: Any = None,
        client: Any = None,
        n_jobs: int | None = 1,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.structure, self.surrogate, self.loss, self.solver = structure, surrogate, loss, solver
        self.oracle, self.n_shards, self.alpha, self.max_iter = oracle, n_shards, alpha, max_iter
        self.tol, self.fit_intercept = tol, fit_intercept
        self.penalize_intercept, self.callbacks = penalize_intercept, callbacks
        self.checkpoint, self.client, self.n_jobs = checkpoint, client, n_jobs
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DaskStructuredSVM:
        """Train.

        Parameters
        ----------
        X : dask bag, array or data frame, or list of Delayed or Future
            Examples as :class:`~structsolve.StructuredSVM` takes them, in partitions.
        y : the same, optional
            Labels, in as many partitions; None if X holds pairs (x, y), or a pair (X, y) in each
            delayed partition.
        sample_weight : the same, optional
            Weight of each example in the mean.

        Returns
        -------
        DaskStructuredSVM
            Itself.

        Raises
        ------
        ImportError
            If dask is not installed.
        ValueError, TypeError
            If a shard is wrong (named, with the example), workers lack a plugin, or there is no
            client.
        MemoryError
            If the shards do not fit the workers' memory.
        """
        plain = self._plain()
        plain._check_settings()
        check_run_settings(self)
        check_types(self)
        check_count("n_shards", self.n_shards)
        solver = self._solver()
        client = find_client(self.client)
        check_workers(client)
        problem, digest = self._distribute(client, data.aligned(X, y, sample_weight), solver)
        if solver is None:
            solver = self._choose(problem)
        seed = np.random.default_rng(self._seed())
        self.alpha_ = chosen_alpha(self, problem, _alpha_of)
        start = Start(problem, self.alpha_, seed, self.n_jobs or 1, None, float(self.tol))  # type: ignore[arg-type]
        run: Any
        if isinstance(solver, ConsensusADMM):
            run = ShardedConsensusRun(solver, start)
            if run.metric is not None:
                needed = problem.nbytes + turned_bytes(problem.n_nodes, problem.space.layout)
                instead = ", or ConsensusADMM(metric='identity'), which does not scale features"
                refuse_too_large(client, needed, instead)
        else:
            run = ShardedCuttingPlaneRun(solver, start)
        outcome = drive(
            run,
            int(self.max_iter),
            float(self.tol),
            verbose=self.verbose,
            description=problem.space.structure.name,
            callbacks=self.callbacks,
            checkpoint=self.checkpoint,
            fingerprint=self._fingerprint(solver, digest, problem.space),
        )
        plain.solver_, plain.alpha_, self.solver_ = solver, self.alpha_, solver
        plain._finish(problem.space, outcome, problem.model(outcome.w))
        plain.memory_ = self.memory_ = run.memory()
        self._local = plain
        plain._remember_names(getattr(X, "_meta", None))  # of a data frame
        own = "history_", "n_iter_", "stop_reason_", "coef_", "classes_", "space_"
        for name in (*own, "n_features_in_", "feature_names_in_"):
            if hasattr(plain, name):
                setattr(self, name, getattr(plain, name))
            else:
                self.__dict__.pop(name, None)
        return self

    def to_local(self) -> StructuredSVM:
        """Return the model as a plain estimator, which needs no cluster.

        Returns
        -------
        StructuredSVM
            Fitted; it predicts, saves and has ``history_``.
        """
        check_is_fitted(self, "_local")
        model = clone(self._local)
        model._become_fitted(self.space_, LinearModel(self.space_, self._local.flat_weights()))
        kept = "history_", "n_iter_", "stop_reason_", "solver_", "memory_", "metadata_", "alpha_"
        for name in (*kept, "feature_names_in_"):
            if hasattr(self._local, name):
                setattr(model, name, getattr(self._local, name))
        return model

    def predict(self, X: Any) -> Any:
        """Return the best label of every example, lazily.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        dask bag, array or list of Delayed
            As X is; a data frame gives a list.
        """
        import dask  # need not be installed

        model = self._sent()
        if hasattr(X, "map_blocks") and hasattr(X, "chunks"):
            return self._predict_array(X, model)
        if hasattr(X, "map_partitions") and not hasattr(X, "columns"):
            return X.map_partitions(_predicted, model)
        return [dask.delayed(_predicted)(part, model) for part in data.partitions(X, "X")]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return ``1 - mean loss per part`` over all partitions, lazily.

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`

        Returns
        -------
        Delayed
            It computes a float.
        """
        import dask  # need not be installed

        model = self._sent()
        parts = data.aligned(X, y, sample_weight)
        sums = [dask.delayed(_scored)(part, model) for part in parts]
        return dask.delayed(_mean)(sums)

    # -- parts of the above -----------------------------------------------------------------------

    def _plain(self) -> StructuredSVM:
        """Return the estimator of one machine with the same settings."""
        names = set(StructuredSVM._get_param_names()) & set(self._get_param_names())
        own = self.get_params(deep=False)
        return StructuredSVM(
            **{name: own[name] for name in names - {"solver", "checkpoint", "callbacks"}}
        )

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)) and self.random_state >= 0:
            return int(self.random_state)
        raise ValueError(
            f"random_state is {self.random_state!r}, expected an integer >= 0: every shard draws "
            "its orders from it"
        )

    def _solver(self) -> ConsensusADMM | CuttingPlane | None:
        """Return the solver that was named; None for "auto"."""
        named: dict[str, Any] = {
            "auto": None,
            "admm": ConsensusADMM(metric="auto"),
            "cutting-plane": CuttingPlane(),
        }
        if isinstance(self.solver, str) and self.solver in named:
            return named[self.solver]
        if isinstance(self.solver, (ConsensusADMM, CuttingPlane)):
            check_types(self.solver, f"{type(self.solver).__name__}: ")
            return self.solver
        raise ValueError(
            f"solver is {self.solver!r}, expected one of {[*named]}, a ConsensusADMM or a "
            "CuttingPlane"
        )

    def _choose(self, problem: RemoteProblem) -> ConsensusADMM | CuttingPlane:
        surrogate = problem.surrogate
        duals = surrogate.affine and problem.penalty is None
        return (
            ConsensusADMM(metric="auto")
            if duals and self.n_shards < MANY_SHARDS
            else CuttingPlane()
        )

    def _distribute(
        self, client: Any, parts: list[Any], solver: Solver | None
    ) -> tuple[RemoteProblem, str]:
        """Build the shards on the workers; return the problem over them, and a digest of them."""
        import dask  # need not be installed

        n_shards = int(self.n_shards)
        carried = registry.carried_plugins()
        settings = {
            "structure": self.structure,
            "fit_intercept": bool(self.fit_intercept),
            "plugins": carried,
        }
        lazy = []
        for k, pieces in enumerate(data.plan(len(parts), n_shards)):
            own = [parts[p] for p, _, _ in pieces]
            lazy.append(dask.delayed(data.assemble)(k, own, [piece[1:] for piece in pieces]))
        raw = client.compute(lazy)
        learned = [client.submit(data.learn, r, k, settings, pure=False) for k, r in enumerate(raw)]
        facts = gathered(client, learned, "reading a partition")
        classes = data.union(facts)
        refuse_too_large(client, sum(fact["nbytes"] for fact in facts))
        space = facts[0]["space"]
        if hasattr(space, "joined"):
            space = space.joined([fact["learned"] for fact in facts], classes)
        elif classes is not None:
            wider = client.submit(data.widen, raw[0], classes, settings, pure=False)
            space = gathered(client, [wider], "reading a partition")[0]
        total = float(sum(fact["weight"] for fact in facts))
        made = {
            "space": space,
            "plugins": carried,
            "loss": self._plain()._task_loss(space),
            "surrogate": self.surrogate,
            "penalize_intercept": bool(self.penalize_intercept),
            "oracle": self.oracle,
            "gram": not isinstance(solver, CuttingPlane),
            "seed": self._seed(),
        }
        workers = [*workers_of(client)]  # empty while the last one that was lost starts again
        shards = []
        for k, r in enumerate(raw):
            place = [workers[k % len(workers)]] if workers else None
            weight = total, facts[k]["weight"]
            pinned = {"workers": place, "allow_other_workers": workers != [], "pure": False}
            shards.append(client.submit(data.build, r, k, weight, made, **pinned))
        del raw, learned, lazy
        from distributed import wait  # need not be installed

        wait(shards)
        engine = DaskEngine(client, shards)
        told = engine.ask("facts").each
        digest = hashlib.sha256("".join(fact["fingerprint"] for fact in told).encode()).hexdigest()
        return RemoteProblem(engine, space, told, bool(self.penalize_intercept)), digest

    def _fingerprint(self, solver: Solver, digest: str, space: Any) -> str:
        described = {
            "shards": digest,
            "surrogate": description_of(self.surrogate),
            "loss": description_of(self._plain()._task_loss(space)),
            "solver": [solver.name, description_of(solver)],
            "alpha": repr(self.alpha_),
            "random_state": self._seed(),
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    def _sent(self) -> Any:
        """Return the plain model as something that tasks share."""
        import dask  # need not be installed

        return dask.delayed(self.to_local(), name=f"structsolve-model-{uuid4()}", traverse=False)

    def _predict_array(self, X: Any, model: Any) -> Any:
        if X.ndim > 1:
            X = X.rechunk({axis: -1 for axis in range(1, X.ndim)})
        space = self.space_
        sets = getattr(space.structure, "label_sets", False)
        if not sets and not registry.label_kind(space.structure)[0]:
            raise TypeError(
                f"X is a dask array, whose labels under {space.structure.name!r} are none; give a "
                "bag or a list of delayed partitions"
            )
        none = np.empty((0, len(self.classes_)), np.int64)
        if not sets:  # one label of each row, which is a row of levels if y was a table
            one = pack(space, np.zeros((1, space.layout.n_features)))
            label = self._local._best_labels(self._local._model, space, one, True)
            none = np.asarray(space.unpack(label, one))[:0]
        axes: dict[str, Any] = {"drop_axis": list(range(1, X.ndim))}
        if none.ndim > 1:
            axes = {"chunks": (X.chunks[0], none.shape[1:])}
        meta = np.empty((0,), dtype=none.dtype)
        return X.map_blocks(_predicted, model, none, meta=meta, dtype=none.dtype, **axes)


# The functions below run on workers.


def _predicted(part: Any, model: StructuredSVM, none: Any = ()) -> Any:
    values = part if hasattr(part, "columns") else data.read_column(part)
    return model.predict(values) if data.size_of(values) else none


def _scored(part: tuple[Any, Any, Any], model: StructuredSVM) -> tuple[float, float]:
    X, y, weights = data.read_part(part)
    if not data.size_of(X):
        return 0.0, 0.0
    if hasattr(part[0], "columns"):
        model._check_names(part[0])
    space, dense = model.space_, model._model.check_input(X)
    examples = pack(space, X, y, weights, unseen="extra")
    labels = model._best_labels(model._model, space, examples, dense)
    loss = model._asked("loss", model._scored_loss(space), space)(make_layout(space, examples))
    return score_sums(loss, examples, labels)


def _mean(sums: list[tuple[float, float]]) -> float:
    total = sum(weight for _, weight in sums)
    if not total > 0:
        raise ValueError("y: every label is void or weighs nothing, expected some to score by")
    return 1 - sum(lost for lost, _ in sums) / total


def _alpha_of(problem: RemoteProblem, n_jobs: int) -> float:
    """Return what alpha="auto" is, as of :func:`~structsolve.estimators.alpha.default_alpha`."""
    g, value, square = problem.engine.ask("at_zero", n_jobs).sums
    counts = effective(problem, *problem.weighed)
    alpha = alpha_of(feature_square(problem, g), float(square), float(value), *counts)
    return alpha / steepness(problem, float(value))
