"""Asking and telling where a call returns all limits of a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dszog.contract import ProblemSize, Query, Reply, cost
from dszog.contract.arrays import FloatArray, IntArray
from dszog.methods.base import FirstOrder, Info, Noise
from dszog.methods.sampled_sqp.blocks import steps
from dszog.methods.sampled_sqp.blocks.state import BlockState
from dszog.methods.sampled_sqp.looks import read_all
from dszog.methods.sampled_sqp.options import Options


def suits(options: Options, size: ProblemSize) -> bool:
    """Whether to work by cases: all constraints come in such, and losses are few.

    A single call is a vector of constraints, among which there may be equalities.
    """
    return (
        options.by_case
        and size.block_width > 1
        and size.n_constraint_calls > 1
        and not size.has_jacobian
        and not size.has_gradient
        and size.n_losses <= options.loss_batch
    )


def least_queries(size: ProblemSize) -> int:
    """Return what the pilot and the first trial cost."""
    members = min(steps.FIRST_MEMBERS, size.n_constraint_calls)
    first = size.n_losses + min(steps.FIRST_LOOK, size.n_constraint_calls)
    learned = (size.dim + 1) * (size.n_losses + members) + 2 * steps.NOISE_POINTS
    return 2 * first + learned


def ask(state: BlockState) -> tuple[Query, ...]:
    """Ask what the state wants to look at."""
    if state.phase == "noise":
        return steps.noise_queries(state)
    return tuple(
        query
        for look in state.looks
        for query in look.queries(state.iteration, state.size)
    )


def tell(
    options: Options,
    state: BlockState,
    queries: Sequence[Query],
    replies: Sequence[Reply],
) -> tuple[BlockState, Info]:
    """Return the state after what was learned, with the next step worked out."""
    charged = cost(queries, state.size)
    phase = state.phase
    state = replace(
        state,
        n_loss_queries=state.n_loss_queries + charged.losses,
        n_constraint_queries=state.n_constraint_queries + charged.constraints,
    )
    if phase == "noise":
        state = steps.after_noise(state, replies)
    elif phase != "done":
        found = read_all(state, queries, replies)
        if phase == "learn":
            state = steps.after_learning(options, state, found)
        else:
            after = {
                "pilot": steps.after_values,
                "trial": steps.after_trial,
                "verify": steps.after_verifying,
            }[phase]
            state = after(options, state, found[0])
    state = replace(state, iteration=state.iteration + 1)
    stop = steps.how(options, state)
    info = Info(
        sampled_objective=state.objective,
        sampled_violation=max(state.violation, 0.0),
        is_step=phase == "trial",
        n_touched=int(np.count_nonzero(state.cases.multipliers)),
        stop=stop,
    )
    return state, info


def weights(state: BlockState) -> tuple[IntArray, FloatArray]:
    """Return the limits of all members, each with its share of the multipliers."""
    indices, multipliers = _pulling(state)
    total = float(multipliers.sum())
    return indices, multipliers / total if total > 0 else multipliers


def first_order(state: BlockState) -> FirstOrder | None:
    """Return how well the optimality conditions hold; None if it is not known."""
    if state.residual < 0.0:
        return None
    return FirstOrder(state.residual, *_pulling(state))


def _pulling(state: BlockState) -> tuple[IntArray, FloatArray]:
    cases, width = state.cases, state.size.block_width
    member, limit = np.nonzero(cases.multipliers)
    indices = cases.numbers[member] * width + limit
    order = np.argsort(indices, kind="stable")
    return indices[order], cases.multipliers[member, limit][order]


def noise(state: BlockState) -> Noise | None:
    """Return the noise of values; None if the run did not get so far."""
    if state.phase in ("pilot", "noise"):
        return None
    return Noise(state.loss_noise, state.constraint_noise)
