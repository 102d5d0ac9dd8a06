r"""DSZOG: doubly stochastic zeroth-order gradients for heavily constrained problems.

The method of [1]_ minimises

.. math:: g(w) = \max_{p \in \Delta} \; f_0(w) + \beta \sum_j p_j \max(f_j(w), 0)^2
          - \tfrac{\lambda}{2} \|p\|^2

by descent in :math:`w` along averaged zeroth-order gradients and ascent in the weights
:math:`p` over the constraints. Each iteration looks at a few losses, a few constraints
drawn from :math:`p`, and a few drawn uniformly.

``minimize(method="dszog")`` remembers slopes instead, up to a million variables
(``methods/slopes.py``), where there are values alone and nothing is set but batches and
directions. Else it does this, from the first query to the last:

1. A look at all constraints at the start, or at a draw of them, gives the first weights
   (``init``, ``_tell_start``).
2. Each iteration asks (``ask``) and takes a step in the variables, which shrinks to 0
   over the budget, and one in the weights (``tell``).
3. There are three rounds. After 0.2 and 0.4 of the budget the penalty is raised so far
   that the violation it leaves falls to the tolerance; the iterate and the weights
   stay, the steps begin anew (:class:`PenaltyRounds`, ``new_round``).
4. If sampled values leave the scale of the start, the run starts again with a quarter
   of the step (:class:`~dszog.methods.policy.SlowsDown`). What the caller has set is
   never changed.
5. The last iterate, the average of the iterates (the t-th weighs :math:`t^8`) and the
   start are evaluated afresh, within a tenth of the budget that is kept for it. The
   best by ``fun + penalty * maxcv**2`` is the result (``dszog.run.final_check``).

References
----------
.. [1] W. Shi, H. Gao and B. Gu, "Gradient-Free Method for Heavily Constrained Nonconvex
   Optimization", ICML 2022, PMLR 162.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from dszog import kernels
from dszog.contract import (
    NO_INDICES,
    ProblemSize,
    Query,
    Reply,
    Signs,
    check_replies,
    cost,
    no_steps,
)
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import (
    check_choice,
    check_count_fields,
    check_flag,
    check_positive,
    check_share,
    check_weights,
    shown,
)
from dszog.errors import DszogError, InputError, InputTypeError
from dszog.kernels.plain import combine
from dszog.kernels.tables import Drawn, DualStep
from dszog.maths.distribution import DISTRIBUTIONS, Distribution
from dszog.maths.gradients import (
    DIRECTIONS,
    Directions,
    central_difference,
    draw_directions,
    forward_difference,
    row_means,
)
from dszog.maths.penalties import cut, squared_violation, violations
from dszog.maths.random_stream import (
    constraints_per_draw,
    distinct_indices,
    lent_stream,
    stream,
    uniform_constraints,
)
from dszog.methods.at_once import Step, draw_at_once, step_at_once
from dszog.methods.base import Info, State, check_first
from dszog.methods.policy import RoundReport, SlowsDown
from dszog.methods.start import StartPass, sample_size
from dszog.methods.theory import TheoremConstants, theorem_parameters

StepDecay: TypeAlias = Literal["constant", "linear", "sqrt"]
Start: TypeAlias = Literal["auto", "exact", "sampled"]
DualEstimate: TypeAlias = Literal["plain", "centred", "combined"]

EXACT_START = 10**7  # "auto" looks at all constraints once up to this many
DENSE_LIMIT = 10**8  # weights a dense distribution may hold
LOSS_BATCH, CONSTRAINT_BATCH, DUAL_BATCH = 64, 32, 256
DEFAULT_HORIZON = 2000
NUMBERS = (
    *("step_size", "dual_step_size", "penalty", "radius"),
    *("dual_ridge", "averaging", "dual_averaging", "step_eps"),
)
SQRT_DECAY = 100  # steps until the decay by the square root sets in

ROUNDS = (0.2, 0.4, 1.0)  # parts of the budget after which the penalty may be raised
VIOLATION_AIM = 0.1  # of the tolerance: the weighted violation that is aimed at
MAX_RAISE = 100.0  # the largest factor by which a penalty is raised at once
HIGHEST_PENALTY = 3e5  # in problems of order one


@dataclass(frozen=True, eq=False, kw_only=True)
class DSZOGState(State):
    """The iterate, its averaged gradient, and the weights over the constraints."""

    velocity: FloatArray  # (dim,), the averaged gradient z_w; (0,) if none is kept
    distribution: Distribution | None  # p and z_p; None before the start and if m = 0
    start: StartPass | None  # the look at the constraints that is under way
    first_iteration: int  # the iteration of the first step
    n_queries: int  # spent in this round; the linear decay reads it

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "x", frozen_floats(self.x))
        put(self, "velocity", frozen_floats(self.velocity))


@dataclass(frozen=True, slots=True, kw_only=True)
class DSZOG:
    r"""Descend in the variables, ascend in the weights, both on few samples.

    The defaults suit problems whose variables, losses and constraints are of order one.
    :meth:`as_published` gives the settings of the paper.

    Parameters
    ----------
    step_size : float
        :math:`\eta_w`, the step in the variables.
    dual_step_size : float
        :math:`\eta_p`, the step in the weights.
    penalty : float
        :math:`\beta`. The worst violation that remains is about the sum of the
        multipliers divided by :math:`2 \beta`.
    radius : float
        :math:`\mu`, how far from the iterate the perturbed points lie.
    n_directions : int
        :math:`q`, directions per iteration; orthogonal ones, and coordinates, are at
        most as many as there are variables.
    dual_ridge : float
        :math:`\lambda`, which spreads the weights over nearly equal violations.
    averaging : float
        :math:`b` in (0, 1], the share of the newest estimate in the averaged gradients.
    dual_averaging : float
        :math:`a` in (0, 1], the share of the newest point in the weights.
    step_eps : float
        :math:`c`, which keeps the adaptive step finite.
    loss_batch, constraint_batch, dual_batch : int, optional
        :math:`|M_1|, |M_2|, |M_3|`: losses, constraints drawn from the weights, and
        constraints drawn uniformly; 64, 32 and 256, or as many as there are. More of
        them mean fewer steps, as ``max_queries`` counts losses and constraints alike:
        of 22 problems, 18 had worse answers and 1 a better one with 128 losses.
    step_decay : {"constant", "linear", "sqrt"}
        How the step in the variables shrinks: not (the paper), to 0 over the horizon,
        or as :math:`1/\sqrt{1 + t/100}`.
    directions : {"gaussian", "sphere", "orthogonal", "coordinate", "rademacher"}
        See :func:`dszog.maths.gradients.draw_directions`; ``"gaussian"`` is the paper.
        ``"rademacher"``, for many variables, names random signs instead of holding
        them, and keeps no average of gradients in the variables.
    antithetic : bool
        Compare opposite points instead of each point with the iterate.
    adaptive : bool
        Divide each step by the root of the norm of its gradient, as the paper does.
        False with both averagings 1 is the plain method.
    normalised : bool
        Divide the step in the variables by the norm itself: each moves them by
        `step_size` in the root mean square, whatever the slope.
    dual_estimate : {"plain", "centred", "combined"}
        Estimate the gradient in the weights from the penalties of the uniform draw (the
        paper), or from their change since each constraint was last seen, or from the
        penalties of both draws, those from the weights being known anyway.
    distribution : {"sparse", "dense", "uniform"}
        How the weights are kept. ``"sparse"`` and ``"dense"`` are the same method; the
        first costs nothing per constraint. ``"uniform"`` keeps them equal and makes no
        use of what is said about the dual.
    start : {"auto", "exact", "sampled"}
        First weights from all constraints, or from a uniform draw of up to 16,384;
        ``"auto"`` looks at all of them up to ten million.
    horizon, horizon_queries : int, optional
        Iterations or queries over which the linear decay runs; 2000 iterations if
        neither is given. `minimize` sets them from its budget.
    """

    step_size: float = 0.02
    dual_step_size: float = 0.01
    penalty: float = 30.0
    radius: float = 1e-4
    n_directions: int = 5
    dual_ridge: float = 1e-6
    averaging: float = 0.7
    dual_averaging: float = 0.5
    step_eps: float = 1e-8
    loss_batch: int | None = None
    constraint_batch: int | None = None
    dual_batch: int | None = None
    step_decay: StepDecay = "linear"
    directions: Directions = "orthogonal"
    antithetic: bool = False
    adaptive: bool = True
    normalised: bool = False
    dual_estimate: DualEstimate = "combined"
    distribution: Literal["sparse", "dense", "uniform"] = "sparse"
    start: Start = "auto"
    horizon: int | None = None
    horizon_queries: int | None = None

    def __post_init__(self) -> None:
        check_positive(
            self,
            step_size="Try 0.02; halve it while the objective rises.",
            dual_step_size="Try 0.01.",
            penalty="Try 30; raise it if violations remain.",
            radius="Try 1e-4 for variables of order one.",
            dual_ridge="The paper uses 1e-6.",
            step_eps="The paper uses 1e-8.",
        )
        check_share(
            self,
            averaging="The paper uses 0.1, 0.5 and 0.9.",
            dual_averaging="The paper uses 0.1, 0.5 and 0.9.",
        )
        for name in NUMBERS:  # kernels are compiled for each type: 30 would be another
            object.__setattr__(self, name, float(getattr(self, name)))
        check_count_fields(self, "n_directions", advice="Try 5.")
        check_count_fields(
            self,
            *("loss_batch", "constraint_batch", "dual_batch"),
            *("horizon", "horizon_queries"),
            optional=True,
        )
        check_choice(self, "step_decay", self.step_decay, get_args(StepDecay))
        check_choice(self, "directions", self.directions, DIRECTIONS)
        check_choice(self, "dual_estimate", self.dual_estimate, get_args(DualEstimate))
        check_choice(self, "distribution", self.distribution, DISTRIBUTIONS)
        check_choice(self, "start", self.start, get_args(Start))
        check_flag(self, "antithetic", self.antithetic)
        check_flag(self, "adaptive", self.adaptive)
        check_flag(self, "normalised", self.normalised)
        if self.normalised and not self.adaptive:
            raise InputError(
                "DSZOG: a normalised step is an adaptive one, got normalised=True and "
                "adaptive=False. Leave one out."
            )

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        r"""Return Algorithm 1 as printed, with the paper's :math:`\lambda` and `c`.

        The step sizes, penalty and averagings are single values of the paper's grids;
        the number of directions and the radius, which it does not state, are this
        library's (10 and 1e-3), and so are the batches, of which the paper has 128 each
        in most experiments. Any field can be given by name.
        """
        printed: dict[str, Any] = {
            "step_size": 0.01,
            "dual_step_size": 0.01,
            "penalty": 1.0,
            "radius": 1e-3,
            "n_directions": 10,
            "averaging": 0.9,
            "dual_averaging": 0.9,
            "step_decay": "constant",
            "directions": "gaussian",
            "antithetic": False,
            "dual_estimate": "plain",
            "start": "exact",
        }
        return cls(**(printed | changes))

    @classmethod
    def from_theorem(cls, constants: TheoremConstants, **changes: Any) -> Self:
        r"""Return the largest parameters that the paper's theorem allows.

        With them the average of :math:`E\|\nabla g(w_t)\|^2` over the `horizon` of the
        returned method is at most a fixed multiple of :math:`\varepsilon^2`. Any other
        field can be given by name.

        Examples
        --------
        >>> constants = TheoremConstants(
        ...     accuracy=0.5,
        ...     dim=5,
        ...     smoothness=2.0,
        ...     concavity=1.0,
        ...     gap=1.0,
        ...     variance=0.1,
        ...     dual_variance=0.1,
        ... )
        >>> DSZOG.from_theorem(constants).horizon > 1000
        True
        """
        if not isinstance(constants, TheoremConstants):
            raise InputTypeError(
                f"DSZOG.from_theorem: `constants` must be TheoremConstants, got "
                f"{shown(constants)}. Make them: TheoremConstants(accuracy=..., ...)."
            )
        return cls.as_published(**(theorem_parameters(constants) | changes))

    # ------------------------------------------------------------------- the contract

    def init(
        self,
        x0: FloatArray,
        size: ProblemSize,
        seed: int,
        weights: tuple[IntArray, FloatArray] | None = None,
    ) -> DSZOGState:
        """Return the state before the first iteration.

        Parameters
        ----------
        x0 : ndarray of shape (dim,)
        size : ProblemSize
        seed : int
        weights : (indices, weights), optional
            First weights over the constraints, for example of an earlier run. Without
            them the first iterations look at the constraints and do not move.
        """
        x = check_first(self, x0, size, seed)
        self._check_size(size)
        start, distribution = None, None
        if size.n_constraints and weights is not None:
            weights = check_weights(self, weights, size.n_constraints)
            kind = DISTRIBUTIONS[self.distribution]
            distribution = kind.from_weights(size.n_constraints, *weights)
        elif size.n_constraints and self.distribution == "uniform":
            distribution = self._first_weights(size, NO_INDICES, np.empty(0))
        elif size.n_constraints:
            start = StartPass()
        first = DSZOGState(
            iteration=0,
            seed=seed,
            size=size,
            x=frozen_floats(size.clip(x)),
            velocity=frozen_floats(
                np.zeros(0 if self.names_directions(size) else len(x))
            ),
            distribution=distribution,
            start=start,
            first_iteration=0,
            n_queries=0,
        )
        return self._begun(first, weights)

    def _begun(
        self, first: DSZOGState, weights: tuple[IntArray, FloatArray] | None
    ) -> DSZOGState:
        """Return the first state as other forms of the method have it."""
        return first

    def ask(self, state: DSZOGState) -> tuple[Query, ...]:
        """Return the queries of the next iteration.

        Values around the iterate, gradients at it if anything is a white box, and the
        draw from which the weights learn; the first and the last may be empty.
        """
        if state.start is not None:
            indices = self._asked_at_start(state, state.start)
            return (Query.at(state.x, iteration=state.iteration, constraints=indices),)
        size = state.size
        directions, drawn = self._draw(state)
        base, steps, points = self._around(state, directions)
        around = Query.drawn(
            iteration=state.iteration,
            x=base,
            steps=steps,
            losses=NO_INDICES if size.has_gradient else drawn.losses,
            constraints=NO_INDICES if size.has_jacobian else drawn.constraints,
            paired=self.antithetic,
            distinct_constraints=None if size.has_jacobian else drawn.distinct,
            points=points,
        )
        dual = Query.drawn(
            iteration=state.iteration,
            x=state.x,
            steps=no_steps(size.dim),
            losses=NO_INDICES,
            constraints=drawn.duals,
            distinct_constraints=(drawn.duals, None),
            points=state.x[np.newaxis],
        )
        if size.is_black_box:
            return around, dual
        at = Query.at(
            state.x,
            iteration=state.iteration,
            losses=drawn.losses if size.has_gradient else NO_INDICES,
            constraints=drawn.constraints if size.has_jacobian else NO_INDICES,
            want="gradients",
        )
        return around, at, dual

    def tell(
        self, state: DSZOGState, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[DSZOGState, Info]:
        """Return the state after one step in the variables and one in the weights."""
        if state.start is not None:
            check_replies(state.iteration, queries, replies, 1)
            return self._tell_start(state, state.start, queries[0], replies[0])
        n_expected = 2 if state.size.is_black_box else 3
        check_replies(state.iteration, queries, replies, n_expected, check_values=False)
        if len(queries[-1].steps) or len(queries[-1].losses):
            raise DszogError(
                "tell: the last query must be the draw that the weights learn from, "
                "got another. Tell queries and replies in the order of ask(state)."
            )
        if self.names_directions(state.size):
            step = self._along_names(state, queries, replies)
        else:
            step = self._both(state, queries, replies)
        x, velocity, distribution, info = step
        moved = replace(
            state,
            iteration=state.iteration + 1,
            x=x,
            velocity=velocity,
            distribution=distribution,
            n_queries=state.n_queries + cost(queries, state.size).total,
        )
        return moved, info

    def planned(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Self:
        """Return the method with its horizon, and how it starts, set for this run.

        Where only time limits the run its length is unknown: a linear decay without a
        horizon then becomes ``"sqrt"``. A look at all constraints that would take more
        than a tenth of the queries becomes a sampled start.
        """
        changes: dict[str, Any] = {}
        if self.horizon is None and self.horizon_queries is None:
            if iterations is None and queries is None:
                if self.step_decay == "linear":
                    changes["step_decay"] = "sqrt"
            else:
                changes.update(
                    horizon=None if iterations is None else max(iterations, 1),
                    horizon_queries=None if queries is None else max(queries, 1),
                )
        is_long = queries is not None and size.n_constraint_calls > queries / 10
        if self.start == "auto" and is_long:
            changes["start"] = "sampled"
        return replace(self, **changes)

    def least_queries(self, size: ProblemSize) -> int:
        """Return what the look at the constraints and one step cost at most."""
        start, n_calls = 0, size.n_constraint_calls
        if size.n_constraints and self.distribution != "uniform":
            start = size.n_constraints
            if not self._starts_exactly(size):
                start = sample_size(size, self.horizon_queries)
        n_points = 2 + (1 + self.antithetic) * self.n_directions
        n_losses, n_constraints, n_duals = self.batches(size)
        around = n_points * (n_losses + min(n_constraints, n_calls))
        return min(start, n_calls) + around + min(n_duals, n_calls)

    def policy(self, fixed: frozenset[str]) -> PenaltyRounds:
        """Return how a run raises the penalty and starts again, where it may.

        Normalised steps do not adapt to a stiffer penalty: it stays as it is.
        """
        return PenaltyRounds(fixed | {"penalty"} if self.normalised else fixed)

    def new_round(self, state: DSZOGState) -> DSZOGState:
        """Return the state from which a run with other settings goes on.

        The iterate and the weights stay. The average of the gradients begins anew (see
        `averaging_at`), and so does the decay of the step.
        """
        return replace(state, first_iteration=state.iteration, n_queries=0)

    def weights(self, state: DSZOGState) -> tuple[IntArray, FloatArray]:
        """Return the touched constraints and their weights."""
        if state.distribution is None:
            return NO_INDICES, np.empty(0)
        return state.distribution.touched()

    # ------------------------------------------------------------------- what is drawn

    def _draw(self, state: DSZOGState) -> tuple[FloatArray, Drawn]:
        """Draw directions, losses and constraints (Alg. 1, lines 8 to 11)."""
        at_once = draw_at_once(self, state)
        if at_once is not None:
            return at_once
        size, distribution = state.size, state.distribution
        n_losses, n_constraints, n_duals = self.batches(size)
        rng = lent_stream(state.seed, state.iteration)
        directions = np.empty((0, size.dim))
        if not self.names_directions(size):
            directions = draw_directions(  # line 8
                rng, self.directions, self.directions_of(size), size.dim
            )
        losses = distinct_indices(rng, size.n_losses, n_losses)  # line 9
        constraints = duals = NO_INDICES
        if distribution is not None:
            if self.distribution != "uniform":
                duals = uniform_constraints(rng, size, n_duals)  # line 11
            constraints = distribution.sample(rng, n_constraints)  # line 10
        return directions, Drawn(losses, duals, constraints)

    # ---------------------------------------------------------- the step in variables

    def directions_of(self, size: ProblemSize) -> int:
        """Return how many directions an iteration draws."""
        if size.has_gradient and (size.has_jacobian or not size.n_constraints):
            return 0  # a white box throughout needs none
        if self.directions in ("orthogonal", "coordinate"):
            return min(self.n_directions, size.dim)  # a basis: nothing is left out
        return self.n_directions

    def names_directions(self, size: ProblemSize) -> bool:
        """Whether directions are named by their numbers, and never held."""
        return self.directions == "rademacher" and size.is_black_box

    def _around(
        self, state: DSZOGState, directions: FloatArray
    ) -> tuple[FloatArray, Any, FloatArray | None]:
        """Return where to look from, the steps, and the points if nothing is bounded.

        Seen from a little inside the bounds, no direction has to be cut short.
        """
        size, x = state.size, state.x
        if self.names_directions(size):
            numbers = tuple(range(self.n_directions))
            if self.antithetic:
                numbers += tuple(~k for k in numbers)
            signs = Signs(state.seed, state.iteration, numbers, size.dim, self.radius)
            return frozen_floats(size.inside(x, np.array(self.radius))), signs, None
        if self.antithetic:
            directions = np.concatenate([directions, -directions])
        steps, points = kernels.chosen().around(x, directions, self.radius)
        if size.has_bounds:
            reach = np.abs(steps).max(axis=0, initial=0.0)
            return frozen_floats(size.inside(x, reach)), steps, None
        return x, steps, points

    def averaging_at(self, state: DSZOGState) -> float:
        """Return the share of the newest estimate: all of it in the first step."""
        return 1.0 if state.iteration == state.first_iteration else self.averaging

    def _along_names(
        self, state: DSZOGState, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> Step:
        """Take both steps along directions that are named, of which none is held."""
        dim = state.size.dim
        amounts, weights, info = self._amounts(state, queries, replies, dim)
        signs = queries[0].steps[: len(amounts)]
        x = frozen_floats(state.size.clip(signs.along(state.x, amounts.tolist())))
        return x, state.velocity, weights, info

    def _amounts(
        self,
        state: DSZOGState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
        n_variables: int,
    ) -> tuple[FloatArray, Distribution | None, Info]:
        """Return how far to go along each named direction, and the step in the weights.

        Both steps are taken in as many variables as there are directions. In `dim`
        variables these are all but orthogonal, each of length root dim.
        """
        n = len(queries[0].steps) // (2 if self.antithetic else 1)
        steps, unbounded = np.eye(n), np.full(n, np.inf)
        origin = frozen_floats(np.zeros(n))
        if self.antithetic:
            steps = np.concatenate([steps, -steps])
        small = replace(state.size, dim=n, lower=-unbounded, upper=unbounded)
        inner = replace(state, size=small, x=origin, velocity=origin)
        around = queries[0]._replace(x=origin, steps=self.radius * steps)
        _, slopes, distribution, info = self._both(
            inner, (around, queries[-1]), replies, along_names=True
        )
        slopes = slopes / self.averaging_at(state)
        with np.errstate(over="ignore"):
            norm = math.sqrt(n_variables * float(np.square(slopes).sum()))
        step_size = self._scaled_step(self.step_size_at(state), norm, n_variables)
        return -step_size * slopes, distribution, info

    def _scaled_step(self, step_size: float, norm: float, dim: int) -> float:
        """Return the factor of a gradient of this norm in a step."""
        if self.normalised:
            return step_size * math.sqrt(dim) / (norm + self.step_eps)
        if self.adaptive:
            return step_size / (math.sqrt(norm) + self.step_eps)
        return step_size

    def _both(
        self,
        state: DSZOGState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
        *,
        along_names: bool = False,
    ) -> Step:
        """Take both steps, by one kernel where that can be."""
        step = None
        if along_names or not self.normalised:
            step = step_at_once(self, state, queries, replies)
        if step is None:
            check_replies(state.iteration, queries, replies, len(queries))
            with np.errstate(over="ignore", invalid="ignore"):
                step = self._step(state, queries, replies)
        return step

    def _step(
        self, state: DSZOGState, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> Step:
        """Take both steps of an iteration (Alg. 1, lines 5 to 7 and 12 to 15)."""
        size, b = state.size, self.averaging_at(state)
        step_size = self.step_size_at(state)
        estimate = self._gradient(queries[0], replies, size)  # line 12
        velocity = (1 - b) * state.velocity + b * estimate  # line 14
        if self.adaptive:
            norm = math.sqrt(np.add.reduce(np.square(velocity)))
            step_size = self._scaled_step(step_size, norm, size.dim)
        x = size.clip(state.x - step_size * velocity)  # line 5
        distribution, duals = state.distribution, queries[-1].constraints
        seen = violations(replies[-1].constraints[0])
        where = 1 if size.has_jacobian else 0  # the query with the draw from p
        drawn = violations(replies[where].constraints[0])
        if distribution is not None and len(duals):
            spread = constraints_per_draw(duals, size)
            indices, penalties = duals, seen.penalties
            others = queries[where].constraints
            if self.dual_estimate == "combined" and len(others):
                indices, penalties = combine(
                    *(others, drawn.penalties, duals, penalties),
                    *(distribution.weights_of, spread),
                )
            distribution = _learned(  # lines 13, 15, 6 and 7
                distribution, indices, penalties, self.dual_step_at(state), spread
            )
        losses = replies[1 if size.has_gradient else 0].losses[0]
        info = Info(
            sampled_objective=float(np.add.reduce(losses)) / len(losses),
            sampled_violation=max(drawn.worst, seen.worst),
            sampled_share=(drawn if self.distribution == "uniform" else seen).share,
            weighted_violation=drawn.mean,
            n_touched=0 if distribution is None else len(distribution.touched()[0]),
        )
        return frozen_floats(x), frozen_floats(velocity), distribution, info

    def _gradient(
        self, query: Query, replies: Sequence[Reply], size: ProblemSize
    ) -> FloatArray:
        r"""Estimate :math:`\nabla_w L(w, p)`, from true gradients where there are any.

        A constraint drawn twice stands twice in the reply, and so weighs double. The
        directions are read off the query, from which a failed one may be missing.
        """
        around, at = replies[0], replies[1]  # of a black box, `at` is not read
        gradient = np.zeros(size.dim)
        values = np.zeros(len(around.losses))
        if size.has_gradient:
            gradient += at.loss_gradients.mean(axis=0)
        else:
            values += row_means(around.losses)
        if size.n_constraints and size.has_jacobian:
            slopes = 2.0 * np.maximum(at.constraints[0], 0.0)
            gradient += (
                self.penalty * np.einsum("j,jd->d", slopes, at.jacobian) / len(slopes)
            )
        elif size.n_constraints:
            values += self.penalty * row_means(squared_violation(around.constraints))
        if len(values) > 1:
            directions = query.steps / self.radius
            difference = forward_difference
            if self.antithetic:
                directions = directions[: len(directions) // 2]
                difference = central_difference
            gradient += difference(values, directions, self.radius)
        return gradient

    def step_size_at(self, state: DSZOGState) -> float:
        """Return the step size of this iteration, before it adapts."""
        if self.step_decay == "constant":
            return self.step_size
        n_steps = state.iteration - state.first_iteration
        if self.step_decay == "sqrt":
            return float(1.0 / np.sqrt(1.0 + n_steps / SQRT_DECAY)) * self.step_size
        # Past the horizon the run creeps on.
        return max(1.0 - self.gone_at(state), 1e-3) * self.step_size

    def gone_at(self, state: DSZOGState) -> float:
        """Return the share of the horizon that is over."""
        horizon, n_steps = self.horizon, state.iteration - state.first_iteration
        if horizon is None and self.horizon_queries is None:
            horizon = DEFAULT_HORIZON
        of_queries = state.n_queries / (self.horizon_queries or math.inf)
        return max(n_steps / (horizon or math.inf), of_queries)

    # ------------------------------------------------------------ the step in weights

    def dual_step_at(self, state: DSZOGState) -> DualStep:
        """Return the parameters of the step in the weights of this iteration."""
        return DualStep(
            self.dual_step_size,
            self.averaging_at(state),
            self.dual_averaging,
            self.penalty,
            self.dual_ridge,
            self.step_eps,
            self.adaptive,
            self.dual_estimate == "centred",
        )

    def _first_weights(
        self, size: ProblemSize, indices: IntArray, penalties: FloatArray
    ) -> Distribution:
        return DISTRIBUTIONS[self.distribution].from_penalties(
            size.n_constraints, indices, penalties, self.penalty / self.dual_ridge
        )

    def _starts_exactly(self, size: ProblemSize) -> bool:
        if self.start == "auto":
            return size.n_constraints <= EXACT_START
        return self.start == "exact"

    def _asked_at_start(self, state: DSZOGState, start: StartPass) -> IntArray:
        """Return the next block of all constraints, or the draw."""
        if self._starts_exactly(state.size):
            return start.next_block(state.size)
        n_wanted = sample_size(state.size, self.horizon_queries)
        rng = stream(state.seed, state.iteration)
        return uniform_constraints(rng, state.size, n_wanted)

    def _tell_start(
        self, state: DSZOGState, start: StartPass, query: Query, reply: Reply
    ) -> tuple[DSZOGState, Info]:
        """Take in one block of the look at the constraints (Alg. 1, line 2)."""
        values = reply.constraints[0]
        asked = self._asked_at_start(state, start)
        start = start.seen(asked, query, values, self.dual_ridge / self.penalty)
        info = Info(
            sampled_violation=float(np.maximum(values, 0.0).max()),
            sampled_share=float((values > 0.0).mean()),
            is_step=False,
        )
        state = replace(
            state,
            iteration=state.iteration + 1,
            n_queries=state.n_queries + cost([query], state.size).total,
            start=start,
        )
        size = state.size
        if self._starts_exactly(size) and start.n_seen < size.n_constraints:
            return state, info
        weights = self._first_weights(size, start.indices, start.penalties)
        return replace(
            state, start=None, first_iteration=state.iteration, distribution=weights
        ), info

    # ------------------------------------------------------------------------- sizes

    def batches(self, size: ProblemSize) -> tuple[int, int, int]:
        r"""Return :math:`|M_1|, |M_2|, |M_3|` on a problem of this size."""
        return (
            self.loss_batch or min(LOSS_BATCH, size.n_losses),
            self.constraint_batch or min(CONSTRAINT_BATCH, size.n_constraints),
            self.dual_batch or min(DUAL_BATCH, size.n_constraints),
        )

    def _check_size(self, size: ProblemSize) -> None:
        # Drawn without repeats, hence bounded; the constraint batch may have repeats.
        for name, there_are in (
            ("loss_batch", size.n_losses),
            ("dual_batch", size.n_constraints),
        ):
            batch = getattr(self, name)
            if batch is not None and there_are and batch > there_are:
                raise InputError(
                    f"DSZOG: `{name}` is drawn without repeats, got {batch} of "
                    f"{there_are}. Set {name}={there_are} or less, or leave it out."
                )
        if self.distribution == "dense" and size.n_constraints > DENSE_LIMIT:
            gigabytes = 6 * 8 * size.n_constraints / 1e9
            raise InputError(
                f"DSZOG: distribution='dense' keeps every weight, got "
                f"{size.n_constraints} constraints, which needs {gigabytes:.1f} GB. "
                "Use distribution='sparse'."
            )


# ----------------------------------------------------------------- between the rounds


class PenaltyRounds(SlowsDown):
    """Three rounds, between which the penalty is raised if violations remain.

    What the caller set is `fixed`: a penalty makes it one round, a step size stays
    after iterates ran away.
    """

    def __init__(self, fixed: frozenset[str]) -> None:
        self._fixed = fixed
        self.shares = (1.0,) if "penalty" in fixed else ROUNDS

    def after_round(self, method: DSZOG, report: RoundReport) -> tuple[DSZOG, str]:
        r"""Raise the penalty so that the violation it leaves falls to the tolerance.

        At a minimum of the penalised objective the multipliers sum to
        :math:`2 \beta \sum_j p_j \max(f_j, 0)`, whatever the penalty; so this weighted
        violation is inversely proportional to it. A stiffer one needs smaller steps.
        """
        aim = VIOLATION_AIM * report.constraint_tol
        violation = report.weighted_violation
        if not violation > aim:
            return method, ""
        factor = min(violation / aim, MAX_RAISE) if aim > 0 else MAX_RAISE
        highest = highest_penalty(report.objectives, aim)
        factor = min(factor, highest / method.penalty)
        if not factor > 1.0:
            return method, ""
        penalty, step_size = factor * method.penalty, method.step_size
        if "step_size" not in self._fixed:
            step_size = step_size / math.sqrt(factor)
        said = f"The penalty was raised from {method.penalty:,.4g} to {penalty:,.4g}."
        return replace(method, penalty=penalty, step_size=step_size), said

    def after_runaway(
        self, method: DSZOG, report: RoundReport
    ) -> tuple[DSZOG, str] | None:
        """Return the method with a quarter of its step, unless that was set."""
        if "step_size" in self._fixed:
            return None
        return super().after_runaway(method, report)


def highest_penalty(objectives: FloatArray, aim: float) -> float:
    """Return the largest penalty that may be of use, given sampled objectives."""
    # What violation remains is the sum of the multipliers over twice the penalty, and
    # in problems of order one these are of the size of the objective. Where a violation
    # stays in spite of such a penalty, it has another cause.
    n = len(objectives)
    if not (n and aim > 0):
        return HIGHEST_PENALTY
    low, high = np.sort(objectives)[[n // 10, -n // 10]]
    with np.errstate(over="ignore"):  # the range, without what is far off
        return max(HIGHEST_PENALTY, float(high - low) / aim)


def _learned(
    weights: Distribution,
    indices: IntArray,
    penalties: FloatArray,
    step: DualStep,
    spread: float,
) -> Distribution:
    """Let weights learn from penalties, which are cut only if the update overflows."""
    # These are exactly the cases that the compiled form leaves to this one.
    try:
        with np.errstate(over="raise", invalid="raise"):
            return weights.learn(indices, penalties, step, spread)
    except (FloatingPointError, InputError):
        return weights.learn(indices, cut(penalties), step, spread)
