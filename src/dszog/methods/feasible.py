"""What the methods have in common that never leave a feasible set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, check_replies
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.contract.validation import (
    check_choice,
    check_count_fields,
    check_flag,
    check_number,
    check_positive_number,
    shown,
)
from dszog.errors import InputError, InputTypeError
from dszog.maths.random_stream import stream
from dszog.maths.subproblems import Domain
from dszog.maths.subproblems.polyhedron import Form
from dszog.methods.base import Info, State, check_first
from dszog.methods.estimates import (
    ESTIMATORS,
    LEAST_RADIUS,
    Estimator,
    ask_around,
    draw_steps,
    estimate,
    in_common,
)
from dszog.methods.policy import ONE_ROUND, SLOWS_DOWN, Policy

DEFAULT_HORIZON = 1000  # iterations, where a formula asks for their number
COMPARED_BATCH = 128  # losses per estimate in the comparison of the DSZOG paper
MANY_VARIABLES = 500  # beyond which a difference along each costs too much

BallChoice: TypeAlias = Literal["auto", "none", "l2"]
Nonconvex: TypeAlias = Literal["refuse", "linearise", "retract"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FeasibleState(State):
    """The iterate, the estimate of the gradient, and a hint for the subproblem."""

    gradient: FloatArray  # (dim,), the estimate that the last step was made with
    previous: FloatArray  # (dim,), the iterate before
    active: IntArray  # the rows that held the last answer of the subproblem

    def __post_init__(self) -> None:
        State.__post_init__(self)
        object.__setattr__(self, "gradient", frozen_floats(self.gradient))
        object.__setattr__(self, "previous", frozen_floats(self.previous))
        object.__setattr__(self, "active", frozen_ints(self.active))


class Move(NamedTuple):
    """Where a step leads."""

    x: FloatArray
    active: IntArray  # the rows that hold the answer of the subproblem
    n_inner: int = 0
    events: tuple[str, ...] = ()
    also: Mapping[str, Any] = MappingProxyType({})  # other fields of the next state


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleMethod:
    """Fields and functions of all methods that project or minimise linearly.

    Parameters
    ----------
    step_size : float, optional
        The step; of the theory, if not given.
    loss_batch : int, optional
        Losses per estimate, drawn with repeats.
    estimator : {"gaussian", "sphere", "coordinate"}
        See :func:`dszog.methods.estimates.draw_steps`.
    n_directions : int
        Directions per estimate, shared by its losses; of no use to ``"coordinate"``.
    per_sample : bool
        Give each loss of the batch one direction of its own instead.
    radius : float, optional
        How far apart values are compared; never less than 1e-6.
    horizon : int, optional
        Iterations that formulas reckon with; `minimize` sets it from its budget.
    domain : Domain, optional
        The feasible set. `minimize` makes it from the constraints and the fields below.
    ball : {"auto", "none", "l2"}
        A Euclidean ball around the origin that the feasible set is cut to. ``"auto"``:
        only if the method needs a bounded set and the set is not bounded.
    ball_radius : float
    form : {"lifted", "full"}
        Whether pairs are solved with a row per sample, or listed.
    nonconvex : {"refuse", "linearise", "retract"}
        What to do about constraints that are not known to be convex: refuse; replace
        them by tangents at each iterate; or that, and draw infeasible iterates towards
        the origin, for constraints that are positively homogeneous but for a constant.
    trust_radius : float
        How far a step may then go in each variable.
    """

    needs_bounded: ClassVar[bool] = True
    needs_gradient: ClassVar[bool] = False
    compares_points: ClassVar[bool] = False  # the iterate with the one before
    step_is_share: ClassVar[bool] = False  # of the way to a corner of the set

    step_size: float | None = None
    loss_batch: int | None = None
    estimator: Estimator | Literal["auto"] = "auto"
    n_directions: int = 10
    per_sample: bool = False
    radius: float | None = None
    horizon: int | None = None
    domain: Domain | None = None
    ball: BallChoice = "auto"
    ball_radius: float = 10.0
    form: Form = "lifted"
    nonconvex: Nonconvex = "refuse"
    trust_radius: float = 1.0

    def __post_init__(self) -> None:
        for name in ("step_size", "radius"):
            if getattr(self, name) is not None:
                check_positive_number(self, name, getattr(self, name))
        if self.step_is_share and self.step_size is not None:
            check_shares(self, step_size=self.step_size)
        for name in ("ball_radius", "trust_radius"):
            check_positive_number(self, name, getattr(self, name))
        check_count_fields(self, "loss_batch", "horizon", optional=True)
        check_count_fields(self, "n_directions")
        check_choice(self, "estimator", self.estimator, ("auto", *ESTIMATORS))
        check_choice(self, "ball", self.ball, get_args(BallChoice))
        check_choice(self, "form", self.form, get_args(Form))
        check_choice(self, "nonconvex", self.nonconvex, get_args(Nonconvex))
        check_flag(self, "per_sample", self.per_sample)
        if self.per_sample and self.estimator == "coordinate":
            raise InputError(
                f"{self._name}: `per_sample` is for random directions, got "
                "estimator='coordinate'. Leave one of them out."
            )
        is_set = hasattr(self.domain, "project") and not isinstance(self.domain, type)
        if self.domain is not None and not is_set:
            raise InputTypeError(
                f"{self._name}: `domain` must be a feasible set, got "
                f"{shown(self.domain)}. Use one of dszog.subproblems."
            )

    @classmethod
    def for_comparison(cls, step_size: float = 1e-2, **changes: Any) -> Self:
        """Return the settings of the DSZOG paper's comparison."""
        # Batches of 128 and a constant step from its grid 1e-2, 1e-3, 1e-4.
        settings = {"step_size": step_size, "loss_batch": COMPARED_BATCH}
        return cls(**(settings | changes))

    # ------------------------------------------------------------------- the contract

    def init(self, x0: FloatArray, size: ProblemSize, seed: int) -> FeasibleState:
        """Return the first state, with the start moved into the set if need be."""
        x = check_first(self, x0, size, seed)
        if self.needs_gradient and not size.has_gradient:
            raise InputError(
                f"{self._name}: a gradient of the losses is needed, got values alone. "
                "Give one, Losses(values, n, gradient=...), or use method='fzcgs', "
                "which needs none."
            )
        domain = self._set(size)
        x = size.clip(x)
        if not domain.contains(x):
            x = domain.project(x).point
        return self._begun(
            iteration=0,
            seed=seed,
            size=size,
            x=x,
            gradient=np.zeros_like(x),
            previous=x,
            active=NO_INDICES,
        )

    def _begun(self, **first: Any) -> FeasibleState:
        return FeasibleState(**first)

    def planned(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Self:
        """Return the method with its horizon set for a run of this length."""
        if self.horizon is not None:
            return self
        lengths = [] if iterations is None else [iterations]
        if queries is not None:
            lengths.append(queries // max(self._queries_per_step(size), 1))
        return replace(self, horizon=max(min(lengths), 1)) if lengths else self

    def policy(self, fixed: frozenset[str]) -> Policy:
        """Return that a run starts again with a smaller step, unless that was set."""
        is_open = self.step_size is not None and "step_size" not in fixed
        return SLOWS_DOWN if is_open else ONE_ROUND

    def new_round(self, state: FeasibleState) -> FeasibleState:
        """Return the state as it is: these methods run in one round."""
        return state

    def weights(self, state: FeasibleState) -> tuple[IntArray, FloatArray]:
        """Return the constraints that held the last answer of the subproblem, equally.

        As far as the feasible set knows which constraint of the problem a row is.
        """
        n_named = getattr(self.domain, "n_named", 0)
        held = state.active[state.active < n_named]
        return held, np.full(len(held), 1.0 / max(len(held), 1))

    def least_queries(self, size: ProblemSize) -> int:
        """Return what the first step costs at most."""
        return self._queries_at_point(size, self._batch(size))

    def _queries_per_step(self, size: ProblemSize) -> int:
        """Return what a step costs on average."""
        return self.least_queries(size)

    def tell(
        self, state: Any, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[Any, Info]:
        """Return the state after one step along the estimated gradient."""
        gradient = self._estimate(state, queries, replies)
        move = self._move(state, gradient)
        moved = replace(
            state,
            iteration=state.iteration + 1,
            x=move.x,
            gradient=gradient,
            previous=state.x,
            active=move.active,
            **move.also,
        )
        events = move.events
        if state.iteration == 0:
            events = (*events, *self._first_events(state.size))
        objective = float(np.mean([reply.losses[0].mean() for reply in replies]))
        info = Info(sampled_objective=objective, n_inner=move.n_inner, events=events)
        return moved, info

    def _move(self, state: Any, gradient: FloatArray) -> Move:
        """Return where a step along the estimated gradient leads."""
        raise NotImplementedError

    # ----------------------------------------------------------------- the estimates

    def ask(self, state: FeasibleState) -> tuple[Query, ...]:
        """Ask around the iterate, and around the one before where they are compared."""
        rng = stream(state.seed, state.iteration)
        losses = self._draw(rng, state)
        steps = self._steps(rng, state.size, len(losses))
        here = self._ask_at(state, state.x, steps, losses)
        if not self._looks_back(state):
            return here
        return here + self._ask_at(state, state.previous, steps, losses)

    def _looks_back(self, state: FeasibleState) -> bool:
        """Whether the iterate is compared with the one before."""
        return False

    def _draw(self, rng: np.random.Generator, state: FeasibleState) -> IntArray:
        """Draw losses uniformly, with repeats."""
        return rng.integers(state.size.n_losses, size=self._batch(state.size))

    def _estimate(
        self, state: FeasibleState, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> FloatArray:
        """Return the gradient from the answers, corrected where points are compared."""
        looks_back, size = self._looks_back(state), state.size
        n_expected = 1 + looks_back
        if self.per_sample:
            n_expected *= len(self._draw(stream(state.seed, state.iteration), state))
        check_replies(state.iteration, queries, replies, n_expected)
        if not looks_back:
            return self._gradient(queries, replies, size)
        both = in_common(queries, replies)
        if both is None:
            return state.gradient
        new = self._gradient(both.queries, both.replies, size)
        old = self._gradient(both.queries_before, both.replies_before, size)
        return self._corrected(state, new, old)

    def _corrected(
        self, state: FeasibleState, new: FloatArray, old: FloatArray
    ) -> FloatArray:
        """Return the next estimate from those of one batch at both points."""
        raise NotImplementedError

    def _estimator(self, size: ProblemSize) -> Estimator:
        if self.estimator != "auto":
            return self.estimator
        few = size.dim <= MANY_VARIABLES and not self.per_sample
        return "coordinate" if few else "sphere"

    def _batch(self, size: ProblemSize) -> int:
        """How many losses an estimate looks at."""
        return self.loss_batch or COMPARED_BATCH

    def _radius(self, size: ProblemSize) -> float:
        wanted = self.radius or self._theory_radius(size)
        return max(wanted, LEAST_RADIUS)

    def _theory_radius(self, size: ProblemSize) -> float:
        return 1e-3

    def _steps(
        self, rng: np.random.Generator, size: ProblemSize, batch: int
    ) -> FloatArray:
        return draw_steps(
            rng,
            self._estimator(size),
            self._radius(size),
            batch if self.per_sample else self.n_directions,
            size.dim,
        )

    def _ask_at(
        self, state: FeasibleState, x: FloatArray, steps: FloatArray, losses: IntArray
    ) -> tuple[Query, ...]:
        return ask_around(
            x,
            steps,
            losses,
            iteration=state.iteration,
            size=state.size,
            estimator=self._estimator(state.size),
            per_sample=self.per_sample,
        )

    def _gradient(
        self, queries: Sequence[Query], replies: Sequence[Reply], size: ProblemSize
    ) -> FloatArray:
        return estimate(queries, replies, self._estimator(size), self._radius(size))

    def _queries_at_point(self, size: ProblemSize, batch: int) -> int:
        """Return the most that an estimate at one point may cost."""
        if self.per_sample:
            return 2 * batch
        n_points = 1 + self.n_directions
        if self._estimator(size) == "coordinate":
            n_points = 1 + 2 * size.dim
        return n_points * min(batch, size.n_losses)

    # ------------------------------------------------------------------------ helpers

    @property
    def _name(self) -> str:
        return type(self).__name__

    @property
    def _n_steps(self) -> int:
        """The number of iterations that formulas reckon with."""
        return self.horizon or DEFAULT_HORIZON

    def _set(self, size: ProblemSize) -> Domain:
        """Return the feasible set; refuse to work without one that fits."""
        if self.domain is None:
            raise InputError(
                f"{self._name}: a feasible set is needed, got none. Call "
                "dszog.minimize, which makes it from the constraints, or give "
                "domain=, for example dszog.subproblems.L2Ball(dim=..., radius=...)."
            )
        if self.domain.dim != size.dim:
            raise InputError(
                f"{self._name}: `domain` has {self.domain.dim} variables, the problem "
                f"has {size.dim}. Give a set with one entry per variable."
            )
        if self.needs_bounded and not self.domain.is_bounded:
            raise InputError(
                f"{self._name}: Frank-Wolfe steps need a bounded set, got "
                f"{self.domain!r}. Give finite bounds, or a ball: ball='l2', "
                "ball_radius=10."
            )
        return self.domain

    def _towards_corner(
        self, state: FeasibleState, gradient: FloatArray, share: float
    ) -> Move:
        """Go a share of the way to the corner that lies down the gradient."""
        corner = self._set(state.size).lmo(gradient, state.active)
        return Move((1.0 - share) * state.x + share * corner.point, corner.active)

    def _first_events(self, size: ProblemSize) -> tuple[str, ...]:
        wanted = self.radius or self._theory_radius(size)
        if self.needs_gradient or wanted >= LEAST_RADIUS:
            return ()
        return (
            f"radius raised from {wanted:.2g} to {LEAST_RADIUS:g}, against rounding",
        )


def check_shares(owner: FeasibleMethod, **values: float) -> None:
    """Refuse steps of a convex combination that are not in (0, 1]."""
    for name, value in values.items():
        if not 0.0 < check_number(owner, name, value) <= 1.0:
            raise InputError(
                f"{type(owner).__name__}: `{name}` must lie in (0, 1], got {value!r}: "
                "a longer step would leave the set. Try 0.01."
            )
