"""Callbacks that write a run to where others look at it: TensorBoard, MLflow.

A callback is any function of a :class:`dszog.Progress`. One that also has a method
``finish(result)`` is given the result at the end of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from os import PathLike, fspath
from typing import Any

from dszog._log import LOGGER
from dszog.contract.validation import check_count, printable
from dszog.errors import MissingExtraError
from dszog.run.history import Progress

__all__ = ["MLflow", "TensorBoard"]

TEXT_LIMIT = 250  # characters that MLflow keeps of a parameter, at the least
MEASURES = {  # by the names that the writers use
    "batch/objective": "sampled_objective",
    "batch/worst violation seen": "sampled_violation",
    "batch/share violated": "sampled_share",
    "run/queries": "n_queries",
    "run/loss queries": "n_loss_queries",
    "run/constraint queries": "n_constraint_queries",
    "run/seconds": "elapsed",
    "run/failed points": "n_failed",
    "run/penalty": "penalty",
    "run/touched constraints": "n_touched",
}


def measures(progress: Progress) -> dict[str, float]:
    """Return what is known of one iteration."""
    return _known({name: getattr(progress, field) for name, field in MEASURES.items()})


def final_measures(result: Any) -> dict[str, float]:
    """Return what was found at the returned point."""
    return _known(
        {
            "result/objective": result.fun,
            "result/worst violation checked": result.maxcv,
            "result/share violated at most": result.certificate.feasibility.share_bound,
            "result/success": result.success,
        }
    )


def _known(found: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}


class _Writer:
    """Writes the first iteration and then every so many."""

    def __init__(self, every: int) -> None:
        self._every = check_count(self, "every", every)

    def __call__(self, progress: Progress) -> None:
        """Write what was seen, if it is its turn."""
        if progress.iteration <= 1 or not progress.iteration % self._every:
            self._write(measures(progress), progress.iteration)

    def _write(self, values: dict[str, float], step: int) -> None:
        raise NotImplementedError


class TensorBoard(_Writer):
    """Write a run for TensorBoard, with tensorboardX or PyTorch's writer.

    The values under ``batch/`` are those of the batches drawn, which are samples; those
    under ``result/`` are fresh and come at the end, with the whole report as text.

    Parameters
    ----------
    log_dir : path
        Folder for the event file; one for each run. ``tensorboard --logdir`` shows it.
    every : int
        Iterations between two writes. The first one is always written.

    Examples
    --------
    ``minimize(problem, callback=dszog.callbacks.TensorBoard("runs/first"))``
    """

    def __init__(self, log_dir: str | PathLike[str], *, every: int = 10) -> None:
        super().__init__(every)
        self._writer = _summary_writer()(fspath(log_dir))

    def finish(self, result: Any) -> None:
        """Write the result, and close the file."""
        self._write(final_measures(result), result.nit)
        text = "\n".join(f"    {line}" for line in str(result).splitlines())
        self._writer.add_text("result", text, result.nit)
        self.close()

    def _write(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name.replace(" ", "_"), value, step)

    def close(self) -> None:
        """Close the file; a run that ends does it by itself."""
        self._writer.close()


def _summary_writer() -> Callable[[str], Any]:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError.of(
                "dszog.callbacks.TensorBoard",
                "tensorboardX, or PyTorch with tensorboard",
                "tensorboard",
            ) from error
    writer: Callable[[str], Any] = SummaryWriter
    return writer


class MLflow(_Writer):
    """Log a run to MLflow: metrics as it goes, settings and the result at its end.

    Into the active run, or the one named; MLflow begins one where there is none. A
    server that does not answer is noted once under the logger ``"dszog"`` and does not
    end the run.

    Parameters
    ----------
    run_id : str, optional
        Of the run to log to.
    every : int
        Iterations between two writes. The first one is always written.
    prefix : str
        Put before every name, for several calls of `minimize` in one run of MLflow.

    Examples
    --------
    ``minimize(problem, callback=dszog.callbacks.MLflow())``
    """

    def __init__(
        self, run_id: str | None = None, *, every: int = 50, prefix: str = ""
    ) -> None:
        super().__init__(every)
        self._run_id = run_id
        self._prefix = prefix
        self._has_warned = False
        try:
            import mlflow
            from mlflow.exceptions import MlflowException
        except ImportError as error:
            raise MissingExtraError.of(
                "dszog.callbacks.MLflow", "mlflow", "mlflow"
            ) from error
        self._mlflow: Any = mlflow
        self._errors: tuple[type[Exception], ...] = (MlflowException, OSError)

    def finish(self, result: Any) -> None:
        """Log the settings and the result."""
        self._write(final_measures(result), result.nit)
        settings = {"method": type(result.method).__name__, "seed": result.seed}
        if is_dataclass(result.method):
            for field in fields(result.method):
                settings[field.name] = getattr(result.method, field.name)
        named = {
            f"{self._prefix}{name}": str(value)[:TEXT_LIMIT]
            for name, value in settings.items()
        }
        self._try(self._mlflow.log_params, named, **self._where)
        verdict = (f"{self._prefix}verdict", result.verdict)
        if self._run_id is None:
            self._try(self._mlflow.set_tags, dict([verdict]))
        else:
            client = self._mlflow.MlflowClient()
            self._try(client.set_tag, self._run_id, *verdict)

    def _write(self, values: dict[str, float], step: int) -> None:
        named = {f"{self._prefix}{name}": value for name, value in values.items()}
        self._try(self._mlflow.log_metrics, named, step=step, **self._where)

    @property
    def _where(self) -> dict[str, str]:
        return {} if self._run_id is None else {"run_id": self._run_id}

    def _try(self, log: Callable[..., Any], *values: Any, **more: Any) -> None:
        try:
            log(*values, **more)
        except self._errors as error:
            if not self._has_warned:
                self._has_warned = True
                LOGGER.warning("MLflow did not take it: %s", printable(str(error)))
