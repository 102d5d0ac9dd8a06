"""Somebody with the paper open who wants to see whether this is its method."""

from __future__ import annotations

from typing import Any

import numpy as np
from steps import Journey

journey = Journey("A researcher with the paper open")

rng = np.random.default_rng(0)
rows = rng.normal(size=(120, 5))
labels = np.sign(rows @ rng.normal(size=5) + 0.3 * rng.normal(size=120))

with journey.step("import dszog; the methods of the comparison are there by name"):
    import dszog

    assert {"dszog", "zoscgd", "fzfw", "fzcgs", "fcgs", "acczomda"} <= set(
        dszog.METHODS
    )


def losses(points: Any, i: Any) -> Any:
    """Return the loss of the pairwise task."""
    return -np.expm1(-np.square(labels[i] - points @ rows[i].T))


pairs = dszog.Constraints.pairwise(rows[labels > 0], rows[labels < 0], margin=-0.5)
problem = dszog.Problem(dszog.Losses(losses, len(rows)), pairs.black_box(), 5)

with journey.mistake(
    "the paper's letters as options", ValueError, "'beta'", "letter for 'penalty'"
):
    dszog.minimize(problem, options={"beta": 10.0})

with journey.mistake(
    "a share that cannot be", ValueError, "(0, 1]", "The paper uses 0.1, 0.5 and 0.9"
):
    dszog.DSZOG(averaging=0.0)

with journey.step("Algorithm 1 as printed, by name"):
    printed = dszog.DSZOG.as_published(penalty=10.0)
    assert printed.step_decay == "constant"
    assert printed.directions == "gaussian"
    assert printed.dual_ridge == 1e-6
    result = dszog.minimize(problem, method=printed, max_iterations=300, seed=0)
    print(f"    objective {result.fun:.4f}, worst {result.maxcv:.4f}")

with journey.step("the step of Algorithm 1, done by hand with ask and tell"):
    state = printed.init(np.zeros(5), problem.size, seed=0)
    answer = dszog.EVALUATORS["serial"](problem)
    for _ in range(40):
        before = state
        queries = printed.ask(state)
        state, info = printed.tell(state, queries, answer(queries))
        if info.is_step:
            moved = np.linalg.norm(state.x - before.x)
            length = np.linalg.norm(state.velocity)
            expected = printed.step_size * length / (np.sqrt(length) + printed.step_eps)
            assert np.isclose(moved, expected)
    assert state.iteration == 40

with journey.step("asked twice, it asks the same: nothing is hidden"):
    first, second = printed.ask(state), printed.ask(state)
    assert all(
        (one.x == other.x).all() and (one.constraints == other.constraints).all()
        for one, other in zip(first, second, strict=True)
    )

with journey.mistake(
    "answers that are no replies", dszog.DszogError, "dszog.Reply", "got ndarray"
):
    wrong: list[Any] = [np.zeros(3)] * len(first)
    printed.tell(state, first, wrong)

with journey.step("the weights over the constraints are a distribution"):
    indices, weights = printed.weights(state)
    assert (weights >= 0).all()
    assert weights.sum() <= 1 + 1e-12
    assert len(indices) <= len(pairs)

with journey.step("sparse and dense weights are the same method"):
    ends = [
        dszog.minimize(
            problem,
            method=dszog.DSZOG.as_published(distribution=kind),
            max_iterations=100,
            seed=0,
        ).x
        for kind in ("sparse", "dense")
    ]
    assert np.abs(ends[0] - ends[1]).max() < 1e-9

with journey.step("the definitions of the paper, computed at the answer"):
    evidence = dszog.certify(problem, result.x, weights=result.weights)
    found = evidence.stationarity
    assert found is not None
    for definition, residual in {
        2: found.lagrangian,
        3: found.projected_dual_gradient,
        4: found.outer_gradient,
    }.items():
        print(f"  Definition {definition}: {residual:.2g}")
        assert np.isfinite(residual)

with journey.step("the parameters of the theorem, with its constants"):
    constants = dszog.TheoremConstants(
        accuracy=0.5,
        dim=5,
        smoothness=2.0,
        concavity=1.0,
        gap=1.0,
        variance=0.1,
        dual_variance=0.1,
    )
    theorem = dszog.DSZOG.from_theorem(constants)
    print(f"    step {theorem.step_size:.2g}, {theorem.horizon:,} iterations")
    assert theorem.horizon is not None
    assert theorem.horizon > 1000

with journey.step("a method that needs a projection, on the same pairs"):
    projected = dszog.minimize(
        dszog.Losses(losses, len(rows)),
        np.zeros(5),
        pairs,
        method="acczomda",
        max_iterations=100,
        seed=0,
    )
    print(f"    {projected.message}")
    assert projected.maxcv <= 1e-8

with journey.mistake(
    "the same on a black box", ValueError, "can be projected on", "method='dszog'"
):
    dszog.minimize(problem, method="acczomda")

journey.arrive()
