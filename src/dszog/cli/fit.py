"""`dszog fit`: a classifier under constraints, from a file to a model and a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import dszog
from dszog.cli.complaints import as_typed, complain, flags_of
from dszog.cli.data import (
    FORMATS,
    Columns,
    Rows,
    Source,
    Wanted,
    read_csv_rows,
    read_libsvm_rows,
    widened,
)
from dszog.cli.fit_report import Fitted, figures, markdown, write_report
from dszog.cli.folders import check_output
from dszog.cli.talk import (
    DONE,
    INTERRUPTED,
    NO_SUCCESS,
    TERMINATED,
    say,
    sigterm_as_interrupt,
    tell_new_words,
)
from dszog.contract.validation import check_choice, printable, shown
from dszog.errors import DszogError, InputError
from dszog.maths.random_stream import stream

TASKS = ("pairwise", "fair")
ONLY_PAIRWISE = ("margin",)
ONLY_FAIR = ("constraint", "tolerance", "n_bins", "min_group_size")
MODEL = "model.dszog"
HOLD_OUT = 3  # purpose of the draw of held-out rows
FLAGS = flags_of(
    (
        *("alpha", "constraint", "constraint_tol", "kernel", "loss", "margin"),
        *("max_iterations", "max_queries", "max_time", "penalty", "step_size"),
        "tolerance",
    )
) | {
    "min_group_size": "--min-group",
    "n_bins": "--bins",
    "sensitive_features": "--sensitive",
}


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What was typed."""

    source: Source
    task: str
    wanted: Wanted
    test: Path | None
    holdout: float | None
    settings: dict[str, Any]  # of the classifier; None where nothing was typed
    penalty: str | None  # a number, or auto
    seed: int
    output: Path
    overwrite: bool


def fit_command(console: Console, request: FitRequest) -> int:
    """Train, write the model and the report, and return the exit code.

    0 if the run went as far as it should and, where the constraints have to be kept,
    they are; 3 if not; 130 and 143 after Ctrl-C and SIGTERM, with what there was
    written down; 2 if the command cannot be meant so; 1 after any other error.
    """
    with sigterm_as_interrupt() as received:
        try:
            fitted = _fitted(console, request)
            paths = _written(request, fitted)
        except KeyboardInterrupt:
            say(console, "Interrupted before there was a model.")
            return TERMINATED if received else INTERRUPTED
        except DszogError as error:
            return complain("fit", error, FLAGS)
        _report(console, fitted, paths)
    if fitted.is_interrupted:
        return TERMINATED if received else INTERRUPTED
    return DONE if fitted.is_success else NO_SUCCESS


# ---------------------------------------------------------------------- what was typed


def _check(request: FitRequest) -> None:
    """Refuse what cannot work before a file is read."""
    check_choice("dszog fit", "--task", request.task, TASKS)
    check_choice("dszog fit", "--format", request.source.format, FORMATS)
    is_fair = request.task == "fair"
    for name in ONLY_PAIRWISE if is_fair else ONLY_FAIR:
        if request.settings.get(name) is not None:
            other = "pairwise" if is_fair else "fair"
            raise InputError(
                f"dszog fit: {FLAGS[name]} goes with --task {other}, got --task "
                f"{request.task}. Leave it out."
            )
    wanted = request.wanted
    if is_fair and not wanted.sensitive:
        raise InputError(
            "dszog fit: --task fair needs --sensitive, got none. Name the columns "
            "whose groups are to be treated alike."
        )
    if not is_fair and (wanted.sensitive or wanted.use_sensitive):
        raise InputError(
            "dszog fit: --sensitive goes with --task fair, got --task pairwise. Leave "
            "it out, or --drop the column."
        )
    if request.source.is_csv:
        _check_columns(wanted)
    else:
        _check_libsvm(wanted)
    if request.test is not None and request.holdout is not None:
        raise InputError(
            "dszog fit: got both --test and --holdout. Give one: a file, or a share of "
            "the rows."
        )
    if request.holdout is not None and not 0.0 < request.holdout < 1.0:
        raise InputError(
            f"dszog fit: --holdout must lie between 0 and 1, got {request.holdout:g}. "
            "Try 0.25."
        )
    if not 0 <= request.seed < 2**32:
        raise InputError(
            f"dszog fit: --seed must lie between 0 and 2**32 - 1, got {request.seed}. "
            "Try 0."
        )
    check_output("fit", request.output)
    if (request.output / MODEL).exists() and not request.overwrite:
        raise InputError(
            f"dszog fit: {printable(str(request.output / MODEL))} is there already. "
            "Name another folder with --output, or replace it: --overwrite."
        )


def _check_columns(wanted: Wanted) -> None:
    """Refuse a column that is to be two things, one of which would be ignored."""
    uses = {
        "--target": (wanted.target,),
        "--drop": wanted.drop,
        "--categorical": wanted.categorical,
        "--sensitive": wanted.sensitive,
    }
    for one, other, why in (
        (
            "--target",
            "--categorical",
            "classes are no features",
        ),
        ("--target", "--drop", "the target is never a feature"),
        ("--target", "--sensitive", "nothing is left to be fair about"),
        ("--drop", "--categorical", "a column that is left out is not read"),
    ):
        for name in uses[one]:
            if name is not None and name in uses[other]:
                raise InputError(
                    f"dszog fit: column {shown(name)} is named by both {one} and "
                    f"{other}: {why}. Leave {other} {printable(name)} out."
                )


def _check_libsvm(wanted: Wanted) -> None:
    given = {
        "--target": wanted.target is not None,
        "--drop": wanted.drop,
        "--categorical": wanted.categorical,
    }
    for option, is_given in given.items():
        if is_given:
            raise InputError(
                f"dszog fit: {option} names a column of a CSV file, got a LIBSVM file. "
                "Leave it out, or add --format csv."
            )
    if wanted.sensitive and not wanted.use_sensitive:
        raise InputError(
            "dszog fit: columns of a LIBSVM file cannot be kept from the model, got "
            "--sensitive without --use-sensitive. Add it, or give a CSV file."
        )


# ----------------------------------------------------------------------- what is read


def _read(
    console: Console, request: FitRequest
) -> tuple[Rows, Rows | None, Columns | None]:
    """Return the rows to train on, those to test with, and what the columns are."""
    source, wanted = request.source, request.wanted
    columns: Columns | None = None
    test: Rows | None = None
    if source.is_csv:
        rows, columns, _ = read_csv_rows(source.table(), wanted)
        if request.test is not None:
            table = Source(path=request.test, format="csv", delimiter=source.delimiter)
            test, _, new = read_csv_rows(table.table(), wanted, columns, rows.y)
            tell_new_words(console, new)
    else:
        rows = read_libsvm_rows(source.path, wanted)
        if request.test is not None:
            test = read_libsvm_rows(request.test, wanted)
            width = max(rows.X.shape[1], test.X.shape[1])
            rows, test = (
                Rows(X=widened(one.X, width), y=one.y, sensitive=one.sensitive)
                for one in (rows, test)
            )
    if request.holdout is not None:
        rows, test = _cut(rows, request.holdout, request.seed)
    if len(np.unique(rows.y)) != 2:
        raise InputError(
            f"dszog fit: there must be two classes to train on, got "
            f"{shown(np.unique(rows.y).tolist())}. Check the target, or join classes."
        )
    unknown = [] if test is None else np.setdiff1d(test.y, rows.y).tolist()
    if unknown:
        raise InputError(
            f"dszog fit: the test rows must have the classes "
            f"{shown(np.unique(rows.y).tolist())}, got {shown(unknown)}. Write "
            "the labels alike in both files, or leave these rows out."
        )
    return rows, test, columns


def _cut(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Return the rows in two parts, the same share of each class in the second."""
    rng = stream(seed, 0, HOLD_OUT)
    held: list[int] = []
    for label in np.unique(rows.y):
        places = np.flatnonzero(rows.y == label)
        n_held = round(share * len(places))
        held.extend(rng.permutation(places)[:n_held].tolist())
    is_held = np.zeros(len(rows), dtype=bool)
    is_held[held] = True
    if not is_held.any() or is_held.all():
        raise InputError(
            f"dszog fit: --holdout must leave rows on both sides, got {share:g} of "
            f"{len(rows)} rows. Try 0.25."
        )
    return rows.take(np.flatnonzero(~is_held)), rows.take(np.flatnonzero(is_held))


# ---------------------------------------------------------------------------- the fit


def _fitted(console: Console, request: FitRequest) -> Fitted:
    _check(request)
    from dszog.learn import LOSSES, FairClassifier, PairwiseClassifier
    from dszog.learn.group_constraints import KINDS

    given = {k: v for k, v in request.settings.items() if v is not None}
    for name, choices in (("loss", LOSSES), ("constraint", KINDS)):
        if name in given:
            check_choice("dszog fit", FLAGS[name], given[name], choices)
    if request.penalty is not None:
        given["penalty"] = _penalty(request.penalty)
    kind = FairClassifier if request.task == "fair" else PairwiseClassifier
    model = kind(random_state=request.seed, verbose=True, **given)
    _refuse_wrong(model._validate_params)
    rows, test, columns = _read(console, request)
    more = {"sensitive_features": rows.sensitive} if request.task == "fair" else {}
    started = time.perf_counter()
    with _kept_warnings() as notes:
        _refuse_wrong(model.fit, rows.X, rows.y, **more)
    seconds = time.perf_counter() - started
    wants_kept = (
        request.task == "fair" or model.penalty is None or "constraint_tol" in given
    )
    return Fitted(
        model=model,
        task=request.task,
        file=str(request.source.path),
        features=None if columns is None else columns.features,
        train=rows,
        test=test,
        test_is=_test_name(request),
        wants_kept=wants_kept,
        is_interrupted=model.result_.status == dszog.Status.INTERRUPTED,
        seed=request.seed,
        seconds=seconds,
        notes=[as_typed(note, FLAGS) for note in notes],
    )


def _refuse_wrong(function: Callable[..., Any], *given: Any, **more: Any) -> None:
    """Call something of a classifier, whose complaints are those of scikit-learn."""
    try:
        function(*given, **more)
    except ValueError as error:
        if isinstance(error, DszogError):
            raise
        raise InputError(str(error)) from error


def _penalty(text: str) -> float | None:
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"dszog fit: --penalty takes a number or auto, got {shown(text)}. For "
            "example --penalty 0.1."
        ) from None


def _test_name(request: FitRequest) -> str:
    if request.test is not None:
        return str(request.test)
    return "" if request.holdout is None else f"{request.holdout:g} of the rows"


@contextmanager
def _kept_warnings() -> Iterator[list[str]]:
    """Yield a list that will hold what was warned of."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts.extend(dict.fromkeys(str(one.message) for one in caught))


# --------------------------------------------------------------------- what is written


def _written(request: FitRequest, fitted: Fitted) -> list[Path]:
    output = request.output
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"dszog fit: the folder {printable(str(output))} cannot be made "
            f"({error.strerror}). Name another with --output."
        ) from error
    report = figures(fitted)
    if fitted.features is not None:
        fitted.model.feature_names_in_ = np.array(fitted.features, dtype=object)
    fitted.model.save(output / MODEL)
    return [output / MODEL, *write_report(output, report, markdown(report))]


def _report(console: Console, fitted: Fitted, paths: list[Path]) -> None:
    style = "green" if fitted.is_success else "yellow"
    say(console, fitted.verdict, style=style)
    for note in fitted.notes:
        say(console, note, style="yellow")
    say(console, fitted.summary)
    for path in paths:
        say(console, f"Wrote {path}")
