"""`dszog predict`: a model and a file in, a class and a score for each row out."""

from __future__ import annotations

import csv
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from dszog.cli.complaints import complain
from dszog.cli.data import FORMATS, Columns, Source, widened
from dszog.cli.folders import check_output_file
from dszog.cli.talk import DONE, FAILED, INTERRUPTED, USAGE, say, tell_new_words
from dszog.cli.writing import write_text
from dszog.contract.validation import check_choice, printable, shown
from dszog.errors import CheckpointError, DszogError, InputError
from dszog.readers import read_libsvm
from dszog.readers.lines import is_number

FORMULA = (*"=+-@\t\r\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # last four: wide


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """What was typed."""

    model: Path
    source: Source
    output: Path | None


def predict_command(console: Console, request: PredictRequest) -> int:
    """Write the predictions and return the exit code; `console` is for errors."""
    try:
        _check(request)
        text = predictions(console, request)
        if request.output is not None:
            write_text(request.output, text)
            return DONE
        return _print(text)
    except KeyboardInterrupt:
        return INTERRUPTED
    except CheckpointError as error:  # of the file that was named
        complain("predict", error, {})
        return USAGE
    except DszogError as error:
        return complain("predict", error, {})


def _check(request: PredictRequest) -> None:
    check_choice("dszog predict", "--format", request.source.format, FORMATS)
    check_output_file(
        "predict",
        request.output,
        "predictions.csv",
        read=(request.model, request.source.path),
    )


def predictions(console: Console, request: PredictRequest) -> str:
    """Return the class and the score of each row, as the text of a CSV file."""
    from dszog.learn import load

    model = load(request.model)
    X = _features(console, model, request.source)
    scores = model.decision_function(X)
    classes = model.classes_[(scores > 0.0).astype(int)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["prediction", "score"])
    for label, score in zip(classes.tolist(), scores.tolist(), strict=True):
        writer.writerow([as_cell(label), repr(score)])
    return text.getvalue()


def as_cell(label: Any) -> Any:
    """Return a class as a cell that no spreadsheet takes for a formula.

    A word that begins as formulas do gets an apostrophe in front, which spreadsheets
    take for the mark of text; so does one that would look like such a word then, so
    that the words stay different. Numbers stay as they are, -1 too.
    """
    if not isinstance(label, str) or is_number(label):
        return label
    return f"'{label}" if label.lstrip("'").startswith(FORMULA) else label


def _features(console: Console, model: Any, source: Source) -> Any:
    """Return the rows of a file as the model was given its own."""
    names = model.__dict__.pop(
        "feature_names_in_", None
    )  # the order is made right here
    width = int(model.n_features_in_)
    where = printable(str(source.path))
    if source.is_csv:
        if names is None:
            raise InputError(
                f"{where}: the model was fitted on a LIBSVM file with {width} numbered "
                "features, got a CSV file. Give a LIBSVM file, or add --format libsvm."
            )
        table = source.table()
        columns = Columns.named(names.tolist())
        X, new = columns.matrix(table)
        tell_new_words(console, new)
        unused = [name for name in table.names if name not in columns.words]
        if unused:
            say(console, f"Not used: {', '.join(unused)}.", style="dim")
        return X
    if names is not None:
        raise InputError(
            f"{where}: the model was fitted on a CSV file with the columns "
            f"{shown(', '.join(Columns.named(names.tolist()).words), 200)}, got a "
            "LIBSVM file. Give a CSV file, or add --format csv."
        )
    X, _ = read_libsvm(source.path)
    if X.shape[1] > width:
        raise InputError(
            f"{where}: the model has {width} features, got a file with {X.shape[1]}. "
            "Give rows with the features that it was fitted on."
        )
    return widened(X, width)


def _print(text: str) -> int:
    """Write to standard output; a reader who leaves early is no error of ours."""
    if sys.stdout.isatty():
        text = printable(text, keep="\n")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return DONE
