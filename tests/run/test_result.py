"""The result: still SciPy's, and it can be read."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

import dszog
from dszog import Result, Status
from dszog.evidence.certificate import Feasibility
from dszog.save.encoding import pack_value
from dszog.show.html import in_words
from tests.runs import short_run


@pytest.fixture(scope="module")
def result() -> Result:
    return short_run()


def test_it_is_scipys_result_with_entries_as_attributes(result: Result) -> None:
    assert isinstance(result, OptimizeResult)
    assert result["x"] is result.x
    assert not hasattr(result, "nothing_of_the_kind")
    assert {"plot", "to_frame", "fun", "maxcv"} <= set(dir(result))


def saved(result: Result) -> Result:
    with TemporaryDirectory() as folder:
        result.save(f"{folder}/it")
        return dszog.load_result(Path(folder) / "it")


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r)), Result, saved],
    ids=["copy", "deepcopy", "pickle", "made anew", "saved"],
)
def test_copies_are_results_that_say_the_same(result: Result, again: Any) -> None:
    other = again(result)
    assert type(other) is Result
    assert set(other) == set(result)
    assert other.x.tobytes() == result.x.tobytes()
    for name in ("digest", "fun", "status", "method", "costs"):
        assert other[name] == result[name]
    for said in (str, Result._repr_html_):
        assert said(other) == said(result)


def test_what_is_no_result_is_neither_saved_nor_loaded(
    result: Result, tmp_path: Path
) -> None:
    with pytest.raises(dszog.InputTypeError, match=r"'mine' cannot be .* del result\["):
        Result(result | {"mine": object()}).save(tmp_path / "it")
    assert not list(tmp_path.iterdir())
    result.save(tmp_path / "it")
    (tmp_path / "it").write_bytes((tmp_path / "it").read_bytes()[:-9])
    other = b"".join(pack_value({"kind": "end"}, {}))
    (tmp_path / "other").write_bytes(other)
    for name in ("it", "other", "nothing"):
        with pytest.raises(dszog.CheckpointError, match=r"The result .* cannot be"):
            dszog.load_result(tmp_path / name)


def test_the_text_begins_with_verdict_and_what_it_rests_on(result: Result) -> None:
    first, *rest = str(result).splitlines()
    assert first == result.verdict
    assert repr(result) == str(result)
    names = [line.split()[0] for line in rest if line[0] != " "]
    assert names[:4] == ["objective", "constraints", "stationarity", "work"]
    assert {"x", "weights", "seed", "message"} <= set(names)
    assert "40 iterations" in str(result)
    assert max(len(line) for line in rest) <= 88
    assert " ".join(result.message.split()) in " ".join(str(result).split())


def test_a_success_a_failure_and_an_interrupt_read_as_such() -> None:
    good = short_run(method="auto", max_iterations=99, options={})
    assert str(good).startswith("Success: every constraint is kept")
    assert good._repr_html_().startswith(f"<b>✓ {good.verdict}")
    soft = {"penalty": 0.01}
    bad = short_run(constraint_tol=1e-9, max_iterations=300, options=soft)
    assert str(bad).startswith("No success: the result does not keep")

    def stop(progress: dszog.Progress) -> None:
        raise KeyboardInterrupt

    interrupted = short_run(callback=stop)
    assert interrupted.status == Status.INTERRUPTED
    assert str(interrupted).startswith("Interrupted.")


WALLS = dszog.Constraints(lambda p, j: p[:, :1] - 1.0 - j, 5)


@pytest.mark.parametrize("level", [-1.0, 1.0])
def test_a_start_that_was_not_improved_on_is_named_in_the_verdict(level: float) -> None:
    fixed = dszog.Constraints(lambda p, j: 0.0 * p[:, :1] + level + 0.0 * j, 5)

    def run_from(start: float) -> Any:
        x0, loss = np.full(2, start), lambda x: float(x @ x)
        return dszog.minimize(loss, x0, fixed, max_iterations=9, seed=0)

    kept, moved = run_from(0.0), run_from(1.0)
    assert (kept.is_start, moved.is_start) == (True, False)
    assert kept.verdict == (
        f"{moved.verdict.removesuffix('.')}; the start was not improved on."
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "No x0 was given: the run began at the origin."),
        ({"bounds": [(0.5, 2.0)] * 2}, "began at the origin, moved into the bounds."),
        ({"x0": [0.0, 0.0]}, None),
    ],
)
def test_a_start_nobody_chose_is_named(given: dict[str, Any], said: str | None) -> None:
    problem = dszog.Problem(lambda x: float(x @ x), WALLS, 2, **given)
    result = dszog.minimize(problem, max_iterations=2, seed=0)
    assert ("No x0" in result.message) == (said is not None)
    assert said is None or said in result.message
    chosen = dszog.minimize(problem, np.ones(2), max_iterations=2, seed=0)
    assert "No x0" not in chosen.message


def test_names_stand_where_an_index_or_a_variable_would() -> None:
    rooms = dszog.Constraints(lambda p, j: p[:, j] - 1.0, 2).named(["hall", "loft"])
    walls = WALLS.named(lambda j: f"wall {9 // (j - 2)}")  # one has none
    both = dszog.Constraints.concat(rooms, walls)
    named = ["hall", "loft", "wall -5", "wall -9", "", "wall 9", "wall 4"]
    assert [both.name(j) for j in range(7)] == named
    assert both.named(list("abcdefg")).in_pieces(2).black_box().name(4) == "e"
    result = dszog.minimize(
        lambda x: -x.sum(), [0.0, 0.0], both, seed=0, names=["heat", "load\x1b"]
    )
    assert result.names.items() <= dict(enumerate(named)).items()
    said = str(result)
    for text in (
        "heat = 1, load\\x1b = 1",
        "none above 0, closest to it (loft)",
        "heaviest: hall (",
    ):
        assert text in said
    assert "wall" not in said  # it weighs nothing
    assert "A better value would break hall; loft." in in_words(result)
    hot = dszog.Constraints.from_function(lambda x, j: [1.0, math.nan][j], 2)
    hot = hot.named(["", "too hot"])
    told = r"Constraint 1 \(too hot\).*, a = 0, b = 0, c = 0, ... \(9 in all\)"
    with pytest.raises(dszog.EvaluationError, match=told) as caught:
        dszog.minimize(sum, np.zeros(9), hot, names=list("abcdefghi"))
    assert len(caught.value.x) == 9
    assert "is not known" in in_words(caught.value.result)[0]


def test_what_a_user_makes_of_it_prints_as_scipys() -> None:
    assert "x: [1]" in str(Result(x=[1]))
    assert str(Result()) == "Result()"
    assert "<pre>" in Result(x=[1])._repr_html_()


def test_the_html_says_the_same_and_nothing_in_it_is_markup(result: Result) -> None:
    odd = Result(result)
    odd.message = "<script>alert(1)</script> \x1b[31m"
    html, page = odd._repr_html_(), odd.to_html()
    assert html.startswith(f"<b>✗ {result.verdict}")
    for text in (html, page, str(odd)):
        assert "\x1b" not in text
        assert ("<script>" in text) == (text == str(odd))
    assert "&lt;script&gt;" in html
    assert page.count("<img") == page.count("data:image/png")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "All 50 constraints were checked at this point: each of them holds"),
        (
            {"worst_value": 0.5},
            "the worst, <b>, is over by 0.5, more than the tolerance",
        ),
        (
            {"worst_value": 0.005},
            "within the tolerance of 0.01; the worst, <b>, is over by",
        ),
        ({"kind": "sampled"}, "at most 10 % are violated at all, with 95 % confid"),
        ({"n_unknown": 2}, "2 of them gave no value"),
        ({"kind": "unchecked"}, "The constraints were not checked"),
        ({"n_constraints": 0}, "nothing to keep to but the bounds"),
    ],
)
def test_the_evidence_is_told_in_plain_words(
    result: Result, changes: dict[str, Any], told: str
) -> None:
    found: dict[str, Any] = {"kind": "all", "n_constraints": 50, "n_checked": 50}
    found |= {"worst_names": ("<b>",), "share_bound": 0.1, "worst_value": -1.0}
    feasibility = Feasibility(**(found | changes))
    certificate = replace(result.certificate, feasibility=feasibility)
    other = Result(result | {"certificate": certificate})
    assert told in " ".join(in_words(other))
    assert escape(told) in other._repr_html_()


def test_the_frame_is_the_history(result: Result) -> None:
    pandas = pytest.importorskip("pandas")
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(result.history)
    assert frame["iteration"].tolist() == list(range(1, 41))
    assert frame["iteration"].dtype == frame["n_failed"].dtype == np.int64
    np.testing.assert_array_equal(
        frame["sampled_objective"], result.history["sampled_objective"]
    )


@pytest.mark.parametrize(
    ("missing", "call", "extra"),
    [("pandas", Result.to_frame, "pandas"), ("matplotlib.figure", Result.plot, "viz")],
)
def test_without_an_extra_it_is_named(
    result: Result, missing: str, call: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    said = rf'pip install "dszog\[{extra}\]"'
    with pytest.raises(dszog.MissingExtraError, match=said):
        call(result)
