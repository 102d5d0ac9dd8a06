"""Calls that learn how many constraints there are: none is forgotten by a death."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

import dszog
from dszog import (
    CheckpointError,
    CheckpointWarning,
    CheckpointWriteError,
    EvaluationError,
    InputError,
    InputTypeError,
)
from dszog.contract.arrays import FloatArray
from dszog.errors import OtherRunError
from dszog.run.run import SizeNote
from dszog.save.encoding import pack_value
from dszog.save.sizing import NAME, read_note
from dszog.save.store import Store
from tests.save.cells import Killed, charged, die_at
from tests.save.system_calls import watched

pytestmark = pytest.mark.usefixtures("no_syncs")
N_SIZING = 2  # functions of unknown size


@dataclass
class Box:
    """A problem with two SciPy constraints of unknown size, and one of known size."""

    before_call: Callable[[int], None] = field(default=lambda number: None)
    n_calls: int = 0

    def __post_init__(self) -> None:
        self.constraints = [
            NonlinearConstraint(self.limits, -np.inf, 1.0),
            NonlinearConstraint(self.limits, -np.inf, np.ones(3)),
            {"type": "ineq", "fun": lambda x: 2.0 - self._count(float(x @ x))},
        ]

    def _count(self, returned: Any) -> Any:
        self.n_calls += 1
        self.before_call(self.n_calls)
        return returned

    def loss(self, x: FloatArray) -> float:
        return float(self._count(np.sum((x - 2.0) ** 2)))

    def limits(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._count(np.array([x[0], x[1], x.sum()])))

    def run(self, folder: Path | None, **more: Any) -> Any:
        settings: dict[str, Any] = {"max_iterations": 6, "seed": 1, "resume": True}
        settings |= {"options": {"n_directions": 2}, "x0": [0.1, 0.2]}
        if folder is None:
            del settings["resume"]
        return dszog.minimize(
            self.loss,
            constraints=self.constraints,
            checkpoint=folder,
            **(settings | more),
        )

    def problem(self) -> dszog.Problem:
        return dszog.Problem(self.loss, self.constraints, 2, x0=[0.1, 0.2])


def die(*args: Any) -> None:
    raise Killed


def same(first: Any, second: Any) -> bool:
    return bool(
        first.digest == second.digest
        and first.x.tobytes() == second.x.tobytes()
        and (first.nfev, first.ncev) == (second.nfev, second.ncev)
    )


# ----------------------------------------------------------------------------- deaths
@pytest.mark.parametrize("number", range(1, N_SIZING + 1))
def test_calls_of_a_death_at_sizing_are_lost(number: int, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        Box(die_at(number)).run(tmp_path)
    result = Box().run(tmp_path)
    assert result.costs.n_lost == N_SIZING
    assert same(result, Box().run(None))


def test_the_calls_are_noted_before_the_first_is_made(tmp_path: Path) -> None:
    seen = []

    def before(number: int) -> None:
        seen.append((number, read_note(tmp_path)))

    Box(before).run(tmp_path)
    for number, note in seen[:N_SIZING]:
        assert note is not None, number
        assert (note.n_calls, note.widths) == (N_SIZING, ())
    for number, note in seen[N_SIZING:]:
        assert note is not None, number
        assert (note.n_calls, note.widths) == (N_SIZING, (3, 1))


def test_sizes_that_were_learned_before_a_death_are_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, straight = Box(), Box(), Box()
    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", die)  # the first checkpoint
        with pytest.raises(Killed):
            first.run(tmp_path)
    result = second.run(tmp_path)
    assert first.n_calls == N_SIZING
    assert same(result, straight.run(None))
    assert second.n_calls == straight.n_calls - N_SIZING
    assert result.costs.n_lost == 0


def test_a_function_that_returns_more_values_is_named(tmp_path: Path) -> None:
    def limits(x: FloatArray, n_values: int) -> FloatArray:
        return np.resize(1.0 - x, n_values)

    def run(n_values: int, max_iterations: int) -> Any:
        limited = {"type": "ineq", "fun": limits, "args": (n_values,)}
        more: dict[str, Any] = {"checkpoint": tmp_path / "run", "resume": True}
        more |= {"max_iterations": max_iterations, "seed": 0}
        return dszog.minimize(lambda x: float(x @ x), np.zeros(2), limited, **more)

    run(2, 3)
    said = r"limits returned 3 values, but 2 when it was called at x0 .*changed since"
    with pytest.raises(EvaluationError, match=said):
        run(3, 9)


def of_both(first: Any, second: Any, n_values: int = 5) -> FloatArray:
    return np.ones(n_values)


@pytest.mark.parametrize(
    "bound",
    [partial(of_both, 1), partial(of_both, second=1), partial(partial(of_both), 1)],
)
def test_a_function_that_does_not_fit_its_limits_is_named_by_itself(bound: Any) -> None:
    limited = NonlinearConstraint(bound, -np.inf, np.ones(3))
    with pytest.raises(EvaluationError, match=r"\(of_both returned 5 values for 3 lim"):
        dszog.minimize(lambda x: float(x @ x), np.zeros(2), limited, seed=0)


def test_no_death_makes_more_calls_than_are_charged(tmp_path: Path) -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    for number in range(25):
        folder, n_made = tmp_path / f"{number}", 0
        budget = int(rng.integers(60, 400))
        for _ in range(4):
            box = Box(die_at(int(rng.integers(1, 30))))
            with suppress(Killed):
                box.run(folder, max_queries=budget, max_iterations=None)
            n_made += box.n_calls
        box = Box()
        result = box.run(folder, max_queries=budget, max_iterations=None)
        assert n_made + box.n_calls <= charged(result) <= budget


# ----------------------------------------------------------------------------- budgets
def test_a_budget_that_deaths_used_up_costs_no_call(tmp_path: Path) -> None:
    for number in (1, 2):
        with pytest.raises(Killed):
            Box(die_at(number)).run(tmp_path, max_queries=6)
    box = Box()
    with pytest.raises(InputError, match=r"2 queries to learn .*, after 4 .*got .*=6"):
        box.run(tmp_path, max_queries=6)
    assert box.n_calls == 0
    result = box.run(tmp_path, max_queries=600)
    assert result.costs.n_lost == 4
    assert charged(result) <= 600


def test_wrong_calls_are_refused_before_sizes_are_learned(tmp_path: Path) -> None:
    box = Box()
    for wrong in (
        {"constraint_tol": -1.0},
        {"seed": -1},
        {"on_failure": "never"},
        {"weights": ([0], [1.0]), "method": "zopsgd", "options": {}},
    ):
        with pytest.raises(InputError):
            box.run(tmp_path, **wrong)
    assert not read_note(tmp_path)
    for last in (
        {"type": "ineq"},
        LinearConstraint([[1.0, 1.0]], 2.0, 1.0),
        NonlinearConstraint("f", 0.0, 1.0),
        7,
    ):
        with pytest.raises((InputError, InputTypeError)):
            dszog.minimize(box.loss, [0.1, 0.2], [box.constraints, last], seed=0)
    assert box.n_calls == 0


# ------------------------------------------------------- other problems, other folders
def test_another_start_of_a_run_that_began_is_refused(tmp_path: Path) -> None:
    Box().run(tmp_path)
    box = Box()
    with pytest.raises(OtherRunError, match=r"differs in: x0 \(\[0.1, 0.2\]"):
        box.run(tmp_path, x0=[0.3, 0.2])
    box.constraints.pop()
    with pytest.raises(OtherRunError, match=r"unknown size \(2 there, 1 here\)"):
        box.run(tmp_path)
    assert box.n_calls == 0


def test_before_a_run_began_another_start_is_sized(tmp_path: Path) -> None:
    def fail(number: int) -> None:
        raise ValueError("not here")

    with pytest.raises(EvaluationError, match="Start where it can be evaluated"):
        Box(fail).run(tmp_path)
    with pytest.raises(InputError, match="need"):
        Box().run(tmp_path, max_queries=8)
    box = Box()
    result = box.run(tmp_path, x0=[0.3, 0.2])
    assert result.costs.n_lost == 2 * N_SIZING
    assert charged(result) == box.n_calls + 2 * N_SIZING


def test_a_problem_that_was_made_before_is_charged_for_its_calls_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(box: Box) -> Any:
        more: dict[str, Any] = {"max_iterations": 6, "options": {"n_directions": 2}}
        more |= {"checkpoint": tmp_path, "resume": True}
        return dszog.minimize(box.problem(), seed=1, **more)

    first, second, third = Box(), Box(), Box()
    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", die)
        with pytest.raises(Killed):
            run(first)
    result = run(second)
    again = run(third)

    assert first.n_calls == third.n_calls == N_SIZING
    assert same(result, Box().run(None))
    assert result.costs.n_lost == N_SIZING
    assert charged(result) == first.n_calls + second.n_calls
    assert charged(again) == charged(result) + third.n_calls


# ---------------------------------------------------------------------- the note itself
GOOD = SizeNote(n_calls=2, about={"x0": "[1]"}, widths=(3, 1))


@pytest.mark.parametrize(
    "changes",
    [
        {"n_calls": -1, "widths": ()},
        {"n_calls": "2"},
        {"n_calls": 1},
        {"n_calls": 2**63},
        {"about": ["x0"]},
        {"about": {"x0": 1}},
        {"widths": (3.0, 1.0)},
        {"widths": (3, 0)},
        None,
    ],
)
def test_a_note_that_makes_no_sense_is_refused(
    changes: dict[str, Any] | None, tmp_path: Path
) -> None:
    def write(note: Any) -> None:
        (tmp_path / NAME).write_bytes(b"".join(pack_value({}, note)))

    write(GOOD)
    assert read_note(tmp_path) == GOOD
    write({} if changes is None else replace(GOOD, **changes))
    with pytest.raises(CheckpointError, match=r"cannot be used: .* Or delete it"):
        read_note(tmp_path)


def test_a_note_that_cannot_be_written_is_loud_before_any_call(
    tmp_path: Path,
) -> None:
    def fail(name: str, number: int, source: Any, target: Any) -> None:
        if Path(target).name == NAME:
            raise OSError(28, "No space left on device")

    box = Box()
    with watched(("rename",), before=fail):
        said = r"'sizes.dszog' could .*No spac"
        with pytest.raises(CheckpointWriteError, match=said):
            box.run(tmp_path)
        assert box.n_calls == 0
        assert list(tmp_path.iterdir()) == [tmp_path / "lock"]

        with pytest.warns(CheckpointWarning, match="The run goes on"):
            result = box.run(tmp_path, on_save_failure="warn")
    assert result.costs.n_failed_saves == 2
    assert charged(result) == box.n_calls
    assert same(result, Box().run(None))
