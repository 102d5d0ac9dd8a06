"""What the checks at the door let in, and as what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dszog
from dszog import Constraints, Losses
from dszog.contract.validation import check_count


@pytest.mark.parametrize(
    "value", [10_000, 1e4, np.float64(1e4), np.float32(1e4), np.int32(10_000)]
)
def test_a_whole_number_is_a_count_however_it_is_written(value: Any) -> None:
    count = check_count("minimize", "max_queries", value)
    assert type(count) is int
    assert count == 10_000


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
