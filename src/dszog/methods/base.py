"""What every method promises: it asks, it is told, and it keeps nothing in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from dszog.contract import ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import check_seed, check_vector, shown
from dszog.errors import InputError, InputTypeError
from dszog.status import Status

BALANCED = 0.01  # of the forces: what may be left over where they say something


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """Where a run stands: all that the next iteration needs, and nothing else.

    Immutable, its arrays read-only: a state can be kept, shared and compared.
    """

    iteration: int  # how often the method was told
    seed: int
    size: ProblemSize
    x: FloatArray  # (dim,), the iterate

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", frozen_floats(self.x))

    @property
    def target(self) -> FloatArray:
        """The point that is asked about next."""
        return self.x

    def back_to(self, good: Any) -> Self:
        """Return the state with half of the step from an earlier one taken back."""
        return replace(self, x=frozen_floats((good.x + self.target) / 2))


class Info(NamedTuple):
    """What a person may want to see of one iteration; nothing that is read again.

    The values are those of the sampled batch, hence noisy; `nan` where none was drawn.
    """

    sampled_objective: float = float("nan")
    sampled_violation: float = float("nan")  # the largest max(f_j, 0) that was seen
    sampled_share: float = float("nan")  # of a uniform draw, the part that is violated
    weighted_violation: float = 0.0  # the mean of max(f_j, 0) over a draw from p
    is_step: bool = True  # False where the method only looks, before a step
    n_touched: int = 0  # constraints with a weight of their own
    n_inner: int = 0  # steps of an inner loop, where the method has one
    events: tuple[str, ...] = ()  # what went differently than it should have
    stop: Status | None = None  # the method has come to its end
    n_held: int = 0  # losses that the objective is of, where they stay the same


class Noise(NamedTuple):
    """By how much single values are off at random, as a method has found."""

    losses: float
    constraints: float


class FirstOrder(NamedTuple):
    """How well the optimality conditions hold at an iterate, as a method has found."""

    residual: float  # relative to the forces that balance each other
    indices: IntArray  # of constraints with a multiplier
    multipliers: FloatArray  # in units of the objective per unit of the constraint

    def __str__(self) -> str:
        n = len(self.indices)
        rows = "1 multiplier" if n == 1 else f"{n:,} multipliers"
        held = "hold to" if self.residual <= BALANCED else "are off by"
        return f"optimality conditions {held} {self.residual:.1g}, with {rows}"


def check_first(owner: object, x0: Any, size: Any, seed: Any) -> FloatArray:
    """Return a copy of the start; refuse what no first state can be made of."""
    name = type(owner).__name__
    if not isinstance(size, ProblemSize):
        raise InputTypeError(
            f"{name}: `size` must be the size of the problem, got {shown(size)}. Call "
            "method.init(x0, problem.size, seed)."
        )
    check_seed(owner, seed)
    x = np.array(check_vector(owner, "x0", x0))  # a copy: the caller keeps theirs
    if len(x) != size.dim:
        raise InputError(
            f"{name}: `x0` has {len(x)} entries for {size.dim} variables. Give one "
            "entry per variable."
        )
    return x


class Method(Protocol):
    """A frozen dataclass of hyper-parameters with pure functions.

    `init`, `ask` and `tell` are the method; a run needs the other four.

    A run looks at fields with these names if there are any: `radius` (warned of where
    it is lost in the rounding of x0), `penalty` (shown in the history; weighs the
    candidates of the final check), `step_size` (named in advice), `domain` (the set
    that iterates keep to), `constraint_tol` (set to the caller's where it is None).

    It may also have ``policy(fixed)``, which returns a `dszog.methods.policy.Policy`:
    what a run does with the method between rounds, and when iterates run away. `fixed`
    are the fields that the caller set, which stay as they are. And ``held(state)``: of
    a simulator the cases that were seen to hold at the iterate, which the final check
    counts as looked at. Leave out some of the worst, to be asked for and named.

    Where a problem has gradients a method asks for them. One that works with values
    alone says so by ``uses_gradients: ClassVar[bool] = False``; tests hold it to that.
    """

    def init(self, x0: FloatArray, size: ProblemSize, seed: int) -> Any:
        """Return the state before the first iteration."""
        ...

    def ask(self, state: Any) -> tuple[Query, ...]:
        """Return what the method wants to know; the same each time it is asked."""
        ...

    def tell(
        self, state: Any, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[Any, Info]:
        """Return the state that follows from the answers to ``ask(state)``."""
        ...

    def planned(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Self:
        """Return the method with what it leaves open settled for a run of this length.

        `None` is no limit. What the user has set is left as it is.
        """
        ...

    def least_queries(self, size: ProblemSize) -> int:
        """Return what the first step, and what precedes it, costs at most."""
        ...

    def new_round(self, state: Any) -> Any:
        """Return the state from which a run with other settings goes on."""
        ...

    def weights(self, state: Any) -> tuple[IntArray, FloatArray]:
        """Return the constraints that stand out and the weight of each."""
        ...
