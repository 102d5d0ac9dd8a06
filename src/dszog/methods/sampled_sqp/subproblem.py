"""The step: a quadratic program over the models, and what its answer promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dszog.contract.arrays import FloatArray
from dszog.methods.sampled_sqp.elastic_qp import Answer, LinearModels, solve
from dszog.methods.sampled_sqp.ending import is_feasible, violation_limits
from dszog.methods.sampled_sqp.options import Options
from dszog.methods.sampled_sqp.scales import FIRST_PRICE
from dszog.methods.sampled_sqp.state import SampledSQPState

LONGEST = 1e2  # steps, in units of the point's distance from the origin
HARDLY = 1e-4  # usual lengths: a run that has moved no farther is where it began
NOTHING = 1e-9  # usual lengths: violations after a step that are none
UNSOLVED = 1e-3  # a subproblem whose residual is larger is made easier
PULL = 1e2  # gradients: the most that constraints are believed to pull with
LAST_PRICE = 1e6  # of violations in the subproblem, in units of the gradient


def _merit_weight(state: SampledSQPState) -> float:
    """Return what a unit of violation weighs in the merit: more than it gains."""
    needed = 2.0 * float(state.members.multipliers.max(initial=0.0))
    steepness = float(np.linalg.norm(state.table.gradient))
    least = 1e-12 * state.first_sigma * state.length
    usual = max(needed, 0.5 * (state.weight + needed), 0.5 * steepness, least)
    return max(usual, 0.5 * state.caution * steepness)


def last_price(state: SampledSQPState) -> float:
    """Return the highest price of violations."""
    return LAST_PRICE * (float(np.linalg.norm(state.table.gradient)) or 1.0)


def solved(
    options: Options,
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
    planes, places, heights = state.row_planes()
    rows = LinearModels(
        slopes=np.vstack([rows.slopes, planes.slopes]),
        offsets=np.concatenate([rows.offsets, heights]),
        two_sided=np.append(rows.two_sided, np.zeros(len(planes), dtype=bool)),
    )
    objective_planes = state.objective_planes
    lower = (size.lower - state.x) / state.scale
    upper = (size.upper - state.x) / state.scale
    gradient = state.table.gradient

    def answered(sigma: float, price: float, start: FloatArray) -> Answer:
        if len(objective_planes):
            here = (state.z, state.objective, sigma, gradient)
            return objective_planes.solved(*here, rows, price, lower, upper, start)
        hessian = curvature + sigma * np.eye(size.dim)
        return solve(hessian, gradient, rows, price, lower, upper, start)

    # A problem that was not solved, or whose step is too long, is made stiffer.
    sigma, price = state.sigma, state.price
    start = np.append(members.signed_multipliers(who), np.zeros(len(planes)))
    answer = answered(sigma, price, start)
    while answer.residual > UNSOLVED and sigma < 1e12 * state.first_sigma:
        sigma *= 10.0
        answer = answered(sigma, price, answer.multipliers)
    longest = LONGEST * state.farthest
    while np.abs(answer.step).max() > longest and sigma < 1e12 * state.first_sigma:
        sigma *= 10.0
        answer = answered(sigma, price, answer.multipliers)
    highest = last_price(state)
    pays = np.abs(answer.multipliers[: len(who)]) > 0.99 * price
    if size.by_case and (members.stale * members.bent)[who][pays].any():
        highest = 0.0  # what seems to contradict may only be wrong
    while price < highest and _is_saturated(answer, price):
        higher = answered(sigma, 10.0 * price, answer.multipliers)
        # A higher price is kept if it buys less violation.
        if _excess_of(rows, higher.step) > 0.9 * _excess_of(rows, answer.step):
            break
        answer, price = higher, 10.0 * price
    first = FIRST_PRICE * state.first_sigma * state.length
    if size.by_case or not is_feasible(options, state):
        first = np.inf
    # A row that pays all though it would hold for less only hides the objective.
    while price > first and _is_saturated(answer, price):
        cheaper = answered(sigma, 0.1 * price, answer.multipliers)
        left = max(_excess_of(rows, found.step) for found in (answer, cheaper))
        if left > NOTHING * state.length:
            break
        answer, price = cheaper, 0.1 * price
    members = members.with_multipliers(who, answer.multipliers[: len(who)])
    pulls = np.array(members.multipliers)
    np.add.at(pulls, places, answer.multipliers[len(who) :])
    members = replace(members, multipliers=pulls)
    return replace(state, members=members, sigma=sigma, price=price), answer


def with_step(
    options: Options,
    state: SampledSQPState,
    answer: Answer,
    curvature: FloatArray,
    is_correction: bool,
) -> SampledSQPState:
    """Return the state with the step of an answer, and what it promises.

    A correction of a step keeps the promise of that.
    """
    z, step, gradient = state.z, answer.step, state.table.gradient
    now, then = state.members.at(z), state.modelled(z + step)
    weight = _merit_weight(state)
    curved = float(step @ curvature @ step)
    gain = -(float(gradient @ step) + 0.5 * curved)
    planes = state.objective_planes
    if len(planes):
        gain -= planes.above(z, state.objective, gradient, step)
    promise = gain + weight * (excess(now) - excess(then))
    return replace(
        state,
        step=step,
        curved=curved,
        promise=state.promise if is_correction else promise,
        n_corrected=state.n_corrected + 1 if is_correction else 0,
        weight=weight,
        residual=_optimality_residual(state, curvature, answer, now, options),
    )


def _optimality_residual(
    state: SampledSQPState,
    curvature: FloatArray,
    answer: Answer,
    now: FloatArray,
    options: Options,
) -> float:
    """Return by how much the optimality conditions fail, relative to the forces.

    Along each variable for itself: what is left is compared with the gradient, with the
    pull of the constraints, and with what the gradient would change by if the variable
    moved by its own size. Else a stiff variable would hide the slope along a soft one.
    """
    members, z = state.members, state.z
    left = curvature @ answer.step + state.sigma * answer.step
    pull = members.slopes.T @ members.multipliers
    moves = np.abs(z - state.start / state.scale)
    own = np.maximum(state.away / state.scale, moves)
    if moves.max() <= HARDLY * state.length:  # where the run began
        own = np.maximum(own, state.length)
    bend = np.diagonal(curvature) if len(state.pairs.steps) else state.first_sigma
    pull = np.abs(pull)
    if state.size.by_case:  # of models that may contradict each other
        pull = np.minimum(pull, PULL * np.linalg.norm(state.table.gradient))
    forces = np.maximum(np.abs(state.table.gradient), pull)
    forces = np.maximum(forces, bend * own)
    if not len(state.pairs.steps):  # around the start, over steps that were long enough
        forces = np.maximum(forces, state.first_sigma * state.length)
    unsure = 0.0
    if not state.size.has_gradient:
        unsure = state.loss_noise / state.loss_reach  # an error of differences
    forces = np.maximum(forces, max(unsure / options.tol, 1e-300))
    violation = options.tol * (now / violation_limits(options, state)).max(initial=0.0)
    return max(float((np.abs(left) / forces).max()), float(violation))


def excess(values: FloatArray) -> float:
    """Return the sum of what is positive."""
    return float(np.maximum(values, 0.0).sum())


def _is_saturated(answer: Answer, price: float) -> bool:
    """Whether a row would rather pay the price than hold."""
    return float(np.abs(answer.multipliers).max(initial=0.0)) > 0.99 * price


def _excess_of(rows: LinearModels, step: FloatArray) -> float:
    """Return the violation of the rows after a step."""
    values = rows.offsets + rows.slopes @ step
    values = np.where(rows.two_sided, np.abs(values), np.maximum(values, 0.0))
    return float(values.sum())
