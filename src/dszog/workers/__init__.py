"""Evaluators hold the user's functions and answer queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from dszog.contract import Query, Reply
from dszog.contract.validation import check_choice, check_positive_number, shown
from dszog.errors import InputError, InputTypeError
from dszog.problem import Problem
from dszog.run.accounting import Traffic
from dszog.workers.base import Evaluator, Workers
from dszog.workers.dask import Dask
from dszog.workers.processes import Processes
from dszog.workers.ray import Ray
from dszog.workers.serial import Serial
from dszog.workers.threads import Threads

__all__ = [
    "EVALUATORS",
    "Dask",
    "Evaluator",
    "Processes",
    "Ray",
    "Serial",
    "Threads",
    "Traffic",
    "Workers",
    "check_evaluator",
    "open_evaluator",
]


class Alone(Workers):
    """No workers: the caller's thread does it."""

    def open(self, problem: Problem, timeout: float | None = None) -> Evaluator:
        return Serial(problem)


WORKERS: dict[str, Callable[[], Workers]] = {
    "serial": Alone,
    "threads": Threads,
    "processes": Processes,
    "dask": Dask,
    "ray": Ray,
}


class _Owned:
    """An evaluator, with workers of its own."""

    def __init__(self, name: str, problem: Problem) -> None:
        self._context = open_evaluator("EVALUATORS", name, problem)
        self._answer = self._context.__enter__()

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        return self._answer(queries)

    def close(self) -> None:
        self._context.__exit__(None, None, None)


EVALUATORS: dict[str, Callable[[Problem], Evaluator]] = {
    name: Serial if name == "serial" else partial(_Owned, name) for name in WORKERS
}
"""Every evaluator by the name `minimize(evaluator=...)` knows it by."""


def check_evaluator(owner: str, evaluator: Any, timeout: Any) -> None:
    """Refuse what is no evaluator, and a timeout that could not be kept."""
    workers = _workers(owner, evaluator)
    if timeout is None:
        return
    check_positive_number(owner, "timeout", timeout)
    if not workers.can_stop:
        raise InputError(
            f"{owner}: `timeout` needs workers that can be ended, got {timeout!r} with "
            f"evaluator={evaluator!r}. Use 'processes', 'dask' or 'ray', or leave the "
            "timeout out."
        )


@contextmanager
def open_evaluator(
    owner: str, evaluator: Any, problem: Problem, timeout: float | None = None
) -> Iterator[Evaluator]:
    """Have an evaluator of a problem for the length of the block."""
    workers = _workers(owner, evaluator)
    try:
        answer = workers.open(problem, timeout)
        try:
            yield answer
        finally:
            answer.close()
    finally:
        if isinstance(evaluator, str):  # what was named is ours; what was passed is not
            workers.close()


def _workers(owner: str, evaluator: Any) -> Workers:
    if isinstance(evaluator, str):
        check_choice(owner, "evaluator", evaluator, EVALUATORS)
        return WORKERS[evaluator]()
    if not isinstance(evaluator, type) and all(
        hasattr(evaluator, name) for name in ("open", "close", "can_stop")
    ):
        workers: Workers = evaluator
        return workers
    raise InputTypeError(
        f"{owner}: `evaluator` must be a name or workers, got "
        f"{shown(evaluator)}. Names: {', '.join(EVALUATORS)}; or an instance such as "
        "dszog.evaluators.Processes(4)."
    )
