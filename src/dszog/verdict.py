"""Whether a run was a success, and what to do if it was not."""

from __future__ import annotations

import numpy as np

from dszog.certificate import Certificate
from dszog.status import Status

SMALL_GRADIENT = 1e-2  # in problems of order one, not worth a word either
STATIONARY_SHARE = 0.5  # of the gradient may be left over before it is worth a word


def is_success(status: Status, certificate: Certificate, constraint_tol: float) -> bool:
    """Decide, in this one place, whether a run was a success.

    It was if it ended as planned, fresh values at the returned point are known and
    finite throughout, and no checked constraint is violated by more than the tolerance.
    """
    return bool(
        status.is_planned
        and certificate.is_known
        and np.isfinite(certificate.x).all()
        and certificate.feasibility.maxcv <= constraint_tol
    )


def headline(
    status: Status, success: bool, certificate: Certificate, *, is_start: bool = False
) -> str:
    """Return in one sentence what became of a run, whose point may be its start."""
    but = "; the start was not improved on" if is_start else ""
    if status == Status.INTERRUPTED:
        return "Interrupted. This is the best point so far."
    if success:
        exact = certificate.feasibility.is_exact
        checked = "every constraint" if exact else "every constraint that was checked"
        return f"Success: {checked} is kept to within the tolerance{but}."
    if not certificate.is_known:
        return "No success: values at the result are not known."
    if status.is_planned:
        return f"No success: the result does not keep the constraints{but}."
    return "No success: the run was stopped early."


def advice(
    status: Status,
    certificate: Certificate,
    penalty: float | None,
    constraint_tol: float,
    *,
    knows_set: bool = True,
) -> list[str]:
    """Return what to do about a run that was no success.

    With `knows_set` False the method kept to a set that the certificate does not know.
    """
    sentences = []
    if status == Status.DIVERGED:
        sentences.append(
            "Lower step_size by a factor of 4, use more n_directions, or scale the "
            "variables and functions to order one."
        )
    if status == Status.TOO_MANY_FAILURES:
        sentences.append(
            "See result.failures for where and why; start where the functions can be "
            "evaluated, give bounds that keep the run there, or lower step_size. A "
            "point fails with any of its values: if single ones fail now and then, "
            "have your function try these again."
        )
    feasibility = certificate.feasibility
    if status == Status.TOO_MANY_FAILURES and not certificate.is_known:
        pass  # no budget helps against that
    elif not certificate.is_known:
        sentences.append(
            "It is not known whether this point is any good: call dszog.certify, or "
            "give a larger budget."
        )
    elif status == Status.INTERRUPTED:
        pass  # unfinished: nothing to be learnt from what is left
    elif feasibility.maxcv > constraint_tol:
        least = max(constraint_tol, 1e-12)
        factor = min(max(2.0 * feasibility.maxcv / least, 2.0), 100.0)
        sentences.append(
            f"The worst violation is above constraint_tol={constraint_tol:g}: give a "
            "larger budget"
            + (
                "."
                if penalty is None
                else f", or set the penalty (it ended at {penalty:.0f}) to about "
                f"{float(f'{factor * penalty:.1g}'):.0f}. If violations stay whatever "
                "the penalty, the constraints may contradict each other."
            )
        )
    elif knows_set and _is_far_from_stationary(certificate):
        sentences.append(
            "The point is feasible but far from stationary: give a larger budget, or "
            "set x_scale to the size of the variables."
        )
    return sentences


def _is_far_from_stationary(certificate: Certificate) -> bool:
    """Whether most of the objective's gradient is left over by all multipliers."""
    found = certificate.stationarity
    return found is not None and found.best_lagrangian > max(
        STATIONARY_SHARE * found.gradient_norm, SMALL_GRADIENT
    )
