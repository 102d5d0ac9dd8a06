from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def two_classes() -> tuple[Any, Any]:
    """Return 200 rows of four columns, of which two tell the classes apart."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 4))
    X[:, :2] += 2.5 * y[:, np.newaxis]
    return X, y


@pytest.fixture
def unfair() -> tuple[Any, Any, Any]:
    """Return rows of which one column tells the group, and labels that differ by it."""
    rng = np.random.default_rng(1)
    group = np.where(rng.random(1500) < 0.4, "few", "many")
    merit = rng.normal(size=1500)
    lift = np.where(group == "many", 1.0, -1.0)
    y = np.where(merit + 0.7 * lift + rng.normal(size=1500) > 0, "yes", "no")
    X = np.column_stack(
        [merit, lift + 0.3 * rng.normal(size=1500), rng.normal(size=1500)]
    )
    return X, y, group
