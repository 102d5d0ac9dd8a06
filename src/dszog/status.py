"""How a run ended, each way with its sentence."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Why a run stopped; an int, as SciPy has it, with a name and a sentence."""

    CONVERGED = 0  # as in SciPy
    MAX_QUERIES = 1
    MAX_TIME = 2
    STOPPED_BY_CALLBACK = 3
    INTERRUPTED = 4
    DIVERGED = 5
    TOO_MANY_FAILURES = 6
    SUBPROBLEM_FAILED = 7
    MAX_ITERATIONS = 8
    STALLED = 9
    LEAST_VIOLATION = 10
    UNBOUNDED = 11
    UNCONFIRMED = 12

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        return _SENTENCES[self]

    @property
    def is_planned(self) -> bool:
        """Whether the run went as far as the caller wanted it to."""
        ends = (Status.MAX_ITERATIONS, Status.STALLED, Status.LEAST_VIOLATION)
        more = (*ends, Status.UNCONFIRMED)
        return self <= Status.STOPPED_BY_CALLBACK or self in more


_SENTENCES = {
    Status.MAX_ITERATIONS: "All iterations were made.",
    Status.MAX_QUERIES: "The query budget is used: no further iteration fits.",
    Status.MAX_TIME: "The time is up.",
    Status.STOPPED_BY_CALLBACK: "A callback or the dashboard ended the run.",
    Status.INTERRUPTED: "The run was interrupted; this is the best point so far.",
    Status.TOO_MANY_FAILURES: "Too many evaluations failed and the run was stopped.",
    Status.SUBPROBLEM_FAILED: "A projection or a linear minimisation failed.",
    Status.CONVERGED: "The run has converged: the optimality conditions hold.",
    Status.STALLED: "No step improves the point: differences show no way down.",
    Status.LEAST_VIOLATION: "No point near this one has a smaller sum of violations.",
    Status.UNBOUNDED: "The objective falls as far as was looked: it has no minimum.",
    Status.UNCONFIRMED: (
        "The run has converged, but a last look at the result does not bear it out."
    ),
    Status.DIVERGED: "The iterates ran away and the run was stopped.",
}
