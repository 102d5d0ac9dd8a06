"""What the message of a result tells beside the verdict: what went on, what to know."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from dszog.contract import Query, Reply
from dszog.evidence.certificate import Certificate
from dszog.problem import Problem
from dszog.run.meter import Meter
from dszog.run.verdict import Way, is_far_from_stationary
from dszog.status import Status

APART, ROUNDED = 1e6, 1e-12  # limits of other sizes; values that may be none
MANY_INNER = 100  # steps of an inner loop, per iteration, that are worth a word


def on_events(events: Counter[str]) -> list[str]:
    """Return what should not have happened, and how often it did.

    Examples
    --------
    >>> on_events(Counter({"a solver was slow": 2}))
    ['A solver was slow (2 times).']
    """
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
    if not sizes[most] >= APART * sizes[least]:
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
    return [f"Its {certificate.first_order}."]


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
