"""No budget is exceeded while drivers and workers are killed and functions fail."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dszog import SampledSQP
from tests.kept import kept
from tests.runs import Record, said_by
from tests.save.budget_loop import configuration

N_SHARES = 20
EACH = 100  # configurations; with 20 shares of them 2,000


def loop(first: int, last: int) -> dict[str, Any]:
    # Not as a script: workers without cloudpickle have to import its functions.
    code = f"from tests.save.budget_loop import show; show({first}, {last})"
    found: dict[str, Any] = json.loads(said_by("-c", code, OMP_NUM_THREADS="1"))
    return found


def check(found: dict[str, Any], n: int) -> None:
    assert found["configurations"] == n
    assert found["kills"] > 0
    assert found["complaints"] == []
    assert found["exceeded"] == found["miscounted"] == found["most over"] == 0


def test_no_budget_is_exceeded_by_drivers_that_are_killed() -> None:
    check(loop(0, 6), 6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(N_SHARES))
def test_no_budget_is_exceeded_by_drivers_that_are_killed_2000_times(
    share: int, record_property: Record
) -> None:
    first = 100 + EACH * share
    found = kept(f"budget-{first}", partial(loop, first, first + EACH))
    for name in ("configurations", "kills", "with workers", "exceeded", "miscounted"):
        record_property(name, found[name])
    record_property("most over", found["most over"])
    check(found, EACH)


@pytest.mark.parametrize(
    ("number", "method"), [(1609, "fzcgs"), (1703, "sampled_sqp"), (1733, "accszofw")]
)
def test_who_resumes_a_run_that_has_ended_looks_at_the_same_points_and_loses_no_count(
    number: int, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts() -> list[int]:
        one = configuration(number, method)
        one.more |= {"checkpoint": tmp_path / "run", "resume": True}
        result = one.minimize(one.max_queries)
        return [one.box.n_calls, result.nfev + result.ncev, result.costs.n_lost]

    _, charged, _ = counts()
    assert counts() == [0, charged, 0]
    monkeypatch.setattr("dszog.run.final_check.all_finite", lambda _: False)
    n_calls, asked, n_lost = counts()  # looks at none: they were made all the same
    assert (n_calls, asked + n_lost) == (0, charged)
    assert n_lost > 0


@pytest.mark.parametrize("number", [503, 1310])  # the second is a kind of problem
def test_values_that_fail_leave_states_that_can_be_read_again(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def noted(self: SampledSQP, *told: Any) -> Any:
        state, info = tell(self, *told)
        parts = (state, *state.looks, getattr(state, "table", state))
        seen.append(all(one.fits(state.size) for one in parts))
        return state, info

    tell = SampledSQP.tell
    monkeypatch.setattr(SampledSQP, "tell", noted)
    one = configuration(number, "sampled_sqp")
    one.minimize(one.max_queries)
    assert seen
    assert all(seen)
