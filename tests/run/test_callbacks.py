"""Callbacks: what they are told, and what becomes of a result that they are given."""

from __future__ import annotations

import pytest

import dszog
from dszog import Progress, Result
from dszog.contract.arrays import FloatArray
from tests.runs import by_dszog, short_run


def test_a_callback_is_told_what_a_person_would_plot() -> None:
    seen: list[Progress] = []
    result = short_run(callback=seen.append, max_iterations=300)
    last = seen[-1]
    for progress in seen:
        assert progress.n_queries == (
            progress.n_loss_queries + progress.n_constraint_queries
        )
        assert 0.0 <= progress.evaluation_time <= progress.elapsed
    assert last.n_loss_queries <= result.nfev
    assert last.penalty == result.method.penalty
    assert seen[0].penalty == dszog.DSZOG().penalty < last.penalty
    assert [p.n_failed for p in seen] == [0] * len(seen)


def test_what_cannot_be_called_is_refused() -> None:
    for wrong, said in (
        ([print, 3], "`callback` must be a function"),
        ([lambda: None], "must take 1 positional argument"),
    ):
        with pytest.raises(dszog.InputTypeError, match=said):
            short_run(callback=wrong)


class Finishing:
    def __init__(self, error: BaseException | None = None) -> None:
        self.results: list[Result] = []
        self.error = error

    def __call__(self, progress: Progress) -> None:
        assert not self.results

    def finish(self, result: Result) -> None:
        self.results.append(result)
        if self.error is not None:
            raise self.error


def test_a_run_that_breaks_off_finishes_too() -> None:
    callback = Finishing()
    n_calls = iter(range(100))

    def breaks(x: FloatArray) -> float:
        if next(n_calls) == 30:
            raise OSError("the licence has run out")
        return float(x @ x)

    with pytest.raises(dszog.EvaluationError, match="licence") as caught:
        by_dszog(breaks, [0.5], bounds=[(0.0, 1.0)], seed=0, callback=callback)
    assert callback.results == [caught.value.result]


@pytest.mark.parametrize(
    ("said", "told"), [("disk full", "disk full"), ("\x1b[2Jboo", r"\\x1b\[2Jboo")]
)
def test_a_finish_that_fails_does_not_lose_the_result(said: str, told: str) -> None:
    broken, other = Finishing(OSError(said)), Finishing()
    with pytest.warns(
        dszog.CallbackWarning, match=rf"Finishing\.finish failed \(OSError: {told}\)"
    ):
        result = short_run(callback=[broken, other])
    assert result.digest == short_run().digest
    assert other.results == [result]


def test_ctrl_c_in_a_finish_that_hangs_does_not_lose_the_result() -> None:
    with pytest.warns(dszog.CallbackWarning, match=r"failed \(KeyboardInterrupt: \)"):
        result = short_run(callback=Finishing(KeyboardInterrupt()))
    assert result.digest == short_run().digest
    with pytest.raises(KeyboardInterrupt):
        short_run(callback=Finishing(KeyboardInterrupt()), on_interrupt="raise")
