"""`tune`: find a step size and a penalty, and see what was tried."""

from __future__ import annotations

from typing import Any

from dszog.contract.validation import shown
from dszog.errors import InputTypeError
from dszog.minimize import minimize
from dszog.tuning import Tuning, TuningReport


def tune(
    fun: Any,
    x0: Any = None,
    constraints: Any = (),
    *,
    n_settings: int | None = None,
    **arguments: Any,
) -> TuningReport:
    """Choose the step size and the penalty of a method by short runs.

    All of the budget goes into the trials. To have a run follow at once, in the same
    budget, there is ``minimize(tune=True)``.

    Parameters
    ----------
    fun, x0, constraints
        The problem, as :func:`dszog.minimize` takes it.
    n_settings : int, optional
        See :class:`dszog.Tuning`.
    **arguments
        As in :func:`dszog.minimize`; a budget is needed. `options` that are given there
        stay as they are.

    Returns
    -------
    TuningReport
        Print it for a table; ``options`` are for ``minimize``, and with ``x0=found.x``
        and ``weights=found.weights`` it goes on from the best trial.

    Examples
    --------
    >>> import numpy as np
    >>> import dszog
    >>> far = dszog.Problem(  # variables of order 100, not 1
    ...     lambda x: np.sum((x / 100 - 2.0) ** 2),
    ...     dszog.Constraints.linear(np.eye(2), [100.0, 100.0]),
    ...     dim=2,
    ... )
    >>> found = dszog.tune(far, max_queries=20_000, seed=0)
    >>> found.options["step_size"] > dszog.DSZOG().step_size
    True
    """
    for name in ("tune", "checkpoint", "resume"):
        if name in arguments:
            raise InputTypeError(
                f"tune: there is no argument {name!r}, got {shown(arguments[name])}. "
                "Leave it out."
            )
    plan = Tuning(share=1.0, n_settings=n_settings)
    result = minimize(fun, x0, constraints, tune=plan, **arguments)
    report: TuningReport = result.tuning
    return report
