"""`dszog solve`: a problem from a user's own file, run, saved and reported."""

from __future__ import annotations

import time
from dataclasses import asdict, fields
from pathlib import Path
from traceback import format_exception
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

import dszog
from dszog.cli.files import as_json, check_output_file, versions, write_text
from dszog.cli.loading import load_problem
from dszog.cli.options import UNLIMITED, Budget, Flag, Many, OptionalCount, OutputFile
from dszog.cli.settings import kinds_of, named, read_settings
from dszog.cli.talk import (
    DONE,
    INTERRUPTED,
    NO_SUCCESS,
    complain,
    finished,
    flags_of,
    say,
)
from dszog.contract.validation import shown
from dszog.errors import CheckpointWriteError, DszogError, EvaluationError, InputError
from dszog.methods import METHODS
from dszog.methods.auto import AUTO

PICTURES = (".png", ".svg", ".pdf", ".eps", ".jpg")  # that matplotlib draws
PARALLEL = ("threads", "processes", "dask", "ray")
FLAGS = flags_of(
    [
        *vars(UNLIMITED),
        *("seed", "evaluator", "timeout", "tag", "on_failure", "checkpoint"),
        *("resume", "method", "x_scale", "workers"),
    ]
)


def solve(
    problem: str,
    /,
    *,
    method: str = AUTO,
    settings: Annotated[Many, Parameter(name="--set")] = (),
    budget: Budget = UNLIMITED,
    seed: int | None = None,
    x_scale: str | None = None,
    evaluator: str | None = None,
    workers: OptionalCount = None,
    timeout: float | None = None,
    on_failure: str | None = None,
    checkpoint: Path | None = None,
    resume: Flag = False,
    tag: str | None = None,
    output: OutputFile = None,
    plot: Path | None = None,
    traceback: Flag = False,
) -> int:
    """Solve a problem of your own, and say what the answer rests on.

    FILE.py:NAME names a dszog.Problem in a Python file, or a function without arguments
    that returns one. The file is run; no folder is searched for modules because of it.
    Ctrl-C and SIGTERM end the run with the best point so far, and with --checkpoint the
    same command goes on with it under --resume.

    For example:

    dszog solve model.py:problem --max-queries 100000

    dszog solve model.py:problem --set penalty=10 --set directions=sphere

    dszog solve model.py:problem --checkpoint run-1 --resume -o result.json

    Exit codes: 0 success; 3 the run ended without one (stopped early, constraints not
    met, or not shown to be optimal); 130 Ctrl-C; 143 SIGTERM; 2 wrong
    usage; 1 other errors.

    Parameters
    ----------
    problem
        FILE.py:NAME.
    method
        One of auto (sampled_sqp or dszog, by size and budget), dszog, sampled_sqp,
        zoscgd, fzfw, fzcgs, fcgs, accszofw, accszofw_storm, zopsgd, acczomda; or a
        name of SciPy's for which sampled_sqp stands in, such as slsqp.
    settings
        A setting of the method, name=value; may be given several times.
    seed
        Random seed: same seed, same run. Drawn and reported if not given.
    x_scale
        Typical size of the variables: one number, or one for each, as in 1,0.001.
    evaluator
        Where your functions are called: serial (if not given), threads, processes,
        dask or ray.
    workers
        How many of them; as many as there are cores if not given.
    timeout
        Seconds after which a call is given up; for processes, dask and ray.
    on_failure
        What to do about values that are not numbers: raise, resample or penalise.
    checkpoint
        Folder to save the run to.
    resume
        Continue the run in --checkpoint, or start one if there is none.
    tag
        A name for your functions, such as a version of the data: a run with another
        one is not resumed.
    output
        File for the result, as JSON.
    plot
        File for a picture of the run: .png, .svg or .pdf.
    traceback
        Show where an error in your file came from.
    """
    console = Console()
    arguments = {
        **vars(budget),
        "seed": seed,
        "evaluator": evaluator,
        "timeout": timeout,
        "tag": tag,
        "on_failure": on_failure,
    }
    started = 0.0

    def work() -> dszog.Result:
        nonlocal started
        if resume and checkpoint is None:
            raise InputError(
                "--resume needs the folder of the run, got none. Add --checkpoint DIR."
            )
        _check_outputs(problem, output, plot)
        options = read_settings(method, settings)
        if workers is not None:
            arguments["evaluator"] = _workers(evaluator, workers)
        scale = None if x_scale is None else _scale(x_scale)
        loaded = load_problem(problem)
        if scale is not None:
            loaded = loaded.rescaled(scale)
        started = time.perf_counter()
        return dszog.minimize(
            loaded,
            method=method,
            options=options,
            checkpoint=checkpoint,
            resume=resume,
            progress=True,
            **{name: given for name, given in arguments.items() if given is not None},
        )

    def finish(result: dszog.Result) -> int:
        seconds = time.perf_counter() - started
        if output is not None:  # first: a reader of the report may leave early
            again = "; with --checkpoint, --resume reports the run again"
            write_text(output, as_json(facts(result, problem, seconds)), again)
        _report(console, result, checkpoint)
        if plot is not None:
            result.plot().savefig(plot)
        for path in (output, plot):
            if path is not None:
                say(console, f"Written to {path}.")
        if result.status == dszog.Status.INTERRUPTED:
            return INTERRUPTED
        return DONE if result.success else NO_SUCCESS

    def nothing() -> None:
        say(console, "Interrupted before there was a result." + _goes_on(checkpoint))

    try:
        return finished(work, finish, nothing)
    except DszogError as error:
        if traceback and error.__cause__ is not None:
            lines = format_exception(error.__cause__)
            say(Console(stderr=True), "".join(lines).rstrip())
        code = complain("solve", error, _flags(method))
        if isinstance(error, (EvaluationError, CheckpointWriteError)):
            _report_broken(console, error, checkpoint is not None)
        return code


def _check_outputs(target: str, output: Path | None, plot: Path | None) -> None:
    """Refuse what cannot be written, before the user's file is run."""
    file = Path(target.rpartition(":")[0] or target)
    check_output_file(output, "result.json", read=(file,))
    check_output_file(plot, "run.png", read=(file,))
    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise InputError(
            f"--plot must end in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}, got "
            f"{shown(str(plot))}. Try --plot run.png."
        )


def _workers(evaluator: str | None, n_workers: int) -> Any:
    """Return so many workers of a kind."""
    kinds = {name: getattr(dszog.evaluators, name.title()) for name in PARALLEL}
    if evaluator not in kinds:
        raise InputError(
            f"--workers goes with --evaluator {', '.join(PARALLEL[:-1])} or "
            f"{PARALLEL[-1]}, got {evaluator or 'none'}. Name one."
        )
    return kinds[evaluator](n_workers=n_workers)


def _scale(text: str) -> Any:
    try:
        return [float(part) for part in text.split(",")] if "," in text else float(text)
    except ValueError:
        raise InputError(
            f"--x-scale takes numbers separated by commas, got {shown(text)}. For "
            "example --x-scale 1,0.001."
        ) from None


def _flags(method: str) -> dict[str, str]:
    """Return what is typed for arguments of `minimize` and settings of the method."""
    name = named(method)
    names = kinds_of(name) if name in (AUTO, *METHODS) else ()
    return {name: f"--set {name}" for name in names} | FLAGS


# ------------------------------------------------------------------------ what is said


def _goes_on(checkpoint: Path | None) -> str:
    if checkpoint is None or not any(checkpoint.glob("checkpoint-*")):
        return ""
    return " The run is saved: the same command with --resume goes on with it."


def _report(console: Console, result: dszog.Result, checkpoint: Path | None) -> None:
    say(console, result.verdict, style="green" if result.success else "yellow")
    say(console, result.message)
    stopped = dszog.Status.INTERRUPTED, dszog.Status.STOPPED_BY_CALLBACK
    if result.status in stopped and checkpoint is not None:
        say(console, _goes_on(checkpoint).strip())
    lost, failures = result.costs.n_lost, result.failures
    lines = [
        f"\n{result.certificate}",
        f"x             {result.point_text}",
        f"queries       {result.nfev:,} of losses, {result.ncev:,} of constraints, in "
        f"{result.nit:,} iterations" + (f"; {lost:,} lost" if lost else ""),
    ]
    if failures.n_failed:
        lines.append(
            f"failures      {failures.n_failed:,} of {failures.n_points:,} points "
            f"({failures.policy})"
        )
    lines += [f"seed          {result.seed}", f"digest        {result.digest}"]
    say(console, "\n".join(lines))


def _report_broken(
    console: Console, error: EvaluationError | CheckpointWriteError, is_saved: bool
) -> None:
    """Say what there is of a run that broke off; its point was not checked."""
    if isinstance(error, EvaluationError):
        if is_saved:
            say(
                console,
                "The run is saved: fix the function, and the same command with "
                "--resume goes on with it.",
            )
        if error.x is not None:
            say(console, f"The point of the call, in full: {error.x.tolist()}")
    if error.result is not None:
        n = error.result.nit
        say(console, f"Got to iteration {n:,}; the point was not checked:")
        say(console, f"x             {error.result.point_text}")


# --------------------------------------------------------------------- what is written


def facts(result: dszog.Result, target: str, seconds: float) -> dict[str, Any]:
    feasibility = result.certificate.feasibility
    stationarity = result.certificate.stationarity
    failures, method = result.failures, result.method
    multipliers = None
    if result.multipliers is not None:
        indices, values = result.multipliers
        multipliers = {"indices": indices.tolist(), "values": values.tolist()}
    names = ("message", "fun", "maxcv", "nit", "nfev", "ncev", "seed", "digest")
    return {
        "problem": target,
        "success": bool(result.success),
        "status": result.status.name,
        "x": result.x.tolist(),
        "variables": list(result.variables),
        "names": {str(index): name for index, name in result.names.items()},
        **{name: result[name] for name in names},
        "method": {
            "type": type(method).__name__,
            **{one.name: _plain(getattr(method, one.name)) for one in fields(method)},
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
        "multipliers": multipliers,
        "failures": {
            "policy": failures.policy,
            "failed": failures.n_failed,
            "points": failures.n_points,
            "kinds": failures.kinds,
        },
        "costs": asdict(result.costs),
        "seconds": round(seconds, 3),
        "versions": versions(),
    }


def _plain(value: Any) -> Any:
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return value if is_plain else type(value).__name__
