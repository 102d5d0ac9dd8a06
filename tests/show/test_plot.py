"""Pictures of runs: what is on them, and that they can always be drawn."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dszog
from dszog import Result
from dszog.contract.arrays import FloatArray, IntArray
from dszog.show.plot.series import horizontal
from tests.runs import by_dszog, disc

matplotlib = pytest.importorskip("matplotlib")


def distance(x: FloatArray) -> float:
    return float(np.sum((x - 2.0) ** 2))


def run(m: int = 1000, **changes: Any) -> Result:
    arguments: dict[str, Any] = {"max_iterations": 60, "seed": 0} | changes
    return by_dszog(distance, np.zeros(2), disc(m), **arguments)


@pytest.fixture(scope="module")
def result() -> Result:
    return run()


def failing(x: FloatArray, j: int) -> float:
    if x[0] + x[1] > 1.35:
        raise ValueError("no convergence")
    angle = 2 * np.pi * j / 100
    return float(x[0] * np.cos(angle) + x[1] * np.sin(angle) - 1.0)


def contradictory(points: FloatArray, indices: IntArray) -> FloatArray:
    return points[:, :1] * np.where(indices % 2, 1.0, -1.0) + 1.0


ROWS = dszog.Constraints.linear([[1, 1], [1, -1]], np.ones(2))


def axes_of(figure: Any) -> list[Any]:
    return list(figure.findobj(matplotlib.axes.Axes))


def words(figure: Any) -> str:
    texts = figure.findobj(matplotlib.text.Text)
    for table in figure.findobj(matplotlib.table.Table):
        texts += [cell.get_text() for cell in table.get_celld().values()]
    return "\n".join(text.get_text() for text in texts)


def is_drawn(figure: Any) -> bool:
    """Draw it all, but for the pixels."""
    figure.draw_without_rendering()
    return bool(axes_of(figure))


# ------------------------------------------------------------------------ what is drawn
def test_the_curves_are_the_history_and_say_samples(result: Result) -> None:
    figure = result.plot()
    panels = [axes for axes in axes_of(figure) if axes.get_lines()]

    assert len(panels) == 3
    for axes, column in zip(panels, ("objective", "violation", "share"), strict=True):
        batches, seen = axes.get_lines()[0], result.history[f"sampled_{column}"]
        np.testing.assert_array_equal(batches.get_ydata(), seen)
        np.testing.assert_array_equal(batches.get_xdata(), result.history["n_queries"])
    said = words(figure)
    for label in (
        "one batch (sampled)",
        "running mean of batches",
        "returned point, fresh values",
        "Worst violation seen in a batch",
        "Share violated, of a uniformly drawn batch",
        "tolerance",
        "queries (values of losses and constraints)",
    ):
        assert label in said
    assert result.verdict.split(":")[0] in said


def test_fresh_values_and_tolerance_are_drawn_where_they_are() -> None:
    result = run(constraint_tol=0.02)
    objective, violation, share = (
        {line.get_ydata()[0] for line in axes.get_lines()[2:]}
        for axes in axes_of(result.plot())
        if axes.get_lines()
    )
    assert result.fun in objective
    assert {result.maxcv, 0.02} <= violation
    assert result.certificate.feasibility.share_bound in share


def test_a_bound_is_called_a_bound_and_never_rounded_down() -> None:
    result = run(m=10**6, max_queries=40_000, max_iterations=None)
    feasibility = result.certificate.feasibility
    assert feasibility.kind == "sampled"
    said = words(result.plot())
    text = said[said.index("at most ") + len("at most ") :]
    assert "of all (95 %)" in said
    assert float(text.split(" %")[0]) >= 100 * feasibility.share_bound
    assert "among those checked" in said


@pytest.mark.parametrize(
    ("against", "column"),
    [("queries", "n_queries"), ("time", "elapsed"), ("iterations", "iteration")],
)
def test_it_can_be_drawn_against(result: Result, against: str, column: str) -> None:
    panel = next(axes for axes in axes_of(result.plot(against)) if axes.get_lines())
    np.testing.assert_array_equal(
        panel.get_lines()[0].get_xdata(), result.history[column]
    )


@pytest.mark.parametrize(("form", "n"), [("{:,}", 99), ("$ {} $", 3)])
def test_the_heaviest_weights_are_drawn_by_name(
    result: Result, form: str, n: int
) -> None:
    indices, values = (entry[:n] for entry in result.weights)
    weights = np.append(indices, 99_999), np.append(values, 0.0)  # one has none
    own = {"names": {int(j): form.format(j) for j in indices}, "weights": weights}
    named = Result(result | own)
    bars = next(axes for axes in axes_of(named.plot()) if axes.patches)
    order = np.argsort(-values, kind="stable")[:12]
    assert len(bars.patches) == min(len(indices), 12)
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches], values[order])
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names == [form.format(indices[j]) for j in order]


def test_a_raised_penalty_is_marked() -> None:
    result = run(max_iterations=200)
    penalty = result.history["penalty"]
    assert len(set(penalty.tolist())) > 1
    figure = result.plot("iterations")
    panel = next(axes for axes in axes_of(figure) if axes.get_lines())
    marks = [
        line.get_xdata()[0] for line in panel.get_lines() if line.get_linestyle() == ":"
    ]
    expected = result.history["iteration"][1:][np.diff(penalty) != 0]
    np.testing.assert_array_equal(marks, expected)
    assert "penalty raised" in words(figure)


# --------------------------------------------------------------- it can always be drawn
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"constraints": disc(1000), "max_iterations": 1}, "Evidence"),
        ({"constraints": dszog.Constraints(contradictory, 50)}, "No success"),
        (
            {"constraints": ROWS, "method": "zopsgd"},
            "this method draws no constraints in batches",
        ),
        ({"bounds": [(-1.0, 1.0)] * 2}, "no constraint has a weight of its own"),
    ],
    ids=["one iteration", "infeasible", "no batches", "bounds alone"],
)
def test_any_run_can_be_drawn(arguments: dict[str, Any], told: str) -> None:
    more = {"max_iterations": 30, "seed": 0} | arguments
    result = dszog.minimize(distance, np.zeros(2), **more)
    figure = result.plot()
    assert is_drawn(figure)
    assert told in words(figure)


def test_failures_get_a_panel_of_their_own() -> None:
    result = dszog.minimize(
        distance, np.zeros(2), dszog.Constraints.from_function(failing, 100),
        max_iterations=60, seed=1, on_failure="resample", options={"radius": 0.03},
    )  # fmt: skip
    assert result.failures.n_failed
    figure = result.plot()
    assert is_drawn(figure)
    for told in (f"so far; {result.failures.n_failed:,} at the end", "(resample)"):
        assert told in words(figure)


def test_drawing_touches_no_state(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # it has the windows
    figure = matplotlib.figure.Figure(figsize=(5, 5))
    picture: Any = result.plot()
    assert picture._repr_png_().startswith(b"\x89PNG\r\n")
    assert result.plot(figure=figure) is figure
    assert 'src="data:image/png;base64,iVBOR' in result.to_html()
    assert is_drawn(figure)


# ------------------------------------------------------------------------- wrong calls
@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda r: r.plot("query"), dszog.InputError, r"plot: `against`.*'query'"),
        (lambda r: r.plot(figure=3), dszog.InputTypeError, "must be a matplotlib Figu"),
        (lambda r: r.plot(figure=used()), dszog.InputError, "be empty, got one with"),
        (lambda r: empty(r).plot(), dszog.InputError, "empty history: the run ended"),
    ],
)
def test_wrong_calls_are_refused_with_what_to_do(
    result: Result, call: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        call(result)


def empty(result: Result) -> Result:
    return Result(result | {"history": {name: np.empty(0) for name in result.history}})


def used() -> Any:
    figure = matplotlib.figure.Figure()
    figure.subplots()
    return figure


# ------------------------------------------------------------------------------ curves
@pytest.mark.parametrize(
    ("seconds", "label", "last"),
    [(90.0, "seconds", 90.0), (900.0, "minutes", 15.0), (36_000.0, "hours", 10.0)],
)
def test_long_times_have_large_units(seconds: float, label: str, last: float) -> None:
    fake = SimpleNamespace(history={"elapsed": np.array([0.0, seconds])})
    x, said = horizontal(fake, "time")
    assert said == f"time in {label}"
    assert x[-1] == last


def test_the_title_of_the_multipliers_is_within_the_picture() -> None:
    plant = dszog.Simulator(
        lambda x, i: (x[0] + 2 * x[1], [2 - x[0] - x[1], x[1] - 1, x[0] - 1.5]), 9, 3,
        names=([f"day {i}" for i in range(9)], ["upper pump hours", "b", "c"]),
    )  # fmt: skip
    found = dszog.minimize(plant, [1.0, 1.0], bounds=[(0, 5)] * 2, seed=0)
    figure = found.plot()
    figure.draw_without_rendering()
    (axes,) = [a for a in axes_of(figure) if "multiplier" in a.get_title(loc="left")]
    title = axes.title if axes.title.get_text() else axes._left_title
    assert title.get_window_extent().x1 <= figure.bbox.x1
