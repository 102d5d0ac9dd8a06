"""Callbacks: what they are told, and the writers for TensorBoard and MLflow."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import dszog
from dszog import Progress, Result
from dszog.contract.arrays import FloatArray
from dszog.show.callbacks import MLflow, TensorBoard
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


def test_what_cannot_be_called_or_counted_is_refused() -> None:
    for wrong, said in (
        ([print, 3], "`callback` must be a function"),
        ([lambda: None], "must take 1 positional argument"),
    ):
        with pytest.raises(dszog.InputTypeError, match=said):
            short_run(callback=wrong)
    for kind in (TensorBoard, MLflow):
        with pytest.raises(dszog.InputError, match="`every`"):
            kind("folder", every=0)


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


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Read the event file back, record by record."""
    from tensorboardX.proto import event_pb2

    (path,) = folder.glob("events.out.tfevents.*")
    content, found = path.read_bytes(), dict[str, list[tuple[int, float]]]()
    while content:
        length = int.from_bytes(content[:8], "little")
        event = event_pb2.Event()
        event.ParseFromString(content[12 : 12 + length])
        content = content[16 + length :]
        for value in event.summary.value:
            number = value.simple_value
            found.setdefault(value.tag, []).append((event.step, number))
    return found


def test_tensorboard_gets_batches_and_the_result(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    seen: list[Progress] = []
    result = short_run(callback=[TensorBoard(tmp_path, every=10), seen.append])
    written = scalars(tmp_path)

    steps = [step for step, _ in written["batch/objective"]]
    assert steps == [1, 10, 20, 30, 40]
    by_step = {progress.iteration: progress for progress in seen}
    for step, value in written["batch/worst_violation_seen"]:
        assert value == pytest.approx(by_step[step].sampled_violation, rel=1e-6)
    assert written["run/queries"][-1] == (40, by_step[40].n_queries)
    ((step, found),) = written["result/objective"]
    assert step == 40
    assert found == pytest.approx(result.fun, rel=1e-6)
    assert written["result/success"][0][1] == float(result.success)
    assert any(tag.startswith("result/text") for tag in written)


@pytest.mark.parametrize(
    ("kind", "modules"),
    [
        (TensorBoard, ("tensorboardX", "torch", "torch.utils.tensorboard")),
        (MLflow, ("mlflow",)),
    ],
)
def test_without_a_writer_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, kind: Any, modules: tuple[str, ...]
) -> None:
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        dszog.MissingExtraError, match=rf"dszog\[{kind.__name__.lower()}\]"
    ):
        kind("folder")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    made = MagicMock()
    made.exceptions.MlflowException = type("MlflowException", (Exception,), {})
    monkeypatch.setitem(sys.modules, "mlflow", made)
    monkeypatch.setitem(sys.modules, "mlflow.exceptions", made.exceptions)
    return made


def test_mlflow_gets_metrics_settings_and_the_verdict(fake: MagicMock) -> None:
    result = short_run(callback=MLflow(every=20, prefix="first."))
    calls = [(one.args[0], one.kwargs) for one in fake.log_metrics.call_args_list]
    steps = [more["step"] for named, more in calls if "first.batch/objective" in named]
    assert steps == [1, 20, 40]
    assert calls[-1][0]["first.result/objective"] == result.fun
    assert all(
        c.isalnum() or c in "_-. /:" for named, _ in calls for c in "".join(named)
    )
    (settings,) = fake.log_params.call_args.args
    assert settings["first.method"] == "DSZOG"
    assert settings["first.penalty"] == str(result.method.penalty)
    fake.set_tags.assert_called_once_with({"first.verdict": result.verdict})


def test_mlflow_logs_to_the_run_that_is_named(fake: MagicMock) -> None:
    result = short_run(callback=MLflow("abc"))
    calls = fake.log_metrics.call_args_list
    assert {one.kwargs["run_id"] for one in calls} == {"abc"}
    client = fake.MlflowClient.return_value
    client.set_tag.assert_called_once_with("abc", "verdict", result.verdict)


def test_a_server_that_is_down_is_told_once_and_ends_no_run(
    fake: MagicMock, caplog: pytest.LogCaptureFixture
) -> None:
    down = fake.exceptions.MlflowException("API request failed \x1b[31m")
    fake.log_metrics.side_effect = fake.log_params.side_effect = down
    result = short_run(callback=MLflow(every=1))
    assert result.nit == 40
    assert fake.log_metrics.call_count > 40
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warnings == ["MLflow did not take it: API request failed \\x1b[31m"]


def test_the_real_mlflow_takes_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own
        mlflow = pytest.importorskip("mlflow")
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
        with mlflow.start_run() as active:
            result = short_run(callback=MLflow(every=20))
        with mlflow.start_run() as named:
            pass
        short_run(callback=MLflow(named.info.run_id))
        client = mlflow.MlflowClient()
        for made in (active, named):
            data = client.get_run(made.info.run_id).data
            assert data.metrics["result/objective"] == result.fun
            assert data.params["method"] == "DSZOG"
            assert data.tags["verdict"] == result.verdict
        kept = client.get_metric_history(active.info.run_id, "batch/objective")

    assert [metric.step for metric in kept] == [1, 20, 40]
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
