"""What every evaluator promises, and how queries are answered."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from dszog.contract import NO_GRADIENTS, Failure, Query, Reply
from dszog.contract.arrays import (
    FloatArray,
    IntArray,
    all_finite,
    freeze,
    frozen_floats,
    handed_out,
)
from dszog.contract.validation import ABOUT_TENSORS, is_tensor, shown, shown_point
from dszog.errors import EvaluationError, PrecisionWarning, WrongCountError
from dszog.problem import Problem
from dszog.problem.family import SESSION, Session

CALL_IT = "Call your function at this x to see why"
OF_NETWORKS = (
    "Values must be finite: lower step_size if the weights run away; in half precision "
    "compute losses in float32."
)
BY_INDEX = "one row per point and one column per index."
BY_ROW = "one gradient per row."
_FOR_ONE = {
    "loss": " For a function of one x and many indices: Losses(..., one_point=True).",
    "constraint": " For a function of one x and one j: Constraints.from_function; of "
    "one x and many j: Constraints(..., one_point=True).",
}
_FLOAT = np.dtype(np.float64)


class Evaluator(Protocol):
    """Answers queries about one problem, in their order.

    A value that a user's function does not give is `nan` in the reply, which then says
    why; what to do about it is for others to decide.
    """

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        """Return one reply per query."""
        ...

    def close(self) -> None:
        """Let go of what the evaluator holds; it answers no more."""
        ...


class Workers(Protocol):
    """Who does the work: threads, processes, a cluster."""

    can_stop: bool = False  # whether a call that takes too long can be ended

    def open(self, problem: Problem, timeout: float | None = None) -> Evaluator:
        """Return an evaluator of this problem."""
        ...

    def close(self) -> None:
        """Let go of what was started; not of what the user brought."""
        return


def answer(problem: Problem, queries: Sequence[Query]) -> tuple[Reply, ...]:
    """Evaluate the queries of one iteration in the caller's thread."""
    asker, before = _Asker(problem), SESSION.get()
    try:  # not a context manager: Ctrl-C may come while it is entered
        SESSION.set(asker.calls)
        return tuple([asker.reply(query) for query in queries])
    finally:
        SESSION.set(before)


@cache
def _no_values(n_points: int) -> FloatArray:
    return frozen_floats(np.empty((n_points, 0)))


class _Asker:
    """Calls the user's functions for one query at a time and notes what goes wrong."""

    query: Query
    points: FloatArray
    failures: list[Failure]

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.calls = Session()

    def reply(self, query: Query) -> Reply:
        losses, loss_places = query.distinct_losses
        constraints, constraint_places = query.distinct_constraints
        loss_values = constraint_values = _no_values(len(query.steps) + 1)
        if not len(losses) and not len(constraints):
            return Reply(loss_values, constraint_values)
        problem = self.problem
        points = query.points(problem.size)
        self.points = points if problem.is_unscaled else problem.unscaled(points)
        self.query, self.failures = query, []
        loss_gradients = jacobian = NO_GRADIENTS
        if len(losses):
            loss = "loss" if problem.size.n_losses > 1 else "objective"
            own = problem.losses
            loss_values = self.values(loss, own.values_at, losses, loss_places)
            if query.want == "gradients":
                loss_gradients = self.gradients(loss, own.gradient, losses)
        if len(constraints) and problem.constraints is not None:
            family = problem.constraints
            constraint_values = self.values(
                "constraint", family.values_at, constraints, constraint_places
            )
            if query.want == "gradients":
                jacobian = self.gradients("constraint", family.jacobian, constraints)
        if query.want == "values" and not self.failures:
            return Reply(loss_values, constraint_values)
        return Reply(
            losses=loss_values,
            constraints=constraint_values,
            loss_gradients=spread(loss_gradients, loss_places, axis=0),
            jacobian=spread(jacobian, constraint_places, axis=0),
            failures=tuple(self.failures),
        )

    def values(
        self, what: str, function: Any, indices: IntArray, places: IntArray | None
    ) -> FloatArray:
        """Return a row per point and a column per place; `nan` where not known."""
        shape = (len(self.points), len(indices))
        table = self._table(what, function, self.points, indices, shape)
        if all_finite(table):
            # A copy: the function may keep what it returns, and write into it.
            table = table.copy() if places is None else table.take(places, axis=1)
            table.setflags(False)  # type: ignore[call-arg]
            return table
        row, column = np.argwhere(~np.isfinite(table))[0]
        self._note_value(what, indices[column], row, table[row, column])
        return spread(_known(table), places, axis=1)

    def gradients(self, what: str, function: Any, indices: IntArray) -> FloatArray:
        """Return a gradient per row; `nan` where not known."""
        what = f"gradient of {what}"
        point = self.points[0]
        table = self._table(what, function, point, indices, (len(indices), len(point)))
        if not all_finite(table):
            row, column = np.argwhere(~np.isfinite(table))[0]
            self._note_value(what, indices[row], 0, table[row, column])
        return _known(table * self.problem.x_scale)

    def _table(
        self,
        what: str,
        function: Any,
        where: FloatArray,
        indices: IntArray,
        shape: tuple[int, int],
    ) -> FloatArray:
        """Return what a function returns; `nan` if that is no table of this shape."""
        self.calls.errors.clear()
        try:
            returned = function(handed_out(where), handed_out(indices))
        except (Exception, SystemExit) as error:  # noqa: BLE001  (any code of the user's)
            cure = f"{CALL_IT}; it got arrays of shapes {where.shape} and "
            cure += f"{indices.shape}.{_FOR_ONE.get(what, '')}"
            self._note_error(what, indices, 0, error, cure)
            return np.full(shape, np.nan)
        if (
            type(returned) is np.ndarray
            and returned.dtype is _FLOAT
            and returned.shape == shape
        ):
            return returned
        return self._converted(what, returned, indices, shape)

    def _converted(
        self, what: str, returned: Any, indices: IntArray, shape: tuple[int, int]
    ) -> FloatArray:
        """Return what is no table yet as one of this shape; `nan` if it cannot be."""
        try:
            array = np.asarray(returned)
        except ValueError:  # ragged
            array = np.asarray(None)
        except (TypeError, RuntimeError):
            if not is_tensor(returned):
                raise
            happened = f"returned a tensor that {ABOUT_TENSORS}"
            cure = "Return tensor.detach().cpu().numpy(); for networks: dszog.torch."
            self._note("wrong shape", what, indices, 0, happened, cure)
            return np.full(shape, np.nan)
        if array.size == 1 and shape == (1, 1):
            array = array.reshape(shape)
        if np.ma.isMaskedArray(returned):
            happened = "returned a masked array"
            cure = "Return numbers everywhere: array.filled(...)."
        elif array.dtype.kind not in "fiub":
            happened = f"returned {shown(returned)}"
            cure = f"Return an array of real numbers of shape {shape}."
        elif array.shape != shape:
            happened = f"returned shape {array.shape}"
            form = BY_ROW if what.startswith("gradient") else BY_INDEX
            cure = f"Expected {shape}: return {form}{_FOR_ONE.get(what, '')}"
        else:
            if array.dtype in (np.float16, np.float32) and len(self.query.steps):
                _warn_if_coarse(what, array)
            return np.array(array, dtype=np.float64)
        self._note("wrong shape", what, indices, 0, happened, cure)
        return np.full(shape, np.nan)

    def _note_value(self, what: str, index: int, row: int, value: float) -> None:
        if any(failure.what == what for failure in self.failures):
            return  # an exception or a wrong shape is the better explanation
        indices = np.array([index])
        if self.calls.errors:
            self._note_error(what, indices, row, self.calls.errors[0], f"{CALL_IT}.")
            return
        cure = "Values must be finite."
        if self.problem.simulator is None:
            cure = (
                "Values must be finite: clip the function, or give bounds if the "
                "iterates run away."
            )
        self._note("not finite", what, indices, row, f"returned {value}", cure)

    def _note_error(
        self, what: str, indices: IntArray, row: int, error: BaseException, cure: str
    ) -> None:
        if isinstance(error, EvaluationError):
            is_count = isinstance(error, WrongCountError)
            kind = "wrong count" if is_count else "wrong shape"
            self._note(kind, what, indices, row, f"failed ({error})", "")
            return
        try:
            text = str(error)
        except Exception:  # noqa: BLE001  (code of the user's)
            text = "(its text cannot be made)"
        happened = f"raised {type(error).__name__}: {text}"
        self._note("exception", what, indices, row, happened, cure, error)

    def _note(
        self,
        kind: str,
        what: str,
        indices: IntArray,
        row: int,
        happened: str,
        cure: str,
        error: BaseException | None = None,
    ) -> None:
        about = self.problem, self.query, kind, what, indices, self.points[row]
        self.failures.append(failure_of(*about, happened, cure, error))


def failure_of(
    problem: Problem,
    query: Query,
    kind: str,
    what: str,
    indices: IntArray,
    x: FloatArray,
    happened: str,
    cure: str,
    error: BaseException | None = None,
) -> Failure:
    """Return a failure, with a message that says what, where, when and what to do."""
    at = shown_point(x, problem.names) if problem.names else f"x = {shown(x)}"
    who = _named(what, indices)
    if len(indices) == 1 and (name := problem.name(what, int(indices[0]))):
        who = f"{who} ({name})"
    message = f"{who} {happened} {query.when}, {at}. {cure}"
    if problem.by_name:  # where a network is, its name would not tell
        cure = OF_NETWORKS if kind == "not finite" else ""
        message = f"{who} {happened} {query.when}. {cure}"
    return Failure(
        kind=kind,
        what=what,
        index=int(indices[0]),
        iteration=query.iteration,
        x=x,
        message=message.rstrip(),
        error=error,
    )


def _named(what: str, indices: IntArray) -> str:
    """Return "Loss 7", or "Losses [7, 8, 9, ...]", or "Objective" if there is one."""
    if what.endswith("objective"):
        return what.capitalize()
    if len(indices) == 1:
        return f"{what.capitalize()} {indices[0]}"
    plural = what.capitalize() + ("es" if what.endswith("s") else "s")
    listed = ", ".join(map(str, indices[:3].tolist()))
    return f"{plural} [{listed}]" if len(indices) <= 3 else f"{plural} [{listed}, ...]"


def _warn_if_coarse(what: str, table: Any) -> None:
    """Warn where single precision drowns the differences between points."""
    kind, values = table.dtype, np.array(table, dtype=np.float64)
    spread = np.abs(values[1:] - values[0])
    unit = float(np.finfo(kind).eps) * np.abs(values).max()
    if (spread == 0.0).mean() > 0.01 or unit > 0.1 * np.median(spread):
        factor = 10.0 * unit / max(float(np.median(spread)), 1e-3 * unit)
        warnings.warn(
            f"Values of each {what} come in {kind}: their differences at this "
            f"radius are rounding, so the gradient is noise. Return float64, or use a "
            f"radius some {factor:.0f} times as large.",
            PrecisionWarning,
            stacklevel=2,
        )


def _known(table: FloatArray) -> FloatArray:
    """Return the table with `nan` for every value that is no finite number."""
    return frozen_floats(np.where(np.isfinite(table), table, np.nan))


def spread(values: FloatArray, places: IntArray | None, axis: int) -> FloatArray:
    """Give each repeated index the value of its one evaluation."""
    if places is None or not values.size:
        return values
    return freeze(values.take(places, axis=axis))
