"""What the checks at the door let in, and as what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dszog
from dszog import FZFW, Constraints, InputError, InputTypeError, Losses
from dszog.contract.validation import check_count, did_you_mean
from dszog.maths.subproblems.simple import L2Ball


@pytest.mark.parametrize(
    "value", [10_000, 1e4, np.float64(1e4), np.float32(1e4), np.int32(10_000)]
)
def test_a_whole_number_is_a_count_however_it_is_written(value: Any) -> None:
    count = check_count("minimize", "max_queries", value)

    assert type(count) is int
    assert count == 10_000


@pytest.mark.parametrize(
    "value", [1e4 + 0.5, np.float32(0.5), float("nan"), float("inf"), -np.inf, True]
)
def test_a_number_that_is_not_whole_is_no_count(value: Any) -> None:
    with pytest.raises(InputTypeError, match="`max_queries` must be a whole number"):
        check_count("minimize", "max_queries", value)


def test_budgets_and_sizes_may_be_written_with_an_exponent() -> None:
    def run(**more: Any) -> Any:
        return dszog.minimize(
            Losses(lambda points, i: np.square(points - i).sum(1)[:, None] + 0 * i, 1),
            [0.0, 0.0],
            Constraints.linear(np.eye(2), [1.0, 1.0]),
            seed=0,
            **more,
        )

    plain, written = run(max_queries=1000), run(max_queries=1e3)
    assert written.digest == plain.digest
    m: Any = 1e12
    assert len(Constraints(lambda points, j: points[:, :1] + 0 * j, m)) == 10**12


def test_a_field_becomes_the_whole_number() -> None:
    kinds: list[tuple[Any, str, dict[str, float]]] = [
        (FZFW, "n_directions", {}),
        (FZFW, "loss_batch", {}),
        (FZFW, "period", {}),
        (L2Ball, "dim", {"radius": 1.0}),
    ]
    for kind, name, more in kinds:
        assert type(getattr(kind(**{name: 4.0}, **more), name)) is int
        with pytest.raises(InputError, match=f"`{name}` must be at least"):
            kind(**{name: 0.0}, **more)
    assert FZFW().period is None
    ball: Any = L2Ball
    with pytest.raises(InputTypeError, match="`dim` must be a whole number, got None"):
        ball(dim=None, radius=1.0)


def test_a_beginning_stands_for_the_word_unless_too_many_begin_so() -> None:
    choices = ["step_size", "step_eps", "start", "stop_a", "stop_b", "stop_c", "stop_d"]
    assert did_you_mean("step", choices) == " Did you mean 'step_size' or 'step_eps'?"
    assert did_you_mean("stop", choices).count("'") == 2  # the nearest of four
    assert did_you_mean("start", choices) == " Did you mean 'start'?"
    assert did_you_mean("xyz", choices) == ""
