"""The step: a quadratic program over the models, and what its answer promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dszog.contract.arrays import FloatArray
from dszog.methods.sampled_sqp.elastic_qp import Answer, Rows, solve
from dszog.methods.sampled_sqp.ending import FEASIBLE
from dszog.methods.sampled_sqp.state import SampledSQPState

LONGEST = 1e2  # steps, in units of the point's distance from the origin
UNSOLVED = 1e-3  # a subproblem whose residual is larger is made easier
LAST_PRICE = 1e6  # of violations in the subproblem, in units of the gradient


def merit_weight(state: SampledSQPState) -> float:
    """Return what a unit of violation weighs in the merit: more than it gains."""
    needed = 2.0 * float(state.members.multipliers.max(initial=0.0))
    steepness = float(np.linalg.norm(state.table.gradient))
    return max(needed, 0.5 * (state.weight + needed), 0.5 * steepness, 1e-12)


def solved(
    state: SampledSQPState,
    curvature: FloatArray,
    correction: FloatArray | None,
) -> tuple[SampledSQPState, Answer]:
    """Return the answer of the subproblem, with multipliers, sigma and price."""
    members, size = state.members, state.size
    offsets = members.at(state.z)
    if correction is not None:
        offsets = offsets + correction
    rows, who = members.rows(offsets)
    lower = (size.lower - state.x) / state.scale
    upper = (size.upper - state.x) / state.scale
    gradient = state.table.gradient

    def answered(sigma: float, price: float, start: FloatArray) -> Answer:
        hessian = curvature + sigma * np.eye(size.dim)
        return solve(hessian, gradient, rows, price, lower, upper, start)

    sigma, price = state.sigma, state.price
    answer = answered(sigma, price, members.signed_multipliers(who))
    while answer.residual > UNSOLVED and sigma < 1e12 * state.first_sigma:
        sigma *= 10.0
        answer = answered(sigma, price, answer.multipliers)
    longest = LONGEST * max(float(np.abs(state.z).max()), state.length)
    while np.abs(answer.step).max() > longest and sigma < 1e12 * state.first_sigma:
        sigma *= 10.0
        answer = answered(sigma, price, answer.multipliers)
    highest = LAST_PRICE * (float(np.linalg.norm(gradient)) or 1.0)
    while price < highest and _is_saturated(answer, price):
        higher = answered(sigma, 10.0 * price, answer.multipliers)
        # A higher price is kept if it buys less violation.
        if _excess_of(rows, higher.step) > 0.9 * _excess_of(rows, answer.step):
            break
        answer, price = higher, 10.0 * price
    members = members.with_multipliers(who, answer.multipliers)
    return replace(state, members=members, sigma=sigma, price=price), answer


def optimality_residual(
    state: SampledSQPState,
    curvature: FloatArray,
    answer: Answer,
    now: FloatArray,
) -> float:
    """Return by how much the optimality conditions fail, relative to the forces."""
    members = state.members
    left = curvature @ answer.step + state.sigma * answer.step
    pull = members.slopes.T @ members.multipliers
    reach_of = max(float(np.abs(state.z).max()), state.length)
    force = max(
        float(np.abs(state.table.gradient).max()),
        float(np.abs(pull).max(initial=0.0)),
        state.pairs.stiffness() * reach_of,
        1e-300,
    )
    if not len(state.pairs.steps):  # around the start, over steps that were long enough
        force = max(force, state.first_sigma * state.length)
    violation = float(now.max(initial=0.0)) / reach_of
    return max(float(np.abs(left).max()) / force, violation / FEASIBLE)


def excess(values: FloatArray) -> float:
    """Return the sum of what is positive."""
    return float(np.maximum(values, 0.0).sum())


def _is_saturated(answer: Answer, price: float) -> bool:
    """Whether a row would rather pay the price than hold."""
    return float(np.abs(answer.multipliers).max(initial=0.0)) > 0.99 * price


def _excess_of(rows: Rows, step: FloatArray) -> float:
    """Return the violation of the rows after a step."""
    values = rows.offsets + rows.slopes @ step
    values = np.where(rows.two_sided, np.abs(values), np.maximum(values, 0.0))
    return float(values.sum())
