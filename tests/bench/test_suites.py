"""Foreign suites and families: what is counted, and a quick run of each."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rich")
pytest.importorskip("sklearn")

from dszog_bench import families, foreign, suites, wall
from dszog_bench.peers import Counted, OverError
from dszog_bench.records import Effort

needs_suites = pytest.mark.skipif(
    any(find_spec(name) is None for name in foreign.PACKAGES.values()),
    reason='needs pip install "dszog[bench]"',
)


def parabola(n_equal: int = 0) -> foreign.ForeignProblem:
    """Return x0^2 + x1^2 where x0 <= x1 and x0 + x1 >= 1, or equal."""
    return foreign.ForeignProblem(
        name="parabola", kind="inequalities", fun=lambda x: float(x @ x),
        at=lambda x, j: np.array([x[0] - x[1], 1.0 - x.sum()])[j], m=2, n_equal=n_equal,
        x0=np.array([3.0, 0.0]), lower=np.full(2, -5.0), upper=np.full(2, 5.0),
    )  # fmt: skip


@pytest.mark.parametrize("n_equal", [0, 1, 2])
@pytest.mark.parametrize("solver", [suites.OURS, suites.PEER, "COBYLA"])
def test_a_solver_is_judged_by_feasible_points(solver: str, n_equal: int) -> None:
    run = suites.run(parabola(n_equal), solver)
    suites.judged([run])
    assert run["best"][-1][0] == pytest.approx(0.5, abs=1e-5)
    assert sum(run["solved_after"]) <= run["n_values"] + run["n_constraint_values"]


def test_every_value_is_counted_once_for_each_point() -> None:
    counted = Counted(parabola(), 10**6, 60.0, 1e-6)
    x = np.array([1.0, 1.0])
    counted.fun(x), counted.constraints(x), counted.fun(x)
    counted.some(np.zeros((3, 2)), np.array([1]))
    assert (counted.n_values, counted.n_constraint_values) == (1, 5)
    assert counted.best == [(2.0, 1, 2)]


@needs_suites
def test_the_halves_share_no_problem_and_no_function() -> None:
    chosen, reported = (foreign._names(half) for half in ("choosing", "reporting"))
    for kind in foreign.CLASSES:
        names, others = (
            {name.split()[0] for name in part[kind]} for part in (chosen, reported)
        )
        assert names
        assert others
        assert not names & others


@needs_suites
def test_suites_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    solvers = {name: suites.TRIED[name] for name in (suites.OURS, suites.PEER)}
    monkeypatch.setattr(suites, "TRIED", solvers)
    monkeypatch.setattr(suites, "SOLVERS", (suites.PEER,))
    small = [
        foreign._loaded("inequalities", "HS11"),
        foreign._loaded("equalities", "HS9"),
    ]
    monkeypatch.setattr(suites, "sample", lambda *args: iter(small))
    rows = list(suites.suites_choosing(Effort(output=tmp_path)))
    assert [row.figure for row in rows if row.unit == "of 1"] == [1, 1, 1, 1]
    assert (tmp_path / "suites-choosing.svg").exists()


@pytest.mark.parametrize(
    "make",
    [
        families.nearest,
        families.logistic,
        families.quadratics,
        families.customers,
        pytest.param(families.pairs, marks=pytest.mark.slow),
    ],
)
def test_a_family_has_the_optimum_that_it_says(make: Any) -> None:
    member = make(4, 7) if make is families.pairs else make(4, 7, m=300)
    found = families.queries_to(member, 200_000, seed=0)
    assert found["T3"] is not None
    assert -1e-5 < found["gap"] < 5e-4


def test_noise_and_units_leave_the_problem_as_it_is() -> None:
    member = families.nearest(4, 7, m=300)
    units, x, which = np.array([1e-4, 1.0, 10.0, 1e4]), np.ones((2, 4)), np.arange(3)
    other, noisy = member.in_units(units), member.noisy(1e-3)
    np.testing.assert_allclose(
        other.constraints(x * units, which), member.constraints(x, which)
    )
    values = noisy.constraints(x, which)
    np.testing.assert_array_equal(values, noisy.constraints(x, which))
    np.testing.assert_allclose(values, member.constraints(x, which), rtol=1e-2)
    assert (values != member.constraints(x, which)).all()


def test_a_penalty_over_all_constraints_is_timed_until_the_target() -> None:
    found = wall.swept(families.nearest(4, 7, m=300))
    assert (found.is_reached, found.n_values % (5 * 300)) == (True, 0)


def test_a_peer_is_stopped_by_the_budget() -> None:
    problem = parabola()
    counted = Counted(problem, 100, 60.0, 1e-6, n_values=101)
    with pytest.raises(OverError):
        counted.fun(problem.x0)
