"""Twin neural network regression."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from twinedge.learn.ann import AnnRegressor
from twinedge.learn.dealing import deal
from twinedge.learn.estimator import NetworkRegressor, Validation
from twinedge.learn.neighbours import nearest, nearest_others, random_others
from twinedge.learn.network import Architecture, FloatArray
from twinedge.learn.pairwise import differences
from twinedge.learn.parameters import one_of, positive_integer, row_number
from twinedge.learn.tasks import PairTask

Anchors = Literal["all"] | int | npt.ArrayLike


class TwinRegressor(NetworkRegressor):
    """Predict differences of targets, and from them the target itself.

    A twin network F is trained on pairs of points, F(x_i, x_j) = y_i - y_j. Each training point
    (an *anchor*) then gives an estimate of an unknown target, F(x, anchor) + y_anchor; their mean
    is the prediction and their standard deviation an uncertainty.

    Parameters
    ----------
    twins : int, default=1
        Networks trained side by side. With ``anchors="all"`` every twin uses every anchor; a
        smaller set of anchors is dealt out among them, so that the number of estimates stays.
    hidden : tuple of int, default=(128, 128)
        Widths of the hidden layers.
    activation : {"auto", "relu", "silu"}, default="auto"
        Activation of the hidden layers; "auto" chooses on validation data.
    pairs : "all", "neighbors" or int, default="all"
        What to train on: any two points; a point and one of its nearest; or a point and one of so
        many others that are drawn once (the paper's training-set multiplier).
    neighbors : int, default=32
        How many neighbours ``pairs="neighbors"`` takes, in training and prediction.
    anchors : "all", int or array of int, default="all"
        Training points that predict: all, so many at random, or these rows of ``anchor_X_``.
    learning_rate, weight_decay : "auto" or float, default="auto"
        Setting of AdamW; "auto" chooses on validation data.
    effort : {"quick", "normal", "thorough"}, default="normal"
        How long to search and train.
    steps : "auto" or int, default="auto"
        Steps of the last training; "auto" goes by ``effort``.
    validation_fraction : float, default=0.125
        Part of the data held out for choices where ``fit`` is given no validation data.
    random_state : int, RandomState or None, default=None
        The same number gives the same model on the same machine.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    weights_ : array of shape (twins, size)
        Weights of the networks, laid out as ``architecture_`` says.
    anchor_X_, anchor_y_ : array of shape (n, features), (n,)
        Training points, in their own units.
    scaling_ : Scaling
        Shift and scale of features and target.
    validation_rmse_ : float
        Error on the validation data (on the training data where nothing was held out).
    trials_ : list of dict
        Every network that was trained on the way, with its validation error.

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

    anchor_X_: FloatArray
    anchor_y_: FloatArray

    def __init__(
        self,
        *,
        twins: int = 1,
        hidden: tuple[int, ...] = (128, 128),
        activation: str = "auto",
        pairs: str | int = "all",
        neighbors: int = 32,
        anchors: Anchors = "all",
        learning_rate: float | str = "auto",
        weight_decay: float | str = "auto",
        effort: str = "normal",
        steps: int | str = "auto",
        validation_fraction: float = 0.125,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.twins = twins
        self.hidden = hidden
        self.activation = activation
        self.pairs = pairs
        self.neighbors = neighbors
        self.anchors = anchors
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.effort = effort
        self.steps = steps
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        validation: Validation = None,
        *,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> "TwinRegressor":
        """Train on all pairs of these points, drawn on the fly.

        Parameters
        ----------
        X : array of shape (n, features)
            Training points; all of them may become anchors.
        y : array of shape (n,)
            Their targets.
        validation : (X, y), optional
            Points to choose settings on; by default a part of ``X`` is held out.
        checkpoint : path, optional
            Folder to keep the state of the training in.
        resume : bool
            Go on from what that folder holds.
        """
        twins, seed = positive_integer("twins", self.twins), self._seed()
        train, held = self._prepare(X, y, validation, seed)
        deal(self.anchors, len(train[1]), twins)  # refused now, not after the training
        table = self._scale(train, held)
        partners, neighbors = self._partners(table["x"][: len(train[1])], seed)
        task = PairTask(**table, foldable=partners is None, partners=partners, neighbors=neighbors)
        choice = self._choose(task, networks=twins, seed=seed, checkpoint=checkpoint, resume=resume)
        self.architecture_ = task.architecture(self.activation_)
        self.weights_ = choice.weights
        self.anchor_X_, self.anchor_y_ = train
        self.validation_rmse_ = self.rmse(*(held if len(held[1]) else train))
        return self

    def predict(
        self,
        X: npt.ArrayLike,
        return_std: bool = False,
        *,
        anchors: Anchors | None = None,
        neighbors: int | None = None,
        symmetric: bool = True,
    ) -> Any:
        """Mean of the estimates of all anchors (equation 2 of the paper).

        Parameters
        ----------
        X : array of shape (n, features)
            Points to predict.
        return_std : bool
            Give the standard deviation of the estimates too.
        anchors : "all", int or array of int, optional
            Anchors to use instead of those set in the constructor: rows of ``anchor_X_``.
        neighbors : int, optional
            Use only so many anchors nearest to each point. A model trained on neighbours always
            does, by default with the number it was trained on.
        symmetric : bool
            Average F(x, a) and -F(a, x).

        Returns
        -------
        mean : array of shape (n,)
            In units of the target.
        std : array of shape (n,)
            Only if ``return_std``.
        """
        means, stds = [], []
        for block in self._estimates(X, anchors, neighbors, symmetric):
            means.append(block.mean(axis=1))
            stds.append(block.std(axis=1))
        if return_std:
            return np.concatenate(means), np.concatenate(stds)
        return np.concatenate(means)

    def estimates(
        self,
        X: npt.ArrayLike,
        *,
        anchors: Anchors | None = None,
        neighbors: int | None = None,
        symmetric: bool = True,
    ) -> FloatArray:
        """Each ensemble member's estimate, ``(n, members)``; parameters as in ``predict``."""
        return np.concatenate(list(self._estimates(X, anchors, neighbors, symmetric)))

    def loop_violation(self, X: npt.ArrayLike, *, loops: int = 32) -> FloatArray:
        """How far predictions around closed loops are from zero: a second uncertainty.

        For each point the root mean square of F(x, a) + F(a, b) + F(b, x) over ``loops`` random
        pairs of anchors (a, b), ``(n,)`` in units of the target.
        """
        x = self._scaled(self._check(X))
        loops = positive_integer("loops", loops)
        rng = np.random.default_rng(0)
        count = len(self.anchor_y_)
        pairs = np.stack([rng.choice(count, 2, replace=False) for _ in range(loops)])
        a, b = self._scaled(self.anchor_X_[pairs[:, 0]]), self._scaled(self.anchor_X_[pairs[:, 1]])
        leave, back = self._ordered(x, a), self._ordered(b, x).transpose(0, 2, 1)
        across = np.diagonal(self._ordered(a, b), axis1=1, axis2=2)[:, None]
        residual = (leave + across + back).astype(np.float64)
        rms: FloatArray = np.sqrt(np.mean(np.square(residual), axis=(0, 2)))
        return rms * self.scaling_.y_scale

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
        j = row_number("j", j, len(self.anchor_y_))
        twin = row_number("twin", twin, len(self.weights_))
        features = self.n_features_in_
        ordinary = Architecture(features, self.architecture_.hidden, self.activation_)
        network = np.empty((1, ordinary.size), np.float32)
        theirs = self.architecture_.parts(self.weights_[twin])
        mine = ordinary.parts(network[0])
        for (kernel, bias), (own_kernel, own_bias) in zip(theirs, mine, strict=True):
            own_kernel[...], own_bias[...] = kernel[: len(own_kernel)], bias
        anchor = self._scaled(self.anchor_X_[j : j + 1])[0, 0]
        mine[0][1][...] += anchor @ theirs[0][0][features:]
        mine[-1][1][...] += self.scaling_.target(self.anchor_y_[j])
        return AnnRegressor.from_network(ordinary, network, self.scaling_)

    def _check(self, X: npt.ArrayLike) -> FloatArray:
        check_is_fitted(self)
        checked: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        return checked

    def _scaled(self, x: FloatArray) -> FloatArray:
        """Scaled points ``(twins, n, f)``, the same for every twin."""
        scaled = self.scaling_.features(x)
        return np.broadcast_to(scaled, (len(self.weights_), *scaled.shape))

    def _ordered(self, x: FloatArray, anchors: FloatArray) -> FloatArray:
        """F(x, anchor) in this order, ``(twins, n, k)``, scaled."""
        blocks = differences(self.architecture_, self.weights_, x, anchors, symmetric=False)
        return np.concatenate(list(blocks), axis=1)

    def _estimates(
        self, X: npt.ArrayLike, anchors: Anchors | None, neighbors: int | None, symmetric: bool
    ) -> Iterator[FloatArray]:
        """Blocks ``(rows, members)`` of estimates, in units of the target."""
        x = self._scaled(self._check(X))
        rows = deal(
            self.anchors if anchors is None else anchors, len(self.anchor_y_), len(self.weights_)
        )
        points = self.scaling_.features(self.anchor_X_)[rows]
        targets = self.anchor_y_[rows]
        if neighbors is None and self.pairs == "neighbors":
            neighbors = self.neighbors
        chosen = None
        if neighbors is not None:
            neighbors = positive_integer("neighbors", neighbors)
            chosen = np.stack([nearest(mine, x[0], neighbors) for mine in points])
        start = 0
        for block in differences(
            self.architecture_, self.weights_, x, points, chosen, symmetric=symmetric
        ):
            stop = start + block.shape[1]
            if chosen is None:
                offset = targets[:, None]
            else:
                offset = np.stack([t[c[start:stop]] for t, c in zip(targets, chosen, strict=True)])
            start = stop
            estimates = block * self.scaling_.y_scale + offset
            yield estimates.transpose(1, 0, 2).reshape(block.shape[1], -1)

    def _partners(
        self, x: FloatArray, seed: int
    ) -> tuple[npt.NDArray[np.int32] | None, int | None]:
        """Partners of each training row, and the neighbours to score with."""
        neighbors = positive_integer("neighbors", self.neighbors)
        if isinstance(self.pairs, str):
            if one_of("pairs", self.pairs, ("all", "neighbors")) == "all":
                return None, None
            return nearest_others(x, neighbors), neighbors
        return random_others(len(x), positive_integer("pairs", self.pairs), seed), None
