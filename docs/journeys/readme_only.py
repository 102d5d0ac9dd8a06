"""Somebody who has read the README and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from steps import Journey

journey = Journey("The README, and nothing else")
README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
names: dict[str, Any] = {}

with journey.step("import dszog"):
    import dszog

with journey.step("copy the ten lines and run them"):
    exec(compile(BLOCKS[0], "README.md", "exec"), names)
    assert np.allclose(names["result"].x, np.sqrt(0.5), atol=0.01)
    assert names["result"].success

with journey.step("print the certificate, as the text says"):
    said = str(names["result"].certificate)
    print(said)
    assert "constraints" in said
    assert "objective" in said

with journey.step("run them again: the same bits"):
    again = dszog.minimize(
        lambda x: np.sum((x - 2) ** 2), names["x0"], names["constraints"], seed=0
    )
    assert again.x.tobytes() == names["result"].x.tobytes()

with journey.step("copy the second block, with SciPy's dictionaries"):
    exec(compile(BLOCKS[1], "README.md", "exec"), names)
    assert names["result"].success
    assert np.allclose(names["result"].x, [1.4, 1.7], atol=0.05)  # SciPy's tutorial


# Now something of their own: a pile of 3,000 rules, one at a time.
def rule(x: Any, j: int) -> float:
    """Return by how much rule `j` is broken."""
    angle = 0.1 * j
    return float(x[0] * np.cos(angle) + x[1] * np.sin(angle) - 1.0 - 0.5 * (j % 7))


def objective(x: Any) -> float:
    """Return how far a point is from where one wants to be."""
    return float((x[0] - 3) ** 2 + (x[1] - 1) ** 2)


with journey.mistake(
    "their function of one rule goes into Constraints(...)",
    dszog.EvaluationError,
    "at iteration 0",
    "For a function of one x and one j: Constraints.from_function",
):
    dszog.minimize(objective, [0, 0], dszog.Constraints(rule, 3000), seed=0)  # type: ignore[arg-type]

with journey.mistake("they forget to say how many rules there are", TypeError, "'m'"):
    dszog.Constraints.from_function(rule)  # type: ignore[call-arg]

with journey.mistake(
    "a number of rules that is not whole", TypeError, "whole number", "Pass an int"
):
    dszog.Constraints.from_function(rule, 3e3 / 7)

with journey.mistake(
    "max_iter, as everywhere else", TypeError, "Did you mean 'max_iterations'?"
):
    dszog.minimize(  # type: ignore[call-arg]
        objective, [0, 0], dszog.Constraints.from_function(rule, 3000), max_iter=500
    )

with journey.step("Constraints.from_function, as the README says: it works"):
    rules = dszog.Constraints.from_function(rule, 3000)
    result = dszog.minimize(objective, [0, 0], rules, max_iterations=500, seed=0)
    print(f"    {result.x.round(3)}, worst rule broken by {result.maxcv:.4f}")
    assert result.success
    assert result.maxcv <= 0.01
    assert all(rule(result.x, j) <= 0.01 for j in range(3000))

with journey.step("more care: a smaller tolerance"):
    result = dszog.minimize(
        objective, [0, 0], rules, max_iterations=1000, constraint_tol=1e-3, seed=0
    )
    print(f"    {result.message}")
    assert not result.success or result.maxcv <= 1e-3

journey.arrive()
