"""Whether a run was a success, what to do if it was not, and what else to know."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from dszog.contract import Query, Reply
from dszog.evidence.certificate import EXCEEDED, Certificate, Feasibility
from dszog.evidence.stationarity import Stationarity
from dszog.methods.base import BALANCED
from dszog.methods.dszog import HIGHEST_PENALTY
from dszog.problem import Problem
from dszog.run.meter import Meter
from dszog.status import Status

SMALL_GRADIENT = 1e-2  # in problems of order one, of a start that was not improved on
STATIONARY_SHARE = 0.5  # of the gradient left over is far from a stationary point
MANY_VIOLATED = 16  # constraints of which none holds: the sign may be wrong
MOST_PULLS = 5  # constraints that are named
GAIN_LEFT = 0.05  # of what the run gained, if it could gain that much again
LEAST_SHARE = 0.01  # of the gradient left over is worth a word at all


@dataclass(frozen=True, kw_only=True)
class Way:
    """What is known of how a run went, beside where it ended."""

    converges: bool = False  # whether the method knows when it has converged
    # Whether all that the iterates keep to are the problem's own constraints: else the
    # certificate does not know the set.
    knows_set: bool = True
    distance: float = 0.0  # between the start and the result
    gain: float = math.nan  # how far the objectives there are apart, if that is known
    is_falling: bool = False  # whether the objective still fell at the end
    penalty: float | None = None  # the last one, where the method has one

    responds: bool = True  # whether violations fell when the penalty was raised
    has_step: bool = True  # of a size that can be set
    has_own_step: bool = False  # whether the caller set the step size
    fell: bool = False  # whether iterates ran away as the objective fell so far
    never: tuple[str, ...] = ()  # cases of a simulator that gave no value at all
    is_spread: bool = False  # whether these were asked at designs that are far apart
    n_failed: int = 0  # points with values that are not known
    is_impure: bool = False  # whether functions answered the same question otherwise
    pulls: tuple[str, ...] = ()  # constraints that hold the last iterate, if it is told
    takes_options: bool = False  # and nothing else, for settings


def is_success(
    status: Status,
    certificate: Certificate,
    constraint_tol: float,
    way: Way,
) -> bool:
    """Decide, in this one place, whether a run was a success.

    It was if it ended as planned, fresh values at the returned point are known and
    finite throughout, no checked constraint is violated by more than the tolerance, and
    the point is shown to be near to optimal: by a method that converges and has done
    so, by the evidence where methods do not know. Slopes alone are no evidence: without
    constraints they vanish on every saddle.
    """
    is_optimal = status == Status.CONVERGED
    if not is_optimal and not way.converges and certificate.feasibility.n_constraints:
        is_optimal = not _on_optimality(certificate, way, "")
    return bool(
        is_optimal
        and status.is_planned
        and certificate.is_known
        and np.isfinite(certificate.x).all()
        and certificate.feasibility.maxcv <= constraint_tol
    )


def headline(
    status: Status,
    success: bool,
    certificate: Certificate,
    constraint_tol: float,
    *,
    is_start: bool = False,
) -> str:
    """Return in one sentence what became of a run, whose point may be its start."""
    but = "; the start was not improved on" if is_start else ""
    if status == Status.INTERRUPTED:
        return "Interrupted. This is the best point so far."
    if success:
        exact = certificate.feasibility.is_exact
        if not certificate.feasibility.n_constraints:
            return f"Success: the run has converged{but}."
        checked = "every constraint" if exact else "every constraint that was checked"
        return f"Success: {checked} is kept to within the tolerance{but}."
    if not certificate.is_known:
        if certificate.feasibility.lost_names:
            return f"No success: {certificate.feasibility.simulated}."
        return "No success: values at the result are not known."
    if status.is_planned and certificate.feasibility.maxcv <= constraint_tol:
        feasible = "feasible, but " if certificate.feasibility.n_constraints else ""
        return f"No success: {feasible}not shown to be optimal{but}."
    if status.is_planned:
        return f"No success: the result does not keep the constraints{but}."
    return f"No success: {status.sentence[:1].lower()}{status.sentence[1:]}"


def advice(
    status: Status,
    certificate: Certificate,
    way: Way,
    constraint_tol: float,
) -> list[str]:
    """Return what to do about a run that was no success, or not shown to be best."""
    sentences = []
    if status == Status.DIVERGED:
        sentences.append(_against_divergence(way))
    elif status == Status.UNBOUNDED:
        sentences.append(
            "Give bounds, or look at the signs of the objective and the constraints "
            "(SciPy's 'ineq' means fun(x) >= 0)."
        )
    elif status == Status.TOO_MANY_FAILURES:
        lower = ", or lower step_size" if way.has_step else ""
        sentences.append(
            "See result.failures for where and why; start where the functions can be "
            f"evaluated, give bounds that keep the run there{lower}. A "
            "point fails with any of its values: if single ones fail now and then, "
            "have your function try these again."
        )
    feasibility = certificate.feasibility
    if status == Status.TOO_MANY_FAILURES and not certificate.is_known:
        pass  # no budget helps against that
    elif not certificate.is_known and feasibility.lost_names:
        sentences.append(_on_lost_cases(feasibility, way, constraint_tol))
    elif not certificate.is_known and feasibility.n_unknown:
        sentences.append(
            "It is not known whether this point is any good, as constraints gave no "
            "value there: see result.failures, and start from another x0."
        )
    elif not certificate.is_known:
        sentences.append(
            "It is not known whether this point is any good: call dszog.certify, or "
            "give a larger budget."
        )
    elif status == Status.INTERRUPTED:
        pass  # unfinished: nothing to be learnt from what is left
    elif (
        status in (Status.LEAST_VIOLATION, Status.STALLED)
        and feasibility.maxcv > constraint_tol
        and (why := _not_told(way))
    ):
        sentences.append(
            f"The worst violation is {feasibility.maxcv:.3g}. Whether the constraints "
            f"contradict each other cannot be told, because {why}."
        )
    elif status == Status.LEAST_VIOLATION:
        sentences.append(
            f"The worst violation is {feasibility.maxcv:.3g}: the constraints may "
            "contradict each other. Relax those named in "
            f"{_worst(feasibility)}, or start from another x0.{_on_pulls(way)}"
        )
    elif feasibility.maxcv > constraint_tol:
        sentences.append(_against_violation(status, feasibility, way, constraint_tol))
    elif status == Status.CONVERGED:
        pass  # the method has looked at that itself
    elif way.knows_set and status.is_planned:
        more = "" if status == Status.STALLED else ": give a larger budget"
        sentences += _on_optimality(certificate, way, more)
    return sentences


def _not_told(way: Way) -> str:
    """Return why values do not show that constraints contradict each other."""
    if way.is_impure:
        return "functions gave other values when they were asked the same again"
    if way.n_failed:
        return "values are missing at points on the way: see result.failures"
    return ""


def ending_sentence(status: Status, way: Way) -> str:
    """Return how a run ended, in words that its values bear out."""
    if status == Status.LEAST_VIOLATION and _not_told(way):
        return "No point was found near this one that keeps the constraints better."
    return status.sentence


def _on_lost_cases(found: Feasibility, way: Way, constraint_tol: float) -> str:
    """Return what is known beside the cases that could not be simulated."""
    if len(found.lost_calls) == found.n_calls_made:
        return "Start where they can be, and see result.failures for why they failed."
    said = "The others are kept to within the tolerance."
    if found.worst_value > constraint_tol:
        said = f"Of the others the worst is violated by {found.worst_value:.3g}."
    n = len(way.never)
    if not n:
        return (
            f"{said} Those did give values elsewhere: see result.failures, start "
            "where they do, or give bounds that keep the run there."
        )
    named = ", ".join(way.never[:3]) + (", ..." if n > 3 else "")
    said += f" {n:,} {'case' if n == 1 else 'cases'} never gave a value ({named})"
    if not way.is_spread:
        return (
            f"{said}, but all were asked for at one design or close to it: start "
            "elsewhere, and see result.failures for why."
        )
    return (
        f"{said}: see result.failures for why. Leave out what cannot be simulated "
        "anywhere; else start where it can."
    )


def _against_divergence(way: Way) -> str:
    if way.fell:
        return (
            "The objective fell by more than 10,000 times its size at the start. If it "
            "has no least value there, give bounds, or look at the signs of the "
            "constraints; if it has, divide it by its size."
        )
    cures = ["Lower step_size by a factor of 4"]
    if way.has_own_step:
        cures.append("leave it out, so that it is lowered as often as need be")
    cures += ["use more n_directions", "or scale the variables and functions to order "]
    return f"{', '.join(cures)}one."


def _against_violation(
    status: Status, found: Feasibility, way: Way, constraint_tol: float
) -> str:
    """Return what may help: never a larger penalty where that is no cure."""
    above = f"The worst violation is above constraint_tol={constraint_tol:g}: "
    penalty = way.penalty
    own_end = (Status.CONVERGED, Status.UNCONFIRMED, Status.STALLED)
    if penalty is None and status in own_end:
        return f"{above}have the run stop later, by a smaller tol, or allow more."
    if penalty is None:
        return f"{above}give a larger budget."
    if not way.responds:
        return (
            f"{above}raising the penalty to {penalty:g} did not lower it. The "
            "constraints may contradict each other: look at the worst of them, "
            f"{_worst(found)}. If they do not, give a "
            "larger budget, or scale the variables and functions to order one."
        )
    if penalty >= HIGHEST_PENALTY:
        return (
            f"{above}give a larger budget, or scale the variables and functions to "
            f"order one. The penalty ended at {penalty:g}, and a larger one would "
            "only make steps shorter. If violations stay, the constraints may "
            "contradict each other."
        )
    factor = min(max(2.0 * found.maxcv / max(constraint_tol, 1e-12), 2.0), 100.0)
    wanted = float(f"{min(factor * penalty, HIGHEST_PENALTY):.1g}")
    how = f": options={{'penalty': {wanted:g}}}" if way.takes_options else ""
    return (
        f"{above}give a larger budget, or set the penalty (it ended at {penalty:g}) "
        f"to about {wanted:g}{how}. If violations stay whatever the penalty, the "
        "constraints may contradict each other."
    )


def _on_pulls(way: Way) -> str:
    """Return which constraints balance each other where none can be kept better."""
    if len(way.pulls) < 2:
        return ""
    more = len(way.pulls) - MOST_PULLS
    named = "; ".join(way.pulls[:MOST_PULLS]) + (f"; {more:,} more" if more > 0 else "")
    return f" What pulls against each other here: {named}."


def _worst(found: Feasibility) -> str:
    """Return where the worst constraints are listed, the first by name."""
    said = ", ".join(filter(None, found.worst_names[:3]))
    where = "result.certificate.feasibility.worst_indices"
    return f"{where} ({said})" if said else where


def _on_optimality(certificate: Certificate, way: Way, more: str) -> list[str]:
    """Say so where a feasible point is not shown to be near the best one."""
    found = certificate.stationarity
    if found is None:
        why, learned = certificate.note or "not computed", certificate.first_order
        said = f"stationarity is {why}."
        if learned is not None:
            said = f"by the slopes it learned {learned}; from new values {said}"
        return [f"The point is feasible but not shown to be optimal: {said}"]
    if is_far_from_stationary(found, way):
        scale = ", or set x_scale to the size of the variables" if way.has_step else ""
        return [
            "The point is feasible but far from stationary, and not shown to be "
            f"optimal{more}{scale}."
        ]
    if not _may_gain(found, way):
        return []
    share = found.best_lagrangian / found.gradient_norm
    return [
        "The point is feasible but not shown to be optimal: the constraints leave "
        f"{share:.0%} of the objective's gradient{more}."
    ]


def is_far_from_stationary(found: Stationarity, way: Way) -> bool:
    """Whether all multipliers leave over most of a gradient that would lead on."""
    most = STATIONARY_SHARE * found.gradient_norm
    return found.best_lagrangian > most and _may_gain(found, way)


def _may_gain(found: Stationarity, way: Way) -> bool:
    """Whether going on as far again might gain a good part of what the run gained.

    The gradient that is left over times the distance is in units of the objective,
    whatever those of the variables and the constraints are.
    """
    left = found.best_lagrangian
    if not way.distance or math.isnan(way.gain):  # nothing to compare with
        return left > max(STATIONARY_SHARE * found.gradient_norm, SMALL_GRADIENT)
    has_share = left > LEAST_SHARE * found.gradient_norm
    return has_share and left * way.distance > GAIN_LEFT * way.gain


APART, ROUNDED = 1e5, 1e-12  # limits of other sizes; values that may be none
MANY_INNER = 100  # steps of an inner loop, per iteration, that are worth a word


def on_events(events: Counter[str]) -> list[str]:
    """Return what should not have happened, and how often it did."""
    return [
        f"{event[0].upper()}{event[1:]}{f' ({n} times)' if n > 1 else ''}."
        for event, n in sorted(events.items())
    ]


def on_sizes(
    problem: Problem, constraint_tol: float, query: Query, reply: Reply
) -> str:
    """Return what to know where limits of a simulator differ in size by far."""
    simulator = problem.simulator
    if simulator is None or simulator.has_scale:
        return ""
    width, values = simulator.n_limits, np.abs(reply.constraints[0])
    own = (query.constraints < simulator.n * width) & np.isfinite(values)
    sizes = np.zeros(width)
    np.maximum.at(sizes, query.constraints[own] % width, values[own])
    sizes[sizes < ROUNDED * sizes.max()] = np.inf  # perhaps kept to the bit
    least, most = int(sizes.argmin()), int(np.where(sizes < np.inf, sizes, 0).argmax())
    if not sizes[most] >= APART * sizes[least] > 0.0:
        return ""
    few, many = (f"{sizes[k]:.0e} ({simulator.limit_name(k)})" for k in (least, most))
    return (
        f"limits are of sizes from {few} to {many} at the start, while "
        f"constraint_tol={constraint_tol:g} is the same for all: give "
        "Simulator(scale=...)"
    )


def on_start(status: Status) -> list[str]:
    """Return what to know where the result is the point at which the run began."""
    remarks = [
        "Neither the last iterate nor the average was better than where the run began: "
        "this is the start."
    ]
    if status in (Status.STALLED, Status.LEAST_VIOLATION):
        remarks.append("If it is not the answer, begin elsewhere or with another seed.")
    elif status.is_planned:
        remarks.append("If it is not the answer, give a larger budget.")
    return remarks


def on_first_order(status: Status, certificate: Certificate) -> list[str]:
    """Return how well the optimality conditions hold where a run has converged."""
    if status != Status.CONVERGED or certificate.first_order is None:
        return []
    if certificate.first_order.residual > BALANCED:  # next to no forces to compare with
        return ["Values around it show no way down."]
    found, known = certificate.feasibility, certificate.first_order.indices
    if not found.worst_value > EXCEEDED:
        return [f"Its {certificate.first_order}."]
    others = found.worst_values[~np.isin(found.worst_indices, known)]
    but = (
        "; all limits that are exceeded take part, and a smaller constraint_tol keeps "
        "them closer."
    )
    if (most := others.max(initial=0.0)) > EXCEEDED:
        but = (
            f", but a limit beside these is exceeded by {most:.2g}: with a smaller "
            "constraint_tol it takes part."
        )
    return [f"Its {certificate.first_order}{but}"]


def on_set(
    problem: Problem, method: Any, meter: Meter, certificate: Certificate
) -> list[str]:
    """Return what to know about the feasible set of a method at the result."""
    domain = getattr(method, "domain", None)
    remarks = []
    radius = getattr(domain, "ball_radius", math.inf)
    if getattr(domain, "ball", "none") == "l2" and math.isclose(
        float(np.sqrt(np.square(problem.scaled(certificate.x)).sum())),
        radius,
        rel_tol=1e-3,
    ):
        remarks.append(
            f"The result lies on the ball of radius {radius:g}: raise ball_radius "
            "unless the ball is meant."
        )
    if meter.n_inner > MANY_INNER * max(meter.n_iterations, 1):
        remarks.append(
            "Most of the work was the inner loop: options={'exact_prox': True} "
            "puts one projection in its place."
        )
    return remarks


def on_violations(problem: Problem, found: Feasibility, tolerance: float) -> list[str]:
    """Return a question on the signs where not one of many constraints holds."""
    is_many = found.n_checked >= MANY_VIOLATED and found.maxcv > tolerance
    if not is_many or found.n_violated < found.n_checked:
        return []
    form = " (SciPy's 'ineq' means fun(x) >= 0)" if problem.has_scipy_form else ""
    return [
        "All constraints that were looked at are violated: they hold where values are "
        f"<= 0{form}, is the sign right?"
    ]


def on_signs(problem: Problem, certificate: Certificate, way: Way) -> list[str]:
    """Return a word on SciPy's signs where no constraint ends the objective's fall.

    All of them hold, the objective falls on, and the further it falls the better they
    hold. An objective with its least value among them says nothing about their signs.
    """
    found = certificate.stationarity
    if not problem.has_scipy_form or found is None or not found.n_examined:
        return []
    holds = certificate.feasibility.worst_value < -found.active_tol
    if not (holds and way.is_falling and is_far_from_stationary(found, way)):
        return []
    if found.n_opposing:
        return []
    return [
        "The objective falls on, and no constraint is in its way: look at their signs "
        "(SciPy's 'ineq' means fun(x) >= 0), or give bounds."
    ]
