"""A simulator whose one call returns a loss and many limits."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_callable, check_count, shown
from dszog.errors import EvaluationError
from dszog.problem.calls import Grain, as_vector, call_vector
from dszog.problem.constraints.base import Constraints
from dszog.problem.constraints.blocks import values_by_block
from dszog.problem.family import check_family_size
from dszog.problem.losses import Losses


class Simulator:
    """Scenarios, of each of which one call returns the loss and all limits.

    Parameters
    ----------
    run : callable
        ``run(x, i) -> (loss, limits)`` for scenario `i`: a number, and `width` values
        that hold where they are at most 0.
    n : int
        The number of scenarios.
    width : int
        The number of limits of each.
    objective : callable, optional
        ``objective(x) -> float`` where the objective is not a mean over scenarios, such
        as the cost of a plant in which nothing has failed. Then ``run(x, i)`` returns
        the limits alone.

    Notes
    -----
    The objective is the mean loss over the scenarios if none is given, the constraints
    are all
    ``n * width`` limits; limit ``k`` of scenario ``i`` has the index ``i * width + k``.
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
    """

    def __init__(
        self,
        run: Callable[[FloatArray, int], Any],
        n: int | float,
        width: int,
        *,
        objective: Callable[[FloatArray], float] | None = None,
    ) -> None:
        returned = "(loss, limits)" if objective is None else "limits"
        check_callable("Simulator", "run", run, f"run(x, i) -> {returned}", 2)
        if objective is not None:
            expected = "objective(x) -> float"
            check_callable("Simulator", "objective", objective, expected, 1)
        self._run = run
        self.objective = objective
        self.n = check_count("Simulator", "n", n)
        self.width = check_count("Simulator", "width", width)
        check_family_size("Simulator", "m", self.n * self.width)
        self.grain = Grain(each=True)

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

    @property
    def losses(self) -> Losses:
        """The losses of all scenarios, or the objective."""
        if self.objective is not None:
            return Losses.from_function(self.objective)
        losses = Losses(self.loss_values, self.n)
        losses.grain = self.grain
        return losses

    @property
    def constraints(self) -> Constraints:
        """All limits of all scenarios."""
        return SimulatorConstraints(self)

    def loss_values(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return the loss of each point (row) and scenario (column)."""
        scenarios = indices.tolist()
        return np.array([[self._call(x, i)[0] for i in scenarios] for x in points])

    def limit_values(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return the limits with these indices at each point (row)."""
        first = int(self.objective is None)
        return values_by_block(
            lambda x, i: self._call(x, i)[first:], points, indices, self.width
        )

    def _call(self, x: FloatArray, scenario: int) -> FloatArray:
        """Return the loss, where there is one, and then the limits of one scenario."""
        if self.objective is not None:
            return call_vector(self, self._run, x, scenario, width=self.width)
        return call_vector(self, self._flat, x, scenario, width=1 + self.width)

    def _flat(self, x: FloatArray, scenario: int) -> FloatArray:
        returned = self._run(x, scenario)
        try:
            loss, limits = returned
        except (TypeError, ValueError):
            raise EvaluationError(
                f"The simulator returned {shown(returned)} for scenario {scenario}, "
                f"expected a pair: the loss and {self.width} limits. Return "
                "(loss, limits)."
            ) from None
        return np.append(
            as_vector(loss, 1, (scenario,)), as_vector(limits, self.width, (scenario,))
        )


class SimulatorConstraints(Constraints):
    """The limits of a simulator."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        super().__init__(simulator.limit_values, simulator.n * simulator.width)
        self.grain = simulator.grain

    @property
    def calls(self) -> Calls:
        """One call serves the limits of one scenario."""
        return Calls.of_width(self.simulator.width, len(self))
