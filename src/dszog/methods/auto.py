"""``method="auto"``: the sampled SQP where it fits, DSZOG elsewhere, and in which form.

The rule looks at what is known before the run: options, the number of variables, and
the budget. It was measured on problems of six families, both methods with the same
number of queries (``docs/choosing.md``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from dszog.contract import ProblemSize
from dszog.methods.dszog import DSZOG
from dszog.methods.named import settings_for
from dszog.methods.sampled_sqp import SampledSQP
from dszog.methods.slopes import SlopesDSZOG

AUTO = "auto"
OF_METHOD = "The method is "
SQP, BY_SAMPLES = "sampled_sqp", "dszog"
OPTIONS = {
    SQP: [item.name for item in fields(SampledSQP)],
    BY_SAMPLES: [item.name for item in fields(DSZOG)],
}
MOST_VARIABLES = 1000  # beyond, a step takes seconds
LEAST_ITERATIONS = 30
MOST = 0.8  # of the queries that a first step may take: the check needs the others
SHARE = 0.5  # of the queries that learning slopes for the first time may take
FIRST_ROWS = 48  # losses and constraints whose slopes are learned in any case
OPEN = frozenset({"n_directions", "loss_batch", "constraint_batch", "dual_batch"})
MANY, HUGE = 10_000, 2**20  # variables: slopes are kept up to `HUGE`, where all else is
# left open; random signs are taken from `MANY` on if not.


@dataclass(frozen=True)
class Choice:
    """A method, and why it is this one."""

    name: str
    why: str = ""  # empty: it is open, until the problem is known

    @property
    def known_options(self) -> list[str]:
        """Names of options of either method, those of the chosen one first."""
        others = {name for names in OPTIONS.values() for name in names}
        return [*OPTIONS[self.name], *sorted(others - set(OPTIONS[self.name]))]

    @property
    def sentence(self) -> str:
        """What the message of the result says about it."""
        return f"{OF_METHOD}{self.name}: {self.why}."

    def for_problem(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Choice:
        """Return what is chosen for a problem of this size and these budgets."""
        if self.why:
            return self
        why_not = _why_not(size, iterations, queries)
        if why_not:
            return Choice(BY_SAMPLES, why_not)
        n = "1 variable" if size.dim == 1 else f"{size.dim:,} variables"
        return replace(self, why=f"there is room to learn slopes along {n}")

    def but_begun_with(self, name: str) -> Choice:
        """Return the method that a saved run has, whatever would be chosen now."""
        why = "the run in the folder was begun with it"
        if name != self.name:
            why += f"; {self.name} would be chosen now, in an empty folder"
        return Choice(name, why)


def first_choice(options: Iterable[str], *, has_weights: bool) -> Choice:
    """Return what options and arguments ask for."""
    # Options that neither method has, or that no single one has, leave it open: the
    # method refuses them.
    if has_weights:
        return Choice(BY_SAMPLES, "it can start from weights")
    for name, other in ((SQP, BY_SAMPLES), (BY_SAMPLES, SQP)):
        own = [o for o in options if o in OPTIONS[name] and o not in OPTIONS[other]]
        if own:
            return Choice(name, f"{own[0]!r} is an option of it")
    return Choice(SQP)


def _why_not(size: ProblemSize, iterations: int | None, queries: int | None) -> str:
    """Return why the sampled SQP does not fit; empty if it does."""
    if size.dim > MOST_VARIABLES:
        return f"sampled_sqp is for at most {MOST_VARIABLES:,} variables"
    if iterations is not None and iterations < LEAST_ITERATIONS:
        return f"sampled_sqp needs at least {LEAST_ITERATIONS} iterations"
    per_loss = 1 if size.has_gradient else size.dim + 1
    per_row = 1 if size.has_jacobian else size.dim + 1
    n_losses = min(size.n_losses, FIRST_ROWS * 2 // 3)
    n_rows = min(size.n_constraints, FIRST_ROWS // 3 + size.dim)
    if size.by_case:  # one call gives all limits, and few cases matter
        n_rows = min(size.n_cases, FIRST_ROWS // 3)
    needed = n_losses * per_loss + n_rows * per_row
    least = 0 if size.has_jacobian else SampledSQP().least_queries(size)
    if queries is not None and least > MOST * queries:
        return f"sampled_sqp would need {least:,} queries before its first step"
    if queries is not None and needed > SHARE * queries:
        return (
            f"learning slopes would take sampled_sqp {needed:,} queries, more than "
            "half of the budget"
        )
    return ""


def suited(
    method: Any,
    fixed: frozenset[str],
    size: ProblemSize,
    length: float,
    iterations: int | None,
    queries: int | None,
) -> tuple[Any, str]:
    """Return the form of DSZOG for a problem, and what to say of it.

    Slopes are remembered where only values are known, nothing but batches and the
    number of directions is set, and there are up to a million variables. What the
    caller has `fixed` stays; `length` is that of x0.
    """
    if type(method) is not DSZOG or not size.is_black_box:
        return method, ""
    given = {name: getattr(method, name) for name in fixed}
    if fixed <= OPEN and size.dim <= HUGE:
        return SlopesDSZOG(**given), "Slopes of constraints that bind are remembered."
    if size.dim < MANY or given.get("directions", "rademacher") != "rademacher":
        return method, ""
    if "adaptive" in given and not given["adaptive"]:
        given.setdefault("normalised", False)
    chosen = settings_for(given, length, size.dim, size, iterations, queries)
    said = f"There are {size.dim:,} variables: random signs are the directions."
    return replace(method, **chosen), said
