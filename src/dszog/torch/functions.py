"""Losses and constraints of a network: values by index, one for each example."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from dszog.contract import Cost, Query, Reply, cost
from dszog.contract.arrays import FloatArray, IntArray, all_finite
from dszog.contract.hints import about_option
from dszog.contract.validation import check_callable, check_count, shown
from dszog.errors import EvaluationError, InputError, InputTypeError, PurityWarning
from dszog.problem import Problem
from dszog.torch.passes import Both, Passes, in_parts
from dszog.torch.space import ModuleSpace
from dszog.workers._chunks import Assembly, Piece, Place
from dszog.workers.base import answer, failure_of

N_CHECKED = 64  # values that are asked for before a run begins, half of them again
VARY, BESIDE = 1e-2, 5e-2  # of the largest: beyond it is not rounding, also in others


def check_options(options: Any, names: Iterable[str], where: str = "") -> None:
    """Refuse settings that do not exist."""
    if not isinstance(options, Mapping):
        raise InputTypeError(
            f"dszog.torch: `options` must be a dict, got {shown(options)}. Pass one."
        )
    for name in options.keys() - set(names):
        hint = about_option(name, sorted(names), [])
        raise InputError(
            f"dszog.torch: {where}there is no option {name!r}.{hint} There are: "
            f"{', '.join(sorted(names))}."
        )


def all_of(callback: Any) -> list[Any]:
    """Return callbacks that are given as none, as one, or as several."""
    if isinstance(callback, (list, tuple)):
        return [*callback]
    return [] if callback is None else [callback]


def one_for_each(found: Any, wanted: Any, owner: str) -> Any:
    """Return values, if they are a tensor with one for each that was wanted."""
    if not isinstance(found, torch.Tensor):
        raise InputTypeError(
            f"{owner}: values must be a tensor, got {type(found).__name__}. Return one "
            "number for each index."
        )
    n = len(wanted)
    if found.shape != (n,):
        advice = "Return one number for each index."
        if found.ndim == 0:
            advice = "Return one for each example, not their mean: reduction='none'."
        elif found.shape == (n, n):
            advice = "Outputs and targets have other shapes: outputs.squeeze(1)."
        elif found.ndim > 1 and len(found) == n:
            advice = "Return one for each example: values.flatten(1).mean(1)."
        raise InputError(
            f"{owner}: got shape {tuple(found.shape)} for {n} indices. {advice}"
        )
    return found


def n_checked(n: int) -> int:
    """Return how many values are asked for before a run begins."""
    some = min(n, N_CHECKED)
    return some + 2 * max(some // 2, 1)


class TorchLosses:
    """Losses whose mean is minimised.

    Parameters
    ----------
    values : callable
        ``values(indices)`` returns a tensor with the loss of each of the examples, at
        the weights that the network has then; `indices` is a tensor on its device.
    n : int
        How many losses there are.
    """

    _what, _count = "Losses", "n"
    _if_random = "differences of losses would be noise"
    about = ""  # what tells the examples from others, where `update` knows them

    def __init__(self, values: Callable[[Any], Any], n: int) -> None:
        self.owner = f"dszog.torch.{self._what}"  # in messages
        check_callable(self.owner, "values", values, "values(i)", 1)
        self.values = values
        self.n = check_count(self.owner, self._count, n)

    def __len__(self) -> int:
        return self.n

    def at(self, indices: Any) -> Any:
        """Return the values of some, checked: a tensor with one for each."""
        return one_for_each(self.values(indices), indices, self.owner)

    def table(self, space: ModuleSpace, points: FloatArray, which: IntArray) -> Any:
        """Return the values at points, by their names: a row for each."""
        indices = torch.from_numpy(np.array(which)).to(space.device)
        rows = []
        for point in points:
            with space.at(point), torch.no_grad():
                values = in_parts(lambda some: self.at(some).double(), indices)
                rows.append(torch.cat(values).cpu().numpy())
        return np.stack(rows)

    def check(self, device: Any, *, may_vary: bool = False) -> list[float]:
        """Ask for some values before a run begins, for half of them again and again.

        Return them if they stay.
        """
        some = torch.arange(min(self.n, N_CHECKED), device=device)
        half = some[: max(len(some) // 2, 1)]
        with torch.no_grad():
            found = self.at(some).double()
            # In another order: seeded dropout, too, goes by the place in a batch.
            fewer, again = (self.at(half.flip(0)).double().flip(0) for _ in range(2))
        if not bool(torch.isfinite(found).all()):
            raise InputError(
                f"{self.owner}: the first values are not finite, got "
                f"{found[~found.isfinite()][:3].tolist()}. In half precision, compute "
                "losses in float32: outputs.float()."
            )
        beside = float((found[: len(half)] - fewer).abs().max())
        apart, scale = (float(one.abs().max()) for one in (fewer - again, found))
        said = (
            f"{self.owner}: the same {len(half)} examples, asked for twice, gave "
            f"values up to {apart:.2g} apart"
        )
        if apart > VARY * scale and not may_vary:
            raise InputError(
                f"{said}: {self._if_random}. Switch off what is random: "
                "functional.dropout(x, training=self.training), no augmentation in "
                "datasets; if it is rounding alone, give constraints more slack."
            )
        if beside > BESIDE * scale and apart <= VARY * scale:
            raise InputError(
                f"{self.owner}: {len(half)} examples gave values up to {beside:.2g} "
                "apart with and without others in their batch, or in another order: "
                "each must have a value of its own. Give batch norm running "
                "statistics, divide nothing by the size of the batch, and let nothing "
                "go by the place in it, such as noise that is drawn in forward()."
            )
        if apart > 0.0:
            warnings.warn(
                f"{said}. The run goes on, but two runs will not have the same bits, "
                "nor will one that is resumed. If that matters, switch off what is "
                "random, and torch.use_deterministic_algorithms(True).",
                PurityWarning,
                stacklevel=2,
            )
        return found.tolist() if apart <= VARY * scale else []


class TorchConstraints(TorchLosses):
    """Constraints, each of which holds where its value is at most 0.

    Parameters
    ----------
    values : callable
        ``values(indices)`` returns a tensor with the value of each.
    m : int
        How many constraints there are.
    """

    _what, _count = "Constraints", "m"
    _if_random = "which get worse would be chance"
    with_losses: Both | None = None  # both at once, where one pass gives them

    def __init__(self, values: Callable[[Any], Any], m: int) -> None:
        super().__init__(values, m)


def both_of(losses: TorchLosses, constraints: TorchConstraints) -> Both:
    """Return who gives values of both, of which one may not be asked for."""

    def both(i: Any, j: Any) -> tuple[Any, Any]:
        if constraints.with_losses is not None and len(i) and len(j):
            return constraints.with_losses(i, j)
        nothing = torch.zeros(0, device=i.device)
        found = losses.at(i) if len(i) else nothing
        return found, (constraints.at(j) if len(j) else nothing)

    return both


class OneByOne:
    """Workers that are one: the network is at one point at a time.

    An iteration is answered by its `passes` at once; with care, each point and function
    by itself, where they do not give numbers.
    """

    can_stop = False

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self.charge: Callable[[Cost], bool] = lambda _: True
        passes.charge = lambda n: self.charge(Cost(0, n))

    def open(self, problem: Problem, timeout: float | None = None) -> OneByOne:
        """Return an evaluator of this problem."""
        self._problem = problem
        return self

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        """Return one reply per query."""
        if len(queries) == 2 and len(queries[0].steps):
            try:
                replies = self._passes(*queries)
            except EvaluationError:  # the device cannot go on
                raise
            except Exception as error:  # noqa: BLE001  (of a function: with care)
                happened = f"failed with {type(error).__name__}: {error}"
            else:
                if all(all_finite(part) for one in replies for part in one[:2]):
                    return replies
                happened = "are not finite"
            if not self.charge(cost(queries, self._problem.size)):
                return self._unknown(queries, happened)
        return self._with_care(queries)

    def _with_care(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        """Return the replies, with what went wrong: one point, then the next."""
        assembly = Assembly(queries)
        for number, query in enumerate(queries):
            losses = query.distinct_losses[0]
            constraints = query.distinct_constraints[0]
            columns = slice(0, len(losses)), slice(0, len(constraints))
            points = query.points(self._problem.size)
            for row in range(len(points)):
                part = query.part(points[row : row + 1].copy(), losses, constraints)
                place = Place(number, slice(row, row + 1), *columns)
                piece = Piece((part,), (place,))
                assembly.put(piece, answer(self._problem, (part,)))
        return assembly.replies()

    def _unknown(self, queries: Sequence[Query], happened: str) -> tuple[Reply, ...]:
        """Return that nothing is known: the budget has no room for care."""
        assembly = Assembly(queries)
        for number, query in enumerate(queries):
            about = self._problem, query, "exception", "constraint", query.constraints
            failure = failure_of(*about, query.x, f"or losses {happened}", "")
            place = Place(number, slice(0, 1), slice(0, 0), slice(0, 1))
            assembly.note(place, failure)
        return assembly.replies()

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
