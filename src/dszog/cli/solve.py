"""`dszog solve`: a problem from a user's own file, run, saved and reported."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.optimize import OptimizeResult

import dszog
from dszog.cli.complaints import complain, flags_of
from dszog.cli.folders import check_output_file
from dszog.cli.loading import load_problem
from dszog.cli.settings import read_settings
from dszog.cli.talk import (
    DONE,
    INTERRUPTED,
    NO_SUCCESS,
    TERMINATED,
    say,
    sigterm_as_interrupt,
)
from dszog.cli.writing import known, versions, write_text
from dszog.contract.interrupts import Interrupts
from dszog.errors import (
    CheckpointWriteError,
    DszogError,
    EvaluationError,
    InputError,
)
from dszog.methods import METHODS


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was typed."""

    target: str  # FILE.py:name
    method: str
    settings: Sequence[str]  # name=value
    arguments: dict[str, Any]  # of minimize; None where nothing was typed
    checkpoint: Path | None
    resume: bool
    output: Path | None


def solve_command(console: Console, request: Request) -> int:
    """Run the problem and return the exit code.

    0 after a success; 3 if the run ended without one; 130 and 143 after Ctrl-C and
    SIGTERM; 2 if the command cannot be meant so; 1 after any other error.
    """
    result = None
    with sigterm_as_interrupt() as received, Interrupts() as interrupts:
        try:
            _check(request)
            options = read_settings(request.method, request.settings)
            problem = load_problem(request.target)
            started = time.perf_counter()
            result = dszog.minimize(
                problem,
                method=request.method,
                options=options,
                checkpoint=request.checkpoint,
                resume=request.resume,
                progress=True,
                **{k: v for k, v in request.arguments.items() if v is not None},
            )
            interrupts.hold()  # until what there is was told and written
            seconds = time.perf_counter() - started
            _report(console, result, request)
            _write(console, result, request, seconds)
            interrupts.let_in()
        except KeyboardInterrupt:
            if result is None:  # it came before there was one, or twice
                said = "Interrupted before there was a result."
                say(console, said + _goes_on(request))
            return TERMINATED if received else INTERRUPTED
        except DszogError as error:
            code = complain("solve", error, _flags(request))
            if isinstance(error, (EvaluationError, CheckpointWriteError)):
                _report_broken(console, error, request)
            return code
    if result.status == dszog.Status.INTERRUPTED:
        return TERMINATED if received else INTERRUPTED
    return DONE if result.success else NO_SUCCESS


# ---------------------------------------------------------------------- what was typed


def _check(request: Request) -> None:
    """Refuse what cannot work, before the user's file is run."""
    if request.resume and request.checkpoint is None:
        raise InputError(
            "dszog solve: --resume needs the folder of the run, got none. Add "
            "--checkpoint DIR."
        )
    file = Path(request.target.rpartition(":")[0] or request.target)
    check_output_file("solve", request.output, "result.json", read=(file,))


def _flags(request: Request) -> dict[str, str]:
    """Return what is typed for arguments of `minimize` and settings of the method."""
    kind: Any = METHODS.get(request.method.lower())
    names = [] if kind is None else [item.name for item in fields(kind)]
    settings = {name: f"--set {name}" for name in names}
    return settings | flags_of([*request.arguments, "checkpoint", "resume", "method"])


def _goes_on(request: Request) -> str:
    if request.checkpoint is None or not any(request.checkpoint.glob("checkpoint-*")):
        return ""
    return " The run is saved: the same command with --resume goes on with it."


# ------------------------------------------------------------------------ what is said


def _report(console: Console, result: dszog.Result, request: Request) -> None:
    say(console, result.verdict, style="green" if result.success else "yellow")
    say(console, result.message)
    if result.status == dszog.Status.INTERRUPTED and request.checkpoint is not None:
        say(console, _goes_on(request).strip())
    say(console, f"\n{result.certificate}")
    with np.printoptions(threshold=8, edgeitems=3, precision=6):
        say(console, f"x             {result.x}")
    say(
        console,
        f"queries       {result.nfev:,} of losses, {result.ncev:,} of constraints, in "
        f"{result.nit:,} iterations"
        + (f"; {result.costs.n_lost:,} lost" if result.costs.n_lost else ""),
    )
    if result.failures.n_failed:
        say(
            console,
            f"failures      {result.failures.n_failed:,} of "
            f"{result.failures.n_points:,} points ({result.failures.policy})",
        )
    say(console, f"seed          {result.seed}")
    say(console, f"digest        {result.digest}")


def _report_broken(
    console: Console, error: EvaluationError | CheckpointWriteError, request: Request
) -> None:
    """Say what there is of a run that broke off; its point was not checked."""
    if isinstance(error, EvaluationError) and request.checkpoint is not None:
        say(
            console,
            "The run is saved: mend the function, and the same command with --resume "
            "goes on with it.",
        )
    if error.result is None:
        return
    say(console, f"Got to iteration {error.result.nit:,}; the point was not checked:")
    with np.printoptions(threshold=8, edgeitems=3, precision=6):
        say(console, f"x             {error.result.x}")


# --------------------------------------------------------------------- what is written


def _write(
    console: Console, result: OptimizeResult, request: Request, seconds: float
) -> None:
    if request.output is None:
        return
    text = json.dumps(
        as_json(result, request, seconds), indent=2, allow_nan=False, sort_keys=False
    )
    again = "; with --checkpoint, --resume reports the run again"
    write_text(request.output, text + "\n", again)
    say(console, f"Written to {request.output}.")


def as_json(result: OptimizeResult, request: Request, seconds: float) -> dict[str, Any]:
    """Return a result as JSON holds it; a number that is not known is null."""
    feasibility = result.certificate.feasibility
    stationarity = result.certificate.stationarity
    multipliers = result.multipliers
    made = {
        "problem": request.target,
        "success": bool(result.success),
        "status": result.status.name,
        "message": result.message,
        "x": result.x.tolist(),
        "fun": result.fun,
        "maxcv": result.maxcv,
        "nit": result.nit,
        "nfev": result.nfev,
        "ncev": result.ncev,
        "seed": result.seed,
        "digest": result.digest,
        "method": {
            "type": type(result.method).__name__,
            **{name: _plain(value) for name, value in _settings(result.method)},
        },
        "certificate": {
            "objective_error": result.certificate.objective_error,
            "losses_checked": result.certificate.n_losses_checked,
            "kind": feasibility.kind,
            "constraints": feasibility.n_constraints,
            "checked": feasibility.n_checked,
            "violated": feasibility.n_violated,
            "suspects": feasibility.n_suspects,
            "unknown": feasibility.n_unknown,
            "worst_index": feasibility.worst_index,
            "worst_value": feasibility.worst_value,
            "share_bound": feasibility.share_bound,
            "calls": None if feasibility.calls is None else asdict(feasibility.calls),
            "lagrangian": None if stationarity is None else stationarity.lagrangian,
        },
        "multipliers": None
        if multipliers is None
        else {"indices": multipliers[0].tolist(), "values": multipliers[1].tolist()},
        "failures": {
            "policy": result.failures.policy,
            "failed": result.failures.n_failed,
            "points": result.failures.n_points,
            "kinds": result.failures.kinds,
        },
        "costs": asdict(result.costs),
        "seconds": round(seconds, 3),
        "versions": versions(),
    }
    cleaned: dict[str, Any] = known(made)
    return cleaned


def _settings(method: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(method, name)) for name in method.__dataclass_fields__]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return type(value).__name__
