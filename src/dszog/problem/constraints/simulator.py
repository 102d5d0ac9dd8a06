"""A simulator whose one call returns a loss and many limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import (
    Names,
    as_numbers,
    check_callable,
    check_count,
    check_naming,
    name_in,
    shown,
)
from dszog.errors import EvaluationError, InputError, WrongCountError
from dszog.problem.constraints.base import Constraints
from dszog.problem.constraints.callables import values_by_block
from dszog.problem.family import (
    Grain,
    as_vector,
    call_vector,
    check_family_size,
    real_array,
)
from dszog.problem.losses import Losses


class Simulator:
    """Scenarios, of each of which one call returns the loss and all limits.

    Parameters
    ----------
    run : callable
        ``run(x, i) -> (loss, limits)`` for scenario `i`: a number, and `width` values
        that hold where they are at most 0, or between `lower` and `upper`.
    n : int or tuple of int
        The number of scenarios. ``(200, 156)`` if they are all pairs of 200 loads and
        156 outages, say, those of one load in a row: a run then looks first where bad
        loads and bad outages meet.
    width : int
        The number of values that a call returns beside the loss.
    objective : callable, optional
        ``objective(x) -> float`` where the objective is not a mean over scenarios, such
        as the cost of a plant in which nothing has failed. Then ``run(x, i)`` returns
        the limits alone.
    lower, upper : float or array_like of shape (width,), optional
        Where each value has to lie; `inf` and `-inf` are no limit. A value with both
        has two limits: all upper ones of a scenario come first, then the lower ones. If
        neither is given, values have to be at most 0; if one is, it is the only one.
    scale : float or array_like of shape (width,)
        The size of each value. Violations are divided by it, so that
        ``constraint_tol=0.01`` is one percent of the size of each.
    weights : array_like of shape (n,), optional
        How much each scenario counts in the mean loss. Equal ones if not given.
    names : (cases, limits), optional
        Names of the scenarios and of the values, each a list of strings, a function of
        the number, or None; shown wherever a constraint is.
    initializer : callable, optional
        ``initializer()``, called once in every process before its first call: it opens
        what `run` uses, such as a licence or a model. Not in the `timeout`.
    retries : int, optional
        How often a call that fails is made again, at once. Each counts as a query. If
        not given: up to three times while that helps, unless a failure is an error.

    Notes
    -----
    The objective is the mean loss over the scenarios if none is given, the constraints
    are all limits of all scenarios; limit ``k`` of scenario ``i`` has the index
    ``i * n_limits + k``, and `n_limits` is `width` where all have one side.
    Within an iteration the simulator is called once for each point and scenario,
    whether its loss, its limits or both are asked for, and that is one query.

    Examples
    --------
    >>> import numpy as np
    >>> demand = np.array([1.0, 2.0, 3.0])
    >>> def run(x, i):
    ...     return x[0], [demand[i] - x[0], x[0] - 10.0]
    >>> plant = Simulator(run, n=3, width=2)
    >>> len(plant.constraints)
    6

    Volts and amperes as they are, each with its limits, size and name:

    >>> grid = Simulator(
    ...     lambda x, i: [230.0 * x[0], 400.0 * x[1]],
    ...     n=3,
    ...     width=2,
    ...     objective=sum,
    ...     lower=[207.0, -np.inf],
    ...     upper=[253.0, 300.0],
    ...     scale=[230.0, 300.0],
    ...     names=(["calm", "windy", "cold"], ["volts", "amperes"]),
    ... )
    >>> [grid.constraints.name(j) for j in (0, 2, 4)]
    ['calm, upper volts', 'calm, lower volts', 'windy, amperes']
    """

    def __init__(
        self,
        run: Callable[[FloatArray, int], Any],
        n: int | float | tuple[int, ...],
        width: int,
        *,
        objective: Callable[[FloatArray], float] | None = None,
        lower: Any = None,
        upper: Any = None,
        scale: Any = 1.0,
        weights: Any = None,
        names: tuple[Names | None, Names | None] | None = None,
        initializer: Callable[[], Any] | None = None,
        retries: int | None = None,
    ) -> None:
        returned = "(loss, limits)" if objective is None else "limits"
        check_callable("Simulator", "run", run, f"run(x, i) -> {returned}", 2)
        if objective is not None:
            expected = "objective(x) -> float"
            check_callable("Simulator", "objective", objective, expected, 1)
        self._run = run
        self.objective = objective
        parts = n if isinstance(n, tuple) and n else (n,)
        self.shape = tuple(check_count("Simulator", "n", part) for part in parts)
        self.n = math.prod(self.shape)
        self.width = check_count("Simulator", "width", width)
        check_family_size("Simulator", "m", self.n * self.width)
        self._sides = _Sides.of(self.width, lower, upper, scale)
        self.n_limits = len(self._sides.places)
        check_family_size("Simulator", "m", self.n * self.n_limits)
        self._factors = self._check_weights(weights)
        self._names = self._check_names(names)
        if initializer is not None:
            check_callable("Simulator", "initializer", initializer, "initializer()", 0)
        self._initializer, self._is_ready = initializer, False
        self.retries = retries
        if retries is not None:
            self.retries = check_count("Simulator", "retries", retries, least=0)
        self.grain = Grain(each=True)

    def _check_weights(self, weights: Any) -> FloatArray | None:
        if weights is None:
            return None
        if self.objective is not None:
            raise InputError(
                "Simulator: `weights` are for a mean loss over scenarios, got them "
                "beside an objective. Leave one of them out."
            )
        given = as_numbers("Simulator", "weights", weights)
        total = given.sum()
        if given.shape != (self.n,) or not (given >= 0).all() or not 0 < total < np.inf:
            raise InputError(
                f"Simulator: `weights` must be {self.n:,} numbers from 0 on, not all "
                f"0, got {shown(weights)}. Give one for each scenario."
            )
        factors: FloatArray = self.n * (given / total)
        return factors

    def _check_names(self, names: Any) -> tuple[Names, Names]:
        if names is None:
            return (), ()
        if not isinstance(names, Sequence) or len(names) != 2 or isinstance(names, str):
            raise InputError(
                "Simulator: `names` must be a pair, of the cases and of the limits, "
                f"got {shown(names)}. Pass (cases, limits), or None for one of them."
            )
        sizes = ("cases", self.n), ("limits", self.width)
        cases, limits = (
            () if given is None else check_naming(f"Simulator ({what})", given, size)
            for given, (what, size) in zip(names, sizes, strict=True)
        )
        return cases, limits

    def share_of(self, cases: IntArray) -> float:
        """Return which share of the mean loss these cases have."""
        if self._factors is None:
            return len(cases) / self.n
        return float(self._factors[cases].sum()) / self.n

    @property
    def has_scale(self) -> bool:
        """Whether the sizes of values are given."""
        return bool((self._sides.scales != 1.0).any())

    def case_name(self, case: int) -> str:
        """Return what a case is called: its name, or its number."""
        return name_in(self._names[0], case) or f"case {case:,}"

    def value_of(self, limit: int) -> int:
        """Return which of the returned values a limit is of."""
        return int(self._sides.places[limit])

    def limit_name(self, limit: int) -> str:
        """Return what a limit of every case is called."""
        value = self.value_of(limit)
        name = name_in(self._names[1], value) or f"limit {value:,}"
        return self._sides.side(limit) + name

    def in_pieces(self, size: int) -> Simulator:
        """Return the same simulator, run by workers in pieces of at most `size` calls.

        A call is never cut: its loss and its limits come from one piece.
        """
        other = copy(self)
        size = check_count("Simulator.in_pieces", "size", size)
        other.grain = replace(self.grain, size=size)
        return other

    def __repr__(self) -> str:
        return f"Simulator(n={self.n:_}, width={self.width:_})"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_is_ready": False}  # in another process it is not

    def prepare(self) -> None:
        """Call the initializer, if there is one and this process has not yet."""
        if self._initializer is not None and not self._is_ready:
            self._initializer()
            self._is_ready = True

    @property
    def losses(self) -> Losses:
        """The losses of all scenarios, or the objective."""
        if self.objective is not None:
            return Losses.from_function(self.objective)
        losses = Losses(self.loss_values, self.n)
        losses.grain = self.grain
        return losses.named(self._names[0]) if self._names[0] else losses

    @property
    def constraints(self) -> Constraints:
        """All limits of all scenarios."""
        return SimulatorConstraints(self)

    def loss_values(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return the loss of each point (row) and scenario (column)."""
        scenarios = indices.tolist()
        found = np.array([[self._call(x, i)[0] for i in scenarios] for x in points])
        return found if self._factors is None else found * self._factors[indices]

    def limit_values(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return the limits with these indices at each point (row)."""
        return values_by_block(self._limits, points, indices, self.n_limits)

    def _limits(self, x: FloatArray, scenario: int) -> FloatArray:
        """Return the limits of one scenario."""
        returned = self._call(x, scenario)[int(self.objective is None) :]
        return self._sides.limits(returned)

    def _call(self, x: FloatArray, scenario: int) -> FloatArray:
        """Return the loss, where there is one, and then the limits of one scenario."""
        self.prepare()
        width = self.width + (self.objective is None)
        return call_vector(self, self._flat, x, scenario, width=width)

    def _flat(self, x: FloatArray, scenario: int) -> FloatArray:
        returned = self._run(x, scenario)
        if self.objective is not None:
            return self._counted(returned, scenario)
        try:
            loss, limits = returned
        except (TypeError, ValueError):
            raise EvaluationError(
                f"The simulator returned {shown(returned)} for scenario {scenario}, "
                f"expected a pair: the loss and {self.width} limits. Return "
                "(loss, limits)."
            ) from None
        first = as_vector(loss, 1, (scenario,))
        return np.append(first, self._counted(limits, scenario))

    def _counted(self, limits: Any, scenario: int) -> FloatArray:
        """Return the limits; another number of them is a mistake, no failure."""
        given = real_array(limits)
        if given is not None and given.size not in (0, self.width):
            raise WrongCountError(
                f"The simulator returned {given.size:,} limits for scenario "
                f"{scenario}, expected {self.width:,}. Return one for each of `width`, "
                "nan for what is not known."
            )
        return as_vector(limits, self.width, (scenario,))


class _Sides(NamedTuple):
    """Limits of values that have a lower, an upper, or both."""

    places: IntArray  # (n_limits,), of the value that a limit is of
    signs: FloatArray  # (n_limits,), 1 of an upper limit, -1 of a lower one
    bounds: FloatArray  # (n_limits,)
    scales: FloatArray  # (n_limits,)

    @classmethod
    def of(cls, width: int, lower: Any, upper: Any, scale: Any) -> _Sides:
        """Return the limits: where none is given values are to be at most 0."""
        if lower is None and upper is None:
            upper = 0.0
        low, high, sizes = (
            _each(name, given, width)
            for name, given in (
                ("lower", -np.inf if lower is None else lower),
                ("upper", np.inf if upper is None else upper),
                ("scale", scale),
            )
        )
        if wrong := np.flatnonzero(~((sizes > 0) & (sizes < np.inf))).tolist():
            raise InputError(
                f"Simulator: `scale` must be positive, got {sizes[wrong[0]]} for value "
                f"{wrong[0]}. Give the size of each value, such as its limit."
            )
        crossed = ~(low <= high) | (low == np.inf) | (high == -np.inf)
        if wrong := np.flatnonzero(crossed).tolist():
            k = wrong[0]
            raise InputError(
                "Simulator: `lower` and `upper` must leave room for a number, got "
                f"({low[k]}, {high[k]}) for value {k}. Swap or correct them."
            )
        up, down = (np.flatnonzero(np.isfinite(side)) for side in (high, low))
        if not len(up) + len(down):
            raise InputError(
                "Simulator: `lower` and `upper` must have a finite limit, got "
                f"{shown(lower)} and {shown(upper)}. Leave both out for values <= 0."
            )
        places = np.concatenate([up, down])
        signs = np.repeat([1.0, -1.0], [len(up), len(down)])
        return cls(places, signs, np.append(high[up], low[down]), sizes[places])

    def limits(self, returned: FloatArray) -> FloatArray:
        found: FloatArray = self.signs * (returned[self.places] - self.bounds)
        return found / self.scales

    def side(self, limit: int) -> str:
        """Return which side a limit is, where its value has two."""
        if np.count_nonzero(self.places == self.places[limit]) == 1:
            return ""
        return "upper " if self.signs[limit] > 0 else "lower "


def _each(name: str, given: Any, width: int) -> FloatArray:
    numbers = as_numbers("Simulator", name, given)
    if numbers.shape not in ((), (1,), (width,)):
        raise InputError(
            f"Simulator: `{name}` must be a number or one for each of {width:,} "
            f"values, got shape {numbers.shape}. Give one, or one for each."
        )
    return np.broadcast_to(numbers, width)


class SimulatorConstraints(Constraints):
    """The limits of a simulator."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        super().__init__(simulator.limit_values, simulator.n * simulator.n_limits)
        self.grain = simulator.grain

    @property
    def calls(self) -> Calls:
        """One call serves the limits of one scenario."""
        calls = Calls.of_width(self.simulator.n_limits, len(self))
        return replace(calls, shape=self.simulator.shape)

    def name(self, index: int) -> str:
        """Return the case and the limit."""
        case, limit = divmod(index, self.simulator.n_limits)
        named = self.simulator.case_name(case), self.simulator.limit_name(limit)
        return super().name(index) or ", ".join(named)
