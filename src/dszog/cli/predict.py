"""`dszog predict`: a model and a file in, a class and a score for each row out."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from dszog.cli.data import BY_NAME, Columns, Reading, widened, without_gaps
from dszog.cli.files import check_output_file, write_text
from dszog.cli.options import OutputFile
from dszog.cli.talk import DONE, say, tell_new_words
from dszog.contract.validation import printable, shown
from dszog.errors import CheckpointError, InputError
from dszog.readers import read_libsvm
from dszog.readers.lines import is_number

FORMULA = (*"=+-@\t\r\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # last four: wide


def predict(
    model: Path,
    data: Path,
    /,
    *,
    output: OutputFile = None,
    reading: Reading = BY_NAME,
) -> int:
    """Predict the class of each row of a file with a model of `dszog fit`.

    Writes CSV, a line for each row: its class and its score, which is above 0 for the
    positive class. A CSV file is read as the one that the model was fitted on, unless
    options say otherwise. Nothing in a model file is executed.

    For example:

    dszog predict dszog-fit/model.dszog people.csv

    dszog predict dszog-fit/model.dszog a9a.t -o predictions.csv

    Exit codes: 0 done; 130 Ctrl-C; 2 wrong usage or data; 1 other errors.

    Parameters
    ----------
    model
        A file that `dszog fit` or the save method of a classifier wrote.
    data
        The rows, with the columns that the model was fitted on; others are not used.
    output
        File for the predictions; standard output if not given.
    """
    check_output_file(output, "predictions.csv", read=(model, data))
    try:
        text = predictions(Console(stderr=True), model, data, reading)
    except CheckpointError as error:  # of the file that was named
        raise InputError(str(error)) from error
    if output is not None:
        write_text(output, text)
    else:
        is_seen = sys.stdout.isatty()
        sys.stdout.write(printable(text, keep="\n") if is_seen else text)
    return DONE


def predictions(console: Console, file: Path, data: Path, reading: Reading) -> str:
    """Return the class and the score of each row, as the text of a CSV file."""
    from dszog.learn import load

    model = load(file)
    X = _features(console, model, data, reading)
    scores, classes = model.decision_function(X), model.predict(X)
    if model.pos_label_ == model.classes_[0]:
        scores = -scores
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["prediction", "score"])
    for label, score in zip(classes.tolist(), scores.tolist(), strict=True):
        writer.writerow([as_cell(label), repr(score)])
    return text.getvalue()


def as_cell(label: Any) -> Any:
    """Return a class as a cell that no spreadsheet takes for a formula."""
    # A word that begins as formulas do gets an apostrophe in front, which spreadsheets
    # take for the mark of text; so does one that would look like such a word then, so
    # that the words stay different. Numbers stay as they are, -1 too.
    if not isinstance(label, str) or is_number(label):
        return label
    return f"'{label}" if label.lstrip("'").startswith(FORMULA) else label


def _features(console: Console, model: Any, data: Path, reading: Reading) -> Any:
    """Return the rows of a file as the model was given its own."""
    # The order is made right here.
    names = model.__dict__.pop("feature_names_in_", None)
    width = int(model.n_features_in_)
    where = printable(str(data))
    if reading.is_csv(data):
        if names is None:
            raise InputError(
                f"{where}: the model was fitted on a LIBSVM file with {width} numbered "
                "features, got a CSV file. Give a LIBSVM file, or add --format libsvm."
            )
        reading = reading.after(model.reading_)
        table = reading.table(data)
        columns = Columns.named(names.tolist(), model.mean_)
        if reading.missing != "fill":  # every row is answered
            used = [name for name, words in columns.words.items() if not words]
            without_gaps(table, used, (), "refuse")
        X, new = columns.matrix(table)
        tell_new_words(console, new)
        unused = [name for name in table.names if name not in columns.words]
        if unused:
            say(console, f"Not used: {', '.join(unused)}.", style="dim")
        return X
    if names is not None:
        raise InputError(
            f"{where}: the model was fitted on a CSV file with the columns "
            f"{shown(', '.join(Columns.named(names, model.mean_).words), 200)}, got a "
            "LIBSVM file. Give a CSV file, or add --format csv."
        )
    X, _ = read_libsvm(data)
    if X.shape[1] > width:
        raise InputError(
            f"{where}: the model has {width} features, got a file with {X.shape[1]}. "
            "Give rows with the features that it was fitted on."
        )
    return widened(X, width)
