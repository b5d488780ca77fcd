"""Twin neural network regression: the main estimator, trained on pairs of points."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_array, check_is_fitted

from twinedge.anchors.rows import assign
from twinedge.budget import Model, twin_bytes
from twinedge.budget.limits import narrowed
from twinedge.budget.model import TARGET_BINS
from twinedge.defaults import ANCHORS, MAP_BINS, MAP_EXTRA, NEIGHBORS
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError, wrong_value
from twinedge.estimators.anchored import AnchoredRegressor, Anchors, Chosen
from twinedge.estimators.difficulty import learn_difficulty, predict_left_out, trust_between
from twinedge.estimators.inputs import PrecisionWarning, check_precision
from twinedge.estimators.loops import SemiSupervisedTask
from twinedge.estimators.networks import NetworkRegressor, Points, Validation
from twinedge.estimators.ordinary import AnnRegressor
from twinedge.estimators.targets import (
    anchors_of,
    folds_of,
    join_targets,
    model_of,
    number_of,
    split_targets,
)
from twinedge.notebook import describe_intervals, describe_networks, facts_table
from twinedge.progress import Progress, progress_bar
from twinedge.scoring.calibration import USUAL_TRUST, CalibrationRows, adapted, calibrate
from twinedge.scoring.scores import check_targets
from twinedge.scoring.weights import mean_and_std, of_rows, relative
from twinedge.training.input_map import choose_knots
from twinedge.training.network import Architecture, FloatArray
from twinedge.training.pairs import ExtraPairs, differences, partners_of, signals
from twinedge.training.parameters import (
    is_auto,
    nonnegative_number,
    one_of,
    positive_integer,
    row_number,
    seed_of,
    shape_of,
)
from twinedge.training.selection import (
    LONG_ENOUGH,
    MAPPED,
    MOST_BINS,
    SETTINGS,
    LeftOut,
    Settings,
    usual_map,
)
from twinedge.training.tasks import MapPlan, PairTask, Task
from twinedge.training.trainer import DivergedError
from twinedge.wording import listed

# What follows the training, and about how many seconds it takes.
_AFTERWARDS = {
    "Measuring the validation error": 1.0,
    "Learning how large errors are": 3.0,
    "Predicting groups left out": 0.0,
    "Calibrating intervals": 2.0,
}
_PER_GROUP = 1.5  # seconds for each fold of groups left out


class TwinRegressor(AnchoredRegressor, NetworkRegressor):
    """Predict differences of targets, and from them the target itself.

    A twin network F is trained on pairs of points, F(x_i, x_j) = y_i - y_j. Each training point
    (an *anchor*) then gives an estimate of an unknown target, F(x, anchor) + y_anchor; their mean
    is the prediction and their standard deviation an uncertainty.

    Parameters
    ----------
    twins : "auto" or int, default="auto"
        Number of networks. With ``anchors="all"`` every twin uses every anchor; a smaller set of
        anchors is shared among them, so that the number of estimates stays the same. "auto" is
        four, or one if ``hidden`` is given.
    hidden : "auto", int or tuple of int, default="auto"
        Widths of the hidden layers; an int means one layer. "auto" is (56, 56), or (128, 128) for a
        single twin: four small twins in the same bytes are more accurate, at a fifth of the work.
    activation : {"auto", "relu", "silu"}, default="auto"
        Activation of the hidden layers; "auto" chooses on validation data.
    input_map : "auto", "none" or int, default="auto"
        A curve for each feature in front of the networks, which all of them share and which is
        learnt with them: for targets that jump or bend sharply along a feature. A number is how
        many straight pieces a curve has, at most; "auto" chooses on folds of the training points
        between a map and none, if they are trained for at least 8,000 steps. With ``hidden="auto"``
        the layers are narrower then, so that a pack does not become larger; if ``hidden`` is given,
        "auto" goes without. Neighbors exclude a map.
    pairs : "all", "neighbors" or int, default="all"
        What to train on: any two points; a point and one of its nearest; or a point and one of this
        many others, drawn once (the paper's training-set multiplier).
    neighbors : int, default=32
        How many neighbors ``pairs="neighbors"`` uses, in training and prediction.
    anchors : "auto", "all", int or array of int, default="auto"
        Training points that predict: all, but only 256 at random if there are thousands ("auto");
        always all; this many at random; or these rows of ``anchor_X_``.
    loop_weight : float, default=0.0
        Weight of loop consistency on the unlabelled points given to ``fit``: it times the mean
        square of F(a, b) + F(b, c) + F(c, a), divided by 9, is added to the loss.
    learning_rate, weight_decay : "auto" or float, default="auto"
        Settings of AdamW; "auto" chooses on validation data.
    effort : {"quick", "normal", "thorough"}, default="normal"
        How long to search and train.
    steps : "auto" or int, default="auto"
        Steps of the last training; "auto" goes by ``effort``.
    intervals : bool, default=True
        Learn how large an error to expect, and calibrate intervals on the validation data.
    impute : {None, "median"}, default=None
        Fill in missing features (NaN) with the median of the training points, or their most
        frequent level, in training and prediction, and on the device; None refuses them.
    teachers : "auto", None, or list of str and regressors, default="auto"
        Models that teach the networks in addition to the training points: "networks" (those used to
        choose settings), "trees" (extra trees), "boosting", "gp" (a Gaussian process), or any
        scikit-learn regressor, which sees features in their own units. A fitted one is used as it
        is and weighed on the validation points. "auto" uses all four, unless the effort is "quick"
        or ``steps`` is a number. Their predictions are used if they show that the target is noisy,
        unless validation points are clearly against it. Neighbors, multipliers and unlabelled
        points exclude teachers.
    target_curve : {"none", "log", "log1p", "sqrt", "auto"}, default="none"
        What the networks learn in place of the target, for one whose errors grow with its size: its
        logarithm ("log", of targets above 0), that of 1 + y ("log1p") or its root ("sqrt").
        Predictions and intervals are brought back to the target's own units: an interval covers as
        often, but a prediction is then the median of what to expect, which for a skewed target is
        below the mean. "auto" chooses between "none", "sqrt" and "log" on folds of the training
        points, by the error in units of the target, if no target is negative and their skewness is
        above 1.
    validation_fraction : float, default=0.125
        Share of the data held out for choices if ``fit`` is given no validation data.
    n_jobs : int or None, default=None
        How many stacks of networks, or folds of teachers, train at a time: None is 1 unless a
        ``joblib.parallel_config`` says otherwise, -1 is one per core. The model is the same.
    random_state : int, RandomState or None, default=None
        The same number gives the same model on the same machine.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of the training points.
    feature_names_in_ : array of str
        Names of these columns, if they have any.
    encoding_ : Encoding
        How they become inputs: a column of numbers is one input, a category one for each level.
    fill_values_ : array of shape (inputs,), or None
        What replaces missing inputs; None if they are refused.
    weights_ : array of shape (twins, size)
        Weights of the networks, laid out as ``architecture_`` says.
    anchor_X_, anchor_y_ : array of shape (n, inputs), (n,)
        Training points, in their own units. Of several targets, ``anchor_y_`` has shape ``(n, m)``,
        and is NaN where one was not measured.
    target_names_ : tuple of str
        Names of the targets.
    scaling_ : Scaling
        Shift and scale of features and target, and the target's curve.
    target_curve_ : {"none", "log", "log1p", "sqrt"}
        The curve of the target that was chosen.
    map_ : InputMap or None
        The curves in front of the networks.
    input_map_ : int or "none"
        Straight pieces of a curve, at most, that were chosen.
    validation_ : (X, y)
        Points the settings were chosen on (the training points if nothing was held out).
    validation_rmse_ : float
        Error on them, in units of the target; of several targets an array ``(m,)``.
    sharing_ : list of dict, or None
        Of several targets: for each, the error on training rows that networks did not see, of
        ``shared`` networks and of networks that learn it ``alone``, and whether it ``suffers`` from
        sharing by more than 2 %; None for one that too few rows measured. None if there is one
        target, or if settings were not compared for at least 8,000 steps.
    sample_weights_, validation_weights_ : array of shape (n,), (v,), or None
        Weights of the training and of the validation points, on average 1; None if all count alike.
    difficulty_ : array of shape (twins, width + 1), or None
        The second output of each network: weights of the last hidden layer, and a bias. This and
        the next three are tuples of as many as there are targets, if there are several.
    trust_ : float
        How far points measured on site are trusted: learnt from ``groups``, 0.4 without.
    calibration_ : Calibration or None
        Turns predictions into intervals; None if there were too few validation points.
    left_out_ : CalibrationRows or None
        Errors of networks that did not see a training point's group, if there were too few
        validation groups for choices and intervals.
    trials_ : list of dict
        Every network that was trained, with its validation error.
    curve_choice_ : dict or None
        How ``target_curve="auto"`` chose: the skewness of the training targets and, if that is
        high, the error of each curve in units of the target (``rmse``), how much smaller the mean
        square is than without a curve, as a share (``gain``), and the standard error of that
        (``gain_error``). None if it was not left to be chosen.
    teaching_ : dict or None
        Who taught (``teachers``, each with its error on points that it did not see and its weight),
        the error of all together in standard deviations of the target (``noise``), whether their
        predictions were used (``taught``), and the ``share`` of the points' own targets. None
        without teachers.

    Examples
    --------
    >>> import numpy as np
    >>> from twinedge import TwinRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = TwinRegressor(hidden=(16,), activation="silu", learning_rate=0.01,
    ...                       weight_decay=0.003, steps=2000, random_state=0)
    >>> y, std = model.fit(X, np.sin(3 * X[:, 0])).predict([[0.5]], return_std=True)
    >>> bool(abs(y[0] - np.sin(1.5)) < 0.05)
    True
    """

    input_map_: int | str = "none"
    validation_rmse_: Any
    difficulty_: Any = None
    left_out_: Any = None
    trust_: Any = USUAL_TRUST

    def __init__(
        self,
        *,
        twins: int | str = "auto",
        hidden: int | tuple[int, ...] | str = "auto",
        activation: str = "auto",
        input_map: int | str = "auto",
        pairs: str | int = "all",
        neighbors: int = NEIGHBORS,
        anchors: Anchors = "auto",
        loop_weight: float = 0.0,
        learning_rate: float | str = "auto",
        weight_decay: float | str = "auto",
        effort: str = "normal",
        steps: int | str = "auto",
        teachers: Any = "auto",
        target_curve: str = "none",
        intervals: bool = True,
        impute: str | None = None,
        validation_fraction: float = 0.125,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.twins = twins
        self.hidden = hidden
        self.activation = activation
        self.input_map = input_map
        self.pairs = pairs
        self.neighbors = neighbors
        self.anchors = anchors
        self.loop_weight = loop_weight
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.effort = effort
        self.steps = steps
        self.teachers = teachers
        self.target_curve = target_curve
        self.intervals = intervals
        self.impute = impute
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        validation: Validation = None,
        groups: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        encoding: Encoding | None = None,
        unlabelled: npt.ArrayLike | None = None,
        extra: ExtraPairs | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> "TwinRegressor":
        """Train on all pairs of these points, drawn on the fly.

        Parameters
        ----------
        X : array of shape (n, features), or data frame
            Training points; all of them may become anchors. A data frame may have columns of names
            or categorical columns: each level becomes an input.
        y : array of shape (n,) or (n, m)
            Their targets: one, or 2 to 8 that share the hidden layers. Of several, a cell is NaN
            where a target was not measured: pairs with that row do not count for it. A single
            column is one target, as for most regressors of scikit-learn.
        validation : (X, y), (X, y, groups) or (X, y, groups, sample_weight), optional
            Points to choose settings on; by default a part of ``X`` is held out. Their groups may
            be None; without weights they all count alike.
        groups : array of shape (n,), optional
            Which rows belong together: a batch, a machine, a hull. They are always held out
            together, so that the model's scores, and how far it trusts points measured on site,
            hold for groups that it never saw.
        times : array of shape (n,), optional
            When each row was measured: ``datetime64``, numbers, or texts such as 2024-01-31 09:30.
            The newest rows are then held out for choices, and folds are blocks of time, so that
            errors and intervals hold for the future. Not with ``groups``.
        sample_weight : array of shape (n,), optional
            How much each row counts, at least 0; by default all count alike. Only ratios matter. A
            row is drawn in proportion to its weight, so that a pair counts as much as the weights
            of its points multiplied, and counts as much as an anchor. Errors and intervals on rows
            that were held out are weighted, too. Rows of weight 0 are left out.
        encoding : Encoding, optional
            Columns that the features were made of, if they are already encoded.
        unlabelled : array of shape (u, features), optional
            Points without targets: loops go through at least one of them, and through all training
            points alike. They are ignored with ``loop_weight=0``.
        extra : ExtraPairs, optional
            More pairs to train on, each as likely to be drawn as a pair of training points of mean
            weight.
        checkpoint : path, optional
            Folder to keep the state of the training in.
        resume : bool
            Continue from what that folder holds.
        """
        twins, seed = self._shape()[0], seed_of(self.random_state)
        train, held = self._prepare(X, y, validation, seed, groups, encoding, sample_weight, times)
        for remark in check_precision(*train, self.encoding_, self.target_names_):
            warnings.warn(remark, PrecisionWarning, stacklevel=2)
        assign(self.anchors, len(train[1]), twins)  # fail now, not after the training
        table = self._scale(train, held)
        partners = partners_of(table["x"][: len(train[1])], self.pairs, self.neighbors, seed)
        neighbors = self.neighbors if self.pairs == "neighbors" else None
        task = PairTask(**table, foldable=partners is None, partners=partners, neighbors=neighbors)
        task = self._beside(task, unlabelled, extra)
        with progress_bar(self.verbose) as progress:
            progress.plan(_AFTERWARDS)
            with progress.part("Training"):
                choice = self._choose(
                    *(task, train, held),
                    networks=twins,
                    seed=seed,
                    checkpoint=checkpoint,
                    resume=resume,
                )
            self.input_map_ = choice.candidate.bins or "none"
            self.anchor_X_, self.anchor_y_ = train
            self.validation_ = held
            if not len(held[1]):
                self.validation_, self.validation_weights_ = train, self.sample_weights_
            self.validation_rmse_ = choice.score
            self.difficulty_, self.calibration_, self.own_ = None, None, ()
            self.trust_, self.left_out_ = USUAL_TRUST, None
            if self.targets_ > 1:
                self.trust_ = (USUAL_TRUST,) * self.targets_
                self.validation_rmse_ = np.full(self.targets_, choice.score)
            each = self.of_each_target()
            try:
                for target, one in enumerate(each):
                    folds = choice.across
                    if self.targets_ > 1:
                        folds = folds_of(self, target, folds)
                    one._learn_errors(len(held[1]) > 0, folds, seed, progress)
            except KeyboardInterrupt:  # keep the networks, even without scores or intervals
                self.interrupted_ = True
            if self.targets_ > 1:
                join_targets(self, each)
        if not np.isfinite(self.validation_rmse_).all():
            raise DivergedError
        return self

    def of_target(self, target: int | str) -> "TwinRegressor":
        """Return the model of one target, by its number from 0 or its name.

        It predicts as this one does, and all methods are for it that are for a single target.
        """
        check_is_fitted(self)
        number = number_of(self, target)
        return self if self.targets_ == 1 else model_of(self, number)

    def with_all_targets(self) -> "tuple[TwinRegressor, npt.NDArray[np.intp]]":
        """Leave out training points that lack a target, such as anchors of a pack may not.

        Returns
        -------
        model : TwinRegressor
            The same networks; their anchors are the other points.
        rows : array of int of shape (k,)
            Which rows of ``anchor_X_`` these are.
        """
        known = np.isfinite(self.anchor_y_.reshape(len(self.anchor_y_), -1)).all(axis=1)
        rows = np.flatnonzero(known)
        if len(rows) < max(2, self._twins):
            raise InputError(
                f"{len(rows)} training points have all of {self.target_name_}: a pack needs at "
                f"least {max(2, self._twins)}, as each of its anchors has all targets"
            )
        one = copy(self)
        one.anchor_X_, one.anchor_y_ = self.anchor_X_[rows], self.anchor_y_[rows]
        one.groups_ = of_rows(self.groups_, rows)
        one.sample_weights_ = relative(of_rows(self.sample_weights_, rows))
        return one, rows

    def of_each_target(self) -> "list[TwinRegressor]":
        """Return the model of each target."""
        return [self.of_target(number) for number in range(self.targets_)]

    @property
    def coverages(self) -> list[float]:
        """Coverages of the intervals of all targets, ascending; none without intervals."""
        of_each = [getattr(one.calibration_, "quantiles", {}) for one in self.of_each_target()]
        return sorted(set(of_each[0]).intersection(*of_each[1:]))

    def resolved(self) -> Any:
        """Return an unfitted copy with the chosen values in place of "auto"."""
        return super().resolved().set_params(input_map=self.input_map_)

    def facts(self) -> dict[str, Any]:
        """Return what a notebook shows of a fitted model: shape, error, intervals and bytes."""
        check_is_fitted(self)
        shape, errors = self.architecture_, np.atleast_1d(self.validation_rmse_)
        calibration = self.of_target(0).calibration_
        return {
            "target" if self.targets_ == 1 else "targets": self.target_name_,
            "columns": listed(self.encoding_.names),
            "training points": len(self.anchor_y_),
            "networks": describe_networks(self._twins, shape.hidden, shape.activation),
            **({} if self.target_curve_ == "none" else {"target curve": self.target_curve_}),
            "validation error": ", ".join(f"{one:.4g}" for one in errors.tolist())
            if len(errors) > 1
            else float(errors[0]),
            "intervals": describe_intervals(getattr(calibration, "quantiles", ())),
            f"bytes of a pack with {ANCHORS} anchors": self.pack_bytes(),
        }

    def pack_bytes(self, anchors: int = ANCHORS) -> int | None:
        """Bytes of a pack with this many anchors; None if no pack can hold the model.

        With a target curve, about: its bins are counted when it is exported.
        """
        check_is_fitted(self)
        try:
            shape = Model.of(
                self.anchor_X_.shape[1],
                self.architecture_.hidden,
                max(self._twins, min(anchors, len(self.anchor_y_))),
                twins=self._twins,
                activation=self.activation_,
                intervals=bool(self.intervals),
                map_outputs=0 if self.map_ is None else self.map_.outputs,
                map_rows=0 if self.map_ is None else len(self.map_.table),
                target_bins=0 if self.target_curve_ == "none" else TARGET_BINS,
            )
            return twin_bytes(replace(shape, further_bins=(0,) * (self.targets_ - 1)))
        except InputError:
            return None

    def _repr_html_(self) -> str:
        """Show the parameters as scikit-learn does and, once fitted, what the model is."""
        drawn: str = estimator_html_repr(self)
        return drawn + facts_table("Fitted", self.facts()) if hasattr(self, "weights_") else drawn

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _shape(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of twins and the widths of their layers."""
        return shape_of(self.twins, self.hidden)

    def _scale(self, train: Points, validation: Points) -> dict[str, Any]:
        """Fit the scaling, and return arguments of a ``Task``: scaled rows, and maps to try."""
        table = super()._scale(train, validation)
        return {**table, "maps": self._maps(table["x"][: table["train"]])}

    def _kinds(self, task: Task) -> list[tuple[int, Settings]]:
        """Bins of the maps that networks may have, 0 for none, and the settings to try with them.

        Whoever asks for a map and an activation that is not usually tried with it gets both.
        """
        settings = MAPPED if self.activation in ("auto", *MAPPED) else SETTINGS
        mapped = [(bins, settings) for bins in task.maps]
        if not isinstance(self.input_map, str):
            return mapped
        return [*super()._kinds(task), *(mapped if task.has_folds else [])]

    def _maps(self, scaled: FloatArray) -> dict[int, MapPlan]:
        """Return the maps to try for scaled training points ``(n, f)``, by their bins."""
        usual = usual_map(len(scaled))
        bins = MAP_BINS
        if isinstance(self.input_map, str):
            asked = one_of("input_map", self.input_map, ("none", "auto"))
            if asked == "none" or not self._compares_maps(len(scaled)):
                return {}
        else:
            bins = positive_integer("input_map", self.input_map)
            if bins > MOST_BINS:
                raise wrong_value("input_map", bins, f"is more than {MOST_BINS}")
        if self.pairs == "neighbors":
            raise InputError("input_map: neighbors are found without a map; use pairs='all'")
        features, (twins, hidden) = scaled.shape[1], self._shape()
        rows = sum(map(len, choose_knots(scaled, bins)))
        if not rows:
            if is_auto(self.input_map):
                return {}
            raise InputError("input_map: no feature has more than two values, so none has a curve")
        if is_auto(self.hidden):
            hidden = narrowed(features, twins, hidden, features + MAP_EXTRA, rows)
        return {bins: MapPlan(MAP_EXTRA, hidden, usual.pace, usual.decay)}

    def _compares_maps(self, rows: int) -> bool:
        """Whether a map is worth comparing with none, if that is left to be chosen.

        Layers must be free to give way to it, and folds long enough to show what it is worth.
        """
        free = is_auto(self.hidden) and self.activation in ("auto", *MAPPED)
        return free and self.pairs == "all" and self._plan(rows).folds >= LONG_ENOUGH

    def _learn_errors(
        self, has_held: bool, folds: list[LeftOut], seed: int, progress: Progress
    ) -> None:
        """Score the networks, and learn how large an error to expect.

        ``has_held`` says whether validation points are not training points.
        """
        held = self.validation_ if has_held else (self.anchor_X_[:0], self.anchor_y_[:0])
        if has_held and not len(held[1]):  # none of them measured this target
            self.validation_, self.validation_weights_ = (
                (self.anchor_X_, self.anchor_y_),
                self.sample_weights_,
            )
        measuring, learning, leaving_out, calibrating = _AFTERWARDS
        progress.plan({**_AFTERWARDS, leaving_out: _PER_GROUP * len(folds)})
        progress.stage(measuring)
        self.validation_rmse_ = self.rmse(*self.validation_, self.validation_weights_)
        if not self.intervals or not np.isfinite(self.weights_).all():
            return
        progress.stage(learning)
        difficulty = learn_difficulty(self, seed)
        self.trust_ = trust_between(self, seed)
        self.difficulty_ = difficulty
        if folds:
            progress.stage(leaving_out, len(folds))
            self.left_out_ = predict_left_out(self, folds, held[0], seed, progress)
        rows = self.left_out_
        if len(held[1]):
            beside = self.validation_weights_, self.validation_groups_
            rows = CalibrationRows(*self._errors(*held), *beside).joined(self.left_out_)
        if rows is not None:
            progress.stage(calibrating)
            with suppress(InputError):  # too few points, or all with the same error
                self.calibration_ = rows.calibrated(chosen=self.left_out_ is None)

    def _errors(
        self, X: npt.ArrayLike, y: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        """Signals ``(3, n)`` and errors ``(n,)`` of points, and which have a feature outside.

        All are on the target's curve.
        """
        x = self._check(X)
        mean, signals = self.signals(x)
        outside: npt.NDArray[np.bool_] = np.asarray(self.outside(x).any(axis=1))
        return signals, self.scaling_.curved(check_targets(y, len(x))) - mean, outside

    def calibrate(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        chosen: bool = False,
    ) -> None:
        """Recalibrate intervals on points that the networks were not trained on.

        Parameters
        ----------
        X, y : array of shape (n, features), (n,)
            Points and their targets; several targets ``(n, m)`` may hold NaN.
        sample_weight : array of shape (n,), optional
            How much each point counts: an interval covers its share of the weight.
        chosen : bool
            Whether training settings were chosen on these points.

        Raises
        ------
        InputError
            If the model was fitted without intervals, or there is nothing to learn from these
            points; ``calibration_`` stays as it was.
        """
        check_is_fitted(self)
        if self.targets_ > 1:
            X, each = self._check(X), self.of_each_target()
            for one, (rows, values) in zip(each, self._points(X, y), strict=True):
                weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
                one.calibrate(X[rows], values, sample_weight=weights, chosen=chosen)
            self.calibration_ = tuple(one.calibration_ for one in each)
            return
        if self.difficulty_ is None:
            raise InputError("the model was fitted without intervals and cannot be calibrated")
        signals, errors, outside = self._errors(X, y)
        self.calibration_ = calibrate(
            signals, errors, outside=outside, sample_weight=sample_weight, chosen=chosen
        )

    def signals(
        self,
        X: npt.ArrayLike,
        *,
        anchors: Anchors | None = None,
        neighbors: int | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Predictions ``(n,)``, and their spread, asymmetry and difficulty ``(3, n)``.

        All are in units of the target, on its curve if it has one: intervals are calibrated there.
        The model must have been fitted with intervals. Parameters are as in ``predict``.
        """
        return self._signals(X, anchors, neighbors)

    def adapt(self, X: npt.ArrayLike, y: npt.ArrayLike) -> "TwinRegressor":
        """Learn points measured where the model is used, without training again.

        Predictions are shifted by what the model gets wrong at them, as on a device: further, the
        more points there are, and the more that points of one group have in common (``groups`` of
        ``fit``). A point far from what the others and the model allow has no weight. They stay
        until ``forget`` or ``fit``, and are not exported.

        Parameters
        ----------
        X, y : array of shape (n, features), (n,)
            Points and their measured targets; several targets ``(n, m)`` may hold NaN.

        Raises
        ------
        InputError
            If the model has no intervals, which show how far off it usually is.

        Examples
        --------
        >>> import numpy as np
        >>> from twinedge import TwinRegressor
        >>> X = np.random.default_rng(0).random((100, 1))
        >>> model = TwinRegressor(hidden=(16,), effort="quick", steps=500, random_state=0)
        >>> before = model.fit(X, np.sin(3 * X[:, 0])).predict([[0.5]])[0]
        >>> after = model.adapt([[0.4]], [np.sin(1.2) + 0.2]).predict([[0.5]])[0]
        >>> bool(after > before)
        True
        """
        x = self._check(X)
        if self.targets_ > 1:
            pairs = zip(self.of_each_target(), self._points(x, y), strict=True)
            self.own_ = tuple(
                one.adapt(x[rows], values).own_ if len(values) else one.own_
                for one, (rows, values) in pairs
            )
            return self
        y = np.asarray(check_array(check_targets(y, len(x)), ensure_2d=False, dtype=np.float64))
        if self.calibration_ is None:
            raise InputError("the model has no intervals and cannot adapt without them")
        mean, scale = super()._scaled(x, None, None)
        off = self.scaling_.curved(y) - mean
        new = off, off / scale
        self.own_ = (
            tuple(map(np.concatenate, zip(self.own_, new, strict=True))) if self.own_ else new
        )
        return self

    def _anchors_of(self, target: int, anchors: Anchors | None) -> Any:
        return anchors_of(self, target, anchors)

    def _points(self, x: FloatArray, y: npt.ArrayLike) -> list[tuple[Any, FloatArray]]:
        """Split measured targets of points: for each target the rows, and their values."""
        return split_targets(check_targets(y, len(x), self.targets_))

    def forget(self) -> "TwinRegressor":
        """Predict as fitted again, without the points given to ``adapt``."""
        check_is_fitted(self)
        self.own_ = ()
        return self

    def _scaled(
        self, X: npt.ArrayLike, anchors: Anchors | None, neighbors: int | None
    ) -> tuple[FloatArray, FloatArray]:
        mean, scale = super()._scaled(X, anchors, neighbors)
        if not self.own_:
            return mean, scale
        errors, scores = self.own_
        return adapted(self.trust_, errors, scores, mean, scale)

    def single_anchor(self, j: int, *, twin: int = 0) -> AnnRegressor:
        """Turn a twin into the ordinary network it is for one anchor (equation 3 of the paper).

        The anchor's features become part of the first bias, its target part of the last.

        Parameters
        ----------
        j : int
            Row of ``anchor_X_``.
        twin : int
            Which of the twins.

        Returns
        -------
        AnnRegressor
            Fitted; its prediction is F(x, x_j) + y_j.
        """
        check_is_fitted(self)
        self._check_single()
        j = row_number("j", j, len(self.anchor_y_))
        twin = row_number("twin", twin, len(self.weights_))
        inputs = self.architecture_.inputs // 2
        ordinary = Architecture(inputs, self.architecture_.hidden, self.activation_)
        network = np.empty((1, ordinary.size), np.float32)
        parts, own_parts = self.architecture_.parts(self.weights_[twin]), ordinary.parts(network[0])
        for (kernel, bias), (own_kernel, own_bias) in zip(parts, own_parts, strict=True):
            own_kernel[...], own_bias[...] = kernel[: len(own_kernel)], bias
        anchor = self._features(self.anchor_X_[j])
        own_parts[0][1][...] += anchor @ parts[0][0][inputs:]
        own_parts[-1][1][...] += self.scaling_.target(self.anchor_y_[j])
        return AnnRegressor.from_network(
            ordinary, network, self.scaling_, self.encoding_, self.map_
        )

    @property
    def _twins(self) -> int:
        return len(self.weights_)

    def _features(self, x: FloatArray) -> FloatArray:
        """Return points ``(..., f)`` as the networks take them."""
        return self.inputs_of(self.scaling_.features(x))

    def _across(
        self, x: FloatArray, anchors: FloatArray, chosen: Chosen | None = None, *, symmetric: bool
    ) -> Iterator[FloatArray]:
        self._check_single()
        mapped = self._features(x)
        every = np.broadcast_to(mapped, (len(self.weights_), *mapped.shape))
        blocks = differences(
            self.architecture_,
            self.weights_,
            every,
            self._features(anchors),
            chosen,
            symmetric=symmetric,
        )
        for block in blocks:
            yield block * self.scaling_.y_scale

    def _signals(
        self, X: npt.ArrayLike, anchors: Anchors | None, neighbors: int | None
    ) -> tuple[FloatArray, FloatArray]:
        x = self._check(X)
        self._check_single()
        assert self.difficulty_ is not None  # calibration needs it
        points, targets, each, chosen = self._assigned(x, anchors, neighbors)
        mapped = self._features(x)
        blocks = signals(
            self.architecture_,
            self.weights_,
            self.difficulty_,
            np.broadcast_to(mapped, (self._twins, *mapped.shape)),
            self._features(points),
            chosen,
        )
        means, found, start = [], [], 0
        for block in blocks:
            part = slice(start, start + block.shape[2])
            start = part.stop
            difference, asymmetry, hard = block * self.scaling_.y_scale
            weights = None if each is None else each[:, part]
            mean, spread = mean_and_std(difference + targets[:, part], (0, 2), weights)
            means.append(mean)
            found.append(
                [
                    spread,
                    np.sqrt(np.average(np.square(asymmetry), axis=(0, 2), weights=weights)),
                    np.maximum(np.average(hard, axis=(0, 2), weights=weights), 0),
                ]
            )
        return np.concatenate(means), np.concatenate(found, axis=1)

    def _beside(
        self, task: PairTask, unlabelled: npt.ArrayLike | None, extra: ExtraPairs | None
    ) -> PairTask:
        """Add unlabelled points and extra pairs to the task."""
        weight = nonnegative_number("loop_weight", self.loop_weight)
        points = None
        if unlabelled is not None:
            points = self._read(unlabelled)
            points = self.scaling_.features(points) if weight else None
        if points is not None and self.pairs == "neighbors":
            raise InputError(
                "loop_weight: loops join distant points, which a model trained on neighbors cannot "
                "compare; use pairs='all'"
            )
        if extra is not None:
            extra = extra.checked(len(self.encoding_.inputs)).scaled(self.scaling_)
        if points is None and not extra:
            return task
        if task.targets > 1:
            raise InputError(
                "unlabelled points and extra pairs are for a model of one target: leave them out, "
                "or train a model for each target"
            )
        return SemiSupervisedTask.of(task, points, weight, extra)
