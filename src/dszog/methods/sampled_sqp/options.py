"""The settings of the sampled SQP, and what the budget leaves room for."""

from __future__ import annotations

from dataclasses import dataclass

from dszog.contract import ProblemSize
from dszog.contract.validation import (
    check_count_fields,
    check_nonnegative,
    check_positive,
)
from dszog.methods.sampled_sqp.state import SampledSQPState

GROWTH_SHARE = 0.3  # of the queries left that a larger table may cost
LEAST_GROWTH = 16  # rows
NEW_CASES = 5  # looked at in a trial, where a call returns many constraints
PART, FEWEST_LOOKED = 16, 32  # of constraints: one in so many; but so many at least
QUIET_CASES = 2000  # unseen cases without a violation that end a run
KEPT = 0.5  # of the violation that the caller allows
LEFT = 0.9  # of that: what one of many cases may be violated by where a run ends
AGAIN = 500  # seen cases that are looked at again before the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What can be set; :class:`dszog.SampledSQP` says what each means."""

    tol: float = 1e-6
    constraint_batch: int = 256
    loss_batch: int = 32
    noise_share: float = 0.5
    horizon_queries: int | None = None
    constraint_tol: float | None = None

    def __post_init__(self) -> None:
        check_positive(
            self,
            tol="Try 1e-6.",
            noise_share="Try 0.5; less asks for more losses before each step.",
        )
        check_count_fields(self, "constraint_batch", "loss_batch")
        check_count_fields(self, "horizon_queries", optional=True)
        if self.constraint_tol is not None:
            check_nonnegative(self, "constraint_tol", self.constraint_tol)


def first_batch(options: Options, size: ProblemSize) -> int:
    """Return how many unseen constraints, or cases, a trial looks at, at first."""
    if not size.by_case:
        share = max(size.n_constraints // PART, FEWEST_LOOKED)
        return min(options.constraint_batch, share)
    most = max(NEW_CASES, 2 * size.dim)
    return min(max(options.constraint_batch // size.block_width, NEW_CASES), most)


def least_violation(options: Options, state: SampledSQPState) -> float:
    """Return how large a raw value has to be to be worth a model of its own.

    A part of a usual length, but no more than the caller allows, as far as values can
    tell. Of cases that much, since each that joins costs many calls; before the end
    nearly all that is allowed if there are many, since all are then looked at anew.
    """
    least = options.tol * state.length * state.members.usual_size
    if options.constraint_tol is None:
        return least
    allowed, noise = KEPT * options.constraint_tol, 4.0 * state.constraint_noise
    if state.phase == "verify" and state.size.by_case and state.size.n_cases > AGAIN:
        allowed = max(allowed, LEFT * options.constraint_tol - noise)
    if state.size.by_case:
        return max(allowed, noise)
    return min(least, max(allowed, noise))


def queries_left(options: Options, state: SampledSQPState) -> float:
    """Return how many queries are left; many if there is no limit."""
    if options.horizon_queries is None:
        return 10 * 2**20
    return max(options.horizon_queries - state.n_queries, 0)


def affordable_rows(options: Options, state: SampledSQPState) -> int:
    """Return by how many losses the table may grow; at most to twice its size."""
    b = len(state.table)
    per_row = 1 if state.size.has_gradient else state.size.dim + 1
    n_more = min(b, int(GROWTH_SHARE * queries_left(options, state)) // per_row)
    return n_more if n_more >= min(LEAST_GROWTH, state.size.n_losses - b) else 0
