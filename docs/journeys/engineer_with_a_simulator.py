"""Somebody whose program takes a while, and sometimes fails."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from steps import Journey

# A cooling plate: pipes of some widths have to keep a chip below its temperatures, for
# every load of 300. The engineer has `simulate`, and no more.
N_LOADS, N_SENSORS, N_PIPES = 300, 12, 4
_rng = np.random.default_rng(1)
HEAT = _rng.uniform(0.5, 1.0, size=(N_LOADS, N_SENSORS))
NEAR = _rng.dirichlet(np.ones(N_PIPES), size=N_SENSORS)


def simulate(widths: Any, load: int) -> tuple[float, Any]:
    """Return the power of the pump, and by how much each sensor is too hot."""
    flow = NEAR @ np.sqrt(np.maximum(widths, 0.0))
    return float(np.sum(widths**2)), HEAT[load] / (0.2 + flow) - 1.0


def fails_at_times(widths: Any, load: int) -> tuple[float, Any]:
    """Simulate; one load in fifty does not converge."""
    if load % 50 == 7:
        raise RuntimeError("the solver did not converge")
    return simulate(widths, load)


def forgets_a_sensor(widths: Any, load: int) -> tuple[float, Any]:
    """Simulate, and return one limit too few."""
    power, too_hot = simulate(widths, load)
    return power, too_hot[1:]


def power_only(widths: Any, load: int) -> float:
    """Simulate, and return no limits at all."""
    return simulate(widths, load)[0]


START, BOUNDS = np.full(N_PIPES, 0.8), [(0.0, 2.0)] * N_PIPES
QUICK: dict[str, Any] = {
    "bounds": BOUNDS,
    "options": {"loss_batch": 2, "constraint_batch": 8, "dual_batch": 64},
    "seed": 0,
}


def travel() -> None:
    """Make the journey; workers that read this file do not."""
    journey = Journey("An engineer with a simulator")

    with journey.step("import dszog"):
        import dszog

    with journey.step("one run by hand"):
        power, too_hot = simulate(START, 0)
        assert np.isfinite(power)
        assert too_hot.shape == (N_SENSORS,)

    with journey.mistake(
        "the simulator gets only the design", TypeError, "run(x, i) -> (loss, limits)"
    ):
        dszog.Simulator(lambda widths: simulate(widths, 0), N_LOADS, N_SENSORS)  # type: ignore[misc, arg-type]

    with journey.mistake(
        "it returns no limits", dszog.EvaluationError, "expected a pair", "12 limits"
    ):
        plant = dszog.Simulator(power_only, N_LOADS, N_SENSORS)
        dszog.minimize(plant, START, max_iterations=10, **QUICK)

    with journey.mistake(
        "it returns one limit too few",
        dszog.EvaluationError,
        "returned 11 limits for scenario",
        "expected 12. Return one for each of `width`",
    ):
        plant = dszog.Simulator(forgets_a_sensor, N_LOADS, N_SENSORS)
        dszog.minimize(plant, START, max_iterations=10, **QUICK)

    plant = dszog.Simulator(simulate, n=N_LOADS, width=N_SENSORS)
    with journey.mistake(
        "a budget that one iteration does not fit into",
        ValueError,
        "queries, got max_queries=20",
    ):
        dszog.minimize(plant, START, max_queries=20, **QUICK)

    with journey.step("a first design, with a budget of 15,000 runs"):
        result = dszog.minimize(plant, START, max_queries=15_000, **QUICK)
        print(f"    {result.message}")
        used = result.nfev + result.ncev
        print(
            f"    {used:,} runs, power {simulate(START, 0)[0]:.2f} -> {result.fun:.2f}"
        )
        assert used <= 15_000
        assert result.fun < simulate(START, 0)[0]

    with journey.step("is it safe? every load, by hand"):
        worst = max(simulate(result.x, load)[1].max() for load in range(N_LOADS))
        assert result.maxcv == max(worst, 0.0)
        assert not result.success or worst <= 0.01

    flaky = dszog.Simulator(fails_at_times, n=N_LOADS, width=N_SENSORS)
    with journey.mistake(
        "some runs do not converge",
        dszog.EvaluationError,
        "the solver did not converge",
        "iteration",
    ):
        dszog.minimize(flaky, START, max_iterations=100, **QUICK)

    with journey.step(
        "on_failure='resample': too much fails, and nothing is called safe"
    ):
        result = dszog.minimize(
            flaky, START, max_iterations=100, on_failure="resample", **QUICK
        )
        print(f"    {result.message}")
        assert result.failures.n_failed > 0
        assert not result.success  # what is not known is not satisfied

    with journey.step("a night on two processes: the same design, to the bit"):
        alone = dszog.minimize(plant, START, max_iterations=40, **QUICK)
        shared = dszog.minimize(
            plant, START, max_iterations=40, evaluator=dszog.evaluators.Processes(2),
            **QUICK,
        )  # fmt: skip
        assert shared.x.tobytes() == alone.x.tobytes()

    with journey.step("the power goes off in the middle, and the run goes on"):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "run"

            def cut(progress: dszog.Progress) -> None:
                if progress.iteration == 20:
                    raise StopIteration

            dszog.minimize(
                plant,
                START,
                max_iterations=40,
                checkpoint=folder,
                callback=cut,
                **QUICK,
            )
            resumed = dszog.minimize(
                plant, START, max_iterations=40, checkpoint=folder, resume=True, **QUICK
            )
        assert resumed.x.tobytes() == alone.x.tobytes()

    journey.arrive()


if __name__ == "__main__":
    travel()
