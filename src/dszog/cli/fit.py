"""`dszog fit`: a classifier under constraints, from a file to a model and a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from rich.console import Console

from dszog.cli.data import (
    BY_NAME,
    Columns,
    Reading,
    Samples,
    Wanted,
    read_csv_rows,
    read_libsvm_rows,
    traps,
    widened,
)
from dszog.cli.files import as_json, check_output, make_output, write_text
from dszog.cli.fit_report import Fitted, facts
from dszog.cli.options import COUNT, UNLIMITED, Budget, Flag, OutputFolder
from dszog.cli.talk import (
    DONE,
    INTERRUPTED,
    NO_SUCCESS,
    as_typed,
    finished,
    flags_of,
    say,
    tell_left_out,
    tell_new_words,
)
from dszog.contract.validation import check_choice, printable, shown
from dszog.errors import DszogError, InputError
from dszog.maths.random_stream import stream

ONLY_PAIRWISE = ("margin",)
ONLY_FAIR = ("constraint", "tolerance", "n_bins", "min_group_size")
MODEL, REPORT = "model.dszog", "report.json"
MOST_SHOWN = 200  # characters of the names of features
HOLD_OUT = 3  # purpose of the draw of held-out rows


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Of the classifier, by its names; None where nothing was typed."""

    kernel: Literal["linear", "rbf"] | None = None
    """Kernel of the model: linear (if not given) or rbf."""
    loss: str | None = None
    """Loss: logistic (if not given), hinge, squared, sigmoid, ramp, zero_one or
    welsch."""
    alpha: float | None = None
    """Weight of the squared norm of the weights; 0.0001 if not given."""
    penalty: str | None = None
    """Weight of the worst violation against the loss, or auto: grow until the
    constraints are kept. If not given, 0.03 for pairs and auto for groups."""
    margin: float | None = None
    """Least gap from a negative row's score to a positive one's; 0 if not given."""
    constraint: str | None = None
    """Kind of fairness: equalized_odds (if not given), equal_opportunity or
    demographic_parity."""
    tolerance: float | None = None
    """Largest gap from a group's rate to the overall rate; 0.02 if not given."""
    n_bins: Annotated[int | None, Parameter(name="--bins"), COUNT] = None
    """Bins by which a sensitive column of numbers is grouped; 4 if not given."""
    min_group_size: Annotated[int | None, Parameter(name="--min-group"), COUNT] = None
    """Rates of fewer rows are not constrained; 20 if not given."""
    step_size: float | None = None
    """Step size of the method."""


ALL_COLUMNS, DEFAULTS = Wanted(), Settings()
FLAGS = flags_of([*vars(DEFAULTS), *vars(UNLIMITED)]) | {
    "min_group_size": "--min-group",
    "n_bins": "--bins",
    "pos_label": "--positive",
    "sensitive_features": "--sensitive",
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What was typed, beside the file."""

    task: Literal["pairwise", "fair"]
    """pairwise: every positive row scores above every negative one. fair: groups of
    people are treated alike."""
    wanted: Wanted = ALL_COLUMNS
    test: Path | None = None
    """A file of rows to test the model on."""
    holdout: float | None = None
    """Share of the rows to hold out for testing, instead of --test."""
    output: OutputFolder = Path("dszog-fit")
    """Folder for the model and the report."""
    overwrite: Flag = False
    """Replace an existing model."""
    settings: Settings = DEFAULTS
    budget: Budget = UNLIMITED
    seed: int = 0
    """Random seed: same seed, same model."""
    reading: Reading = BY_NAME

    @property
    def given(self) -> dict[str, Any]:
        named = vars(self.settings) | vars(self.budget)
        return {name: value for name, value in named.items() if value is not None}


def fit(data: Path, /, *, request: FitRequest) -> int:
    """Train a classifier under constraints on a LIBSVM or CSV file.

    Writes model.dszog and report.json into the output folder. Of a CSV file, columns of
    numbers are features, and columns of words are one feature for each word. Files may
    be compressed (gzip, bzip2, xz). Ctrl-C and SIGTERM end the training, and the best
    model so far is written.

    For example:

    dszog fit a9a --task pairwise --test a9a.t

    dszog fit people.csv --task pairwise --target hired --holdout 0.25 --kernel rbf

    dszog fit people.csv --task fair --target hired --positive yes --sensitive sex

    dszog fit leute.csv --task pairwise --target gut --decimal , --missing drop

    Exit codes: 0 done, and constraints kept (pairs only with --penalty auto or
    --constraint-tol); 3 the run ended without that; 130 Ctrl-C; 143 SIGTERM; 2 wrong
    usage or data; 1 other errors.

    Parameters
    ----------
    data
        The rows to train on.
    """
    console = Console()

    def finish(fitted: Fitted) -> int:
        paths = _write(request.output, fitted)
        say(console, fitted.verdict, style="green" if fitted.is_success else "yellow")
        for note in fitted.notes:
            say(console, note, style="yellow")
        say(console, fitted.summary)
        if fitted.features is not None:
            used = printable(", ".join(fitted.features))
            more = "..." if len(used) > MOST_SHOWN else ""
            n = len(fitted.features)
            say(console, f"Features used ({n:,}): {used[:MOST_SHOWN]}{more}")
        for path in paths:
            say(console, f"Wrote {path}")
        if fitted.is_interrupted:
            return INTERRUPTED
        return DONE if fitted.is_success else NO_SUCCESS

    return finished(
        lambda: _fitted(console, data, request),
        finish,
        lambda: say(console, "Interrupted before there was a model."),
    )


# ---------------------------------------------------------------------- what was typed


def _check(data: Path, request: FitRequest) -> None:
    """Refuse what cannot work before a file is read."""
    is_fair, wanted = request.task == "fair", request.wanted
    for name in ONLY_PAIRWISE if is_fair else ONLY_FAIR:
        if name in request.given:
            other = "pairwise" if is_fair else "fair"
            raise InputError(
                f"{FLAGS[name]} goes with --task {other}, got --task {request.task}. "
                "Leave it out."
            )
    model = request.output / MODEL
    share, seed = request.holdout, request.seed
    for is_wrong, message in (
        (
            is_fair and not wanted.sensitive,
            "--task fair needs --sensitive, got none. Name the columns whose groups "
            "are to be treated alike.",
        ),
        (
            not is_fair and (wanted.sensitive or wanted.use_sensitive),
            "--sensitive goes with --task fair, got --task pairwise. Leave it out, or "
            "--drop the column.",
        ),
        (
            request.test is not None and share is not None,
            "got both --test and --holdout. Give one: a file, or a share of the rows.",
        ),
        (
            share is not None and not 0.0 < share < 1.0,
            f"--holdout must lie between 0 and 1, got {share}. Try 0.25.",
        ),
        (
            not 0 <= seed < 2**32,
            f"--seed must lie between 0 and 2**32 - 1, got {seed}. Try 0.",
        ),
        (
            model.exists() and not request.overwrite,
            f"{printable(str(model))} is there already. Name another folder with "
            "--output, or replace it: --overwrite.",
        ),
    ):
        if is_wrong:
            raise InputError(message)
    check_output(request.output)
    if request.reading.is_csv(data):
        _check_columns(wanted)
    else:
        _check_libsvm(wanted)


def _check_columns(wanted: Wanted) -> None:
    """Refuse a column that is to be two things, one of which would be ignored."""
    uses = {
        "--target": (wanted.target,),
        "--drop": wanted.drop,
        "--categorical": wanted.categorical,
        "--sensitive": wanted.sensitive,
    }
    for one, other, why in (
        ("--target", "--categorical", "classes are no features"),
        ("--target", "--drop", "the target is never a feature"),
        ("--target", "--sensitive", "nothing is left to be fair about"),
        ("--drop", "--categorical", "a column that is left out is not read"),
    ):
        for name in uses[one]:
            if name is not None and name in uses[other]:
                raise InputError(
                    f"column {shown(name)} is named by both {one} and {other}: {why}. "
                    f"Leave {other} {printable(name)} out."
                )


def _check_libsvm(wanted: Wanted) -> None:
    for option in ("target", "drop", "categorical"):
        if getattr(wanted, option) not in (None, ()):
            raise InputError(
                f"--{option} names a column of a CSV file, got a LIBSVM file. Leave it "
                "out, or add --format csv."
            )
    if wanted.sensitive and not wanted.use_sensitive:
        raise InputError(
            "columns of a LIBSVM file cannot be kept from the model, got --sensitive "
            "without --use-sensitive. Add it, or give a CSV file."
        )


# ----------------------------------------------------------------------- what is read


def _read(
    console: Console, data: Path, request: FitRequest
) -> tuple[Samples, Samples | None, Columns | None, list[str]]:
    reading, wanted = request.reading, request.wanted
    notes: list[str] = []
    columns: Columns | None = None
    test: Samples | None = None
    if reading.is_csv(data):
        table = reading.table(data)
        gaps = reading.missing or "refuse"
        rows, columns, _ = read_csv_rows(table, wanted, missing=gaps)
        tell_left_out(console, table.n_rows - len(rows))
        notes = traps(table, columns, reading)
        if request.test is not None:
            table = reading.table(request.test)
            test, _, new = read_csv_rows(table, wanted, columns, rows.y, gaps)
            tell_left_out(console, table.n_rows - len(test))
            tell_new_words(console, new)
    else:
        rows = read_libsvm_rows(data, wanted)
        if request.test is not None:
            test = read_libsvm_rows(request.test, wanted)
            width = max(rows.X.shape[1], test.X.shape[1])
            rows, test = (replace(one, X=widened(one.X, width)) for one in (rows, test))
    if request.holdout is not None:
        rows, test = _cut(rows, request.holdout, request.seed)
    if len(np.unique(rows.y)) != 2:
        raise InputError(
            "there must be two classes to train on, got "
            f"{shown(np.unique(rows.y).tolist())}. Check the target, or join classes."
        )
    unknown = [] if test is None else np.setdiff1d(test.y, rows.y).tolist()
    if unknown:
        raise InputError(
            f"the test rows must have the classes {shown(np.unique(rows.y).tolist())}, "
            f"got {shown(unknown)}. Write the labels alike in both files, or leave "
            "these rows out."
        )
    return rows, test, columns, notes


def _cut(rows: Samples, share: float, seed: int) -> tuple[Samples, Samples]:
    """Return the rows in two parts, the same share of each class in the second."""
    rng = stream(seed, 0, HOLD_OUT)
    is_held = np.zeros(len(rows), dtype=bool)
    for label in np.unique(rows.y):
        places = np.flatnonzero(rows.y == label)
        is_held[rng.permutation(places)[: round(share * len(places))]] = True
    if not is_held.any() or is_held.all():
        raise InputError(
            f"--holdout must leave rows on both sides, got {share:g} of {len(rows)} "
            "rows. Try 0.25."
        )
    return rows.take(np.flatnonzero(~is_held)), rows.take(np.flatnonzero(is_held))


# ---------------------------------------------------------------------------- the fit


def _fitted(console: Console, data: Path, request: FitRequest) -> Fitted:
    _check(data, request)
    from dszog.learn import LOSSES, FairClassifier, PairwiseClassifier
    from dszog.learn.group_constraints import RATES

    given = request.given
    for name, choices in (("loss", LOSSES), ("constraint", RATES)):
        if name in given:
            check_choice("dszog fit", FLAGS[name], given[name], choices)
    if "penalty" in given:
        given["penalty"] = _penalty(given["penalty"])
    kind = FairClassifier if request.task == "fair" else PairwiseClassifier
    model = kind(random_state=request.seed, verbose=True, **given)
    _refuse_wrong(model._validate_params)
    rows, test, columns, traps_met = _read(console, data, request)
    more = {"sensitive_features": rows.sensitive} if request.task == "fair" else {}
    model.pos_label = _as_class(request.wanted.positive, rows.y)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _refuse_wrong(model.fit, rows.X, rows.y, **more)
    warned = dict.fromkeys(as_typed(str(one.message), FLAGS) for one in caught)
    model.reading_ = request.reading.given
    return Fitted(
        model=model,
        request=request,
        file=str(data),
        features=None if columns is None else columns.features,
        train=rows,
        test=test,
        seconds=time.perf_counter() - started,
        notes=[*traps_met, *warned],
    )


def _as_class(text: str | None, y: Any) -> Any:
    """Return a class as it was typed, as the one of the rows that it is."""
    return next((label for label in np.unique(y).tolist() if str(label) == text), text)


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
            f"--penalty takes a number or auto, got {shown(text)}. For example "
            "--penalty 0.1."
        ) from None


def _write(output: Path, fitted: Fitted) -> list[Path]:
    make_output(output)
    figures = as_json(facts(fitted))
    if fitted.features is not None:
        fitted.model.feature_names_in_ = np.array(fitted.features, dtype=object)
    fitted.model.save(output / MODEL)
    write_text(output / REPORT, figures)
    return [output / MODEL, output / REPORT]
