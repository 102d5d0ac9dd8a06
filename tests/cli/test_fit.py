"""`dszog fit` and `dszog predict`: from a file to a model, and from it to answers."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("sklearn")

from dszog.learn import FairClassifier, PairwiseClassifier, load
from tests.cli.conftest import Dszog, refused, start

# A line of progress at every iteration: it says that the run is under way.
SHOWN = "from dszog.show.progress import Lines; Lines.every = 0.0; "
N = 200
QUICK = ("--max-iterations", "30")


def people(n: int = N, seed: int = 0) -> dict[str, list[str]]:
    rng = np.random.Generator(np.random.Philox(key=seed))
    region = rng.choice(["north", "south"], n)
    merit = rng.normal(size=n)
    colour = rng.choice(["blue", "red", "a=b"], n)
    noise = 0.5 * rng.normal(size=n)
    hired = merit + 0.8 * (region == "north") + noise > 0.4
    return {
        "merit": [f"{value:.6f}" for value in merit],
        "region": region.tolist(),
        "colour": colour.tolist(),
        "hired": np.where(hired, "yes", "no").tolist(),
    }


def write_csv(
    path: str, columns: dict[str, list[str]], mark: str = ",", encoding: str = "utf-8"
) -> None:
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=mark, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_libsvm(path: str, columns: dict[str, list[str]]) -> None:
    lines = [
        f"{1 if hired == 'yes' else -1} 1:{merit} 2:{int(region == 'north')}\n"
        for merit, region, _, hired in zip(*columns.values(), strict=True)
    ]
    Path(path).write_text("".join(lines))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_csv("people.csv", people())
    write_csv("test.csv", people(seed=1))
    write_libsvm("rows", people())
    return tmp_path


FAIR = ("people.csv", "--task", "fair", "--target", "hired", "--sensitive", "region")
PAIRS = ("people.csv", "--task", "pairwise", "--target", "hired", "--drop", "region")
ROWS, GROUPS = ("rows", "--task", "pairwise"), ("rows", "--task", "fair", "--sensitive")


def report(folder: str = "dszog-fit") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "report.json").read_text())
    return found


# ------------------------------------------------------------------------ what it does
def test_the_model_is_that_of_the_classifier(dszog: Dszog) -> None:
    code, said, _ = dszog("fit", "rows", "--task", "pairwise", "--seed", "5", *QUICK)
    assert code == 0, said
    columns = people()
    merit = np.array(columns["merit"], dtype=float)
    X = np.column_stack([merit, np.array(columns["region"]) == "north"])
    from scipy.sparse import csr_array

    y = np.where(np.array(columns["hired"]) == "yes", 1, -1)
    expected = PairwiseClassifier(max_iterations=30, random_state=5)
    expected.fit(csr_array(X.astype(float)), y)
    model = load("dszog-fit/model.dszog")
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.classes_, [-1, 1])
    found = report()
    assert found["digest"] == expected.result_.digest
    assert found["train"]["accuracy"] == expected.score(X, y)
    feasibility = expected.certificate_.feasibility
    share = feasibility.n_violated / feasibility.n_constraints
    assert found["train"]["share_violated"] == pytest.approx(share, abs=1e-3)
    assert "test" not in found


def test_words_become_features_and_predict_reads_them_by_name(dszog: Dszog) -> None:
    code, said, _ = dszog("fit", *PAIRS, "--test", "test.csv", *QUICK)
    assert code == 0, said
    found = report()
    names = ["merit", "colour=a=b", "colour=blue", "colour=red"]
    assert found["feature_names"] == names
    assert found["classes"] == ["no", "yes"]

    columns = people(seed=1)
    write_csv("moved.csv", {name: columns[name] for name in ("colour", "merit")})
    one = dszog("predict", "dszog-fit/model.dszog", "test.csv")
    other = dszog("predict", "dszog-fit/model.dszog", "moved.csv")
    assert one[0] == other[0] == 0
    assert one[1] == other[1]
    assert "Not used: region, hired." in one[2]
    rows = list(csv.DictReader(io.StringIO(one[1])))
    assert len(rows) == N
    right = [row["prediction"] for row in rows] == np.array(columns["hired"])
    assert np.mean(right) == found["test"]["accuracy"] > 0.7
    assert all((float(r["score"]) > 0) == (r["prediction"] == "yes") for r in rows)


def test_groups_are_reported_for_train_and_test_rows(dszog: Dszog) -> None:
    code, said, _ = dszog(
        "fit", *FAIR, "--holdout", "0.25", "--tolerance", "0.3", *QUICK
    )
    found = report()
    assert code == 0, said
    assert found["constraints_kept"] is True
    assert (found["train"]["rows"], found["test"]["rows"]) == (150, 50)
    groups = {(g["column"], g["group"]) for g in found["test"]["groups"]}
    assert groups == {("", "all"), ("region", "north"), ("region", "south")}
    assert "region" not in found["feature_names"]  # it is not an input
    assert isinstance(load("dszog-fit/model.dszog"), FairClassifier)


def test_the_same_seed_holds_out_the_same_rows(dszog: Dszog) -> None:
    for name in ("a", "b"):
        dszog("fit", *PAIRS, "--holdout", "0.5", "--seed", "3", "-o", name, *QUICK)
    one, other = report("a"), report("b")
    assert one["digest"] == other["digest"]
    assert one["test"] == other["test"]
    share = one["test"]["positive_rows"] / one["test"]["rows"]
    assert share == pytest.approx(one["train"]["positive_rows"] / 100, abs=0.02)


def test_a_word_that_is_new_to_the_model_is_told(dszog: Dszog) -> None:
    dszog("fit", *PAIRS, *QUICK)
    columns = people(3)
    columns["colour"][1] = "teal"
    write_csv("new.csv", columns)
    code, said, told = dszog("predict", "dszog-fit/model.dszog", "new.csv")
    assert code == 0
    assert said.count("\n") == 4
    assert "1 rows have a word in column 'colour' that is new" in told


def test_predictions_go_to_a_file(dszog: Dszog) -> None:
    dszog("fit", "rows", "--task", "pairwise", *QUICK)
    straight = dszog("predict", "dszog-fit/model.dszog", "rows")[1]
    code, said, _ = dszog("predict", "dszog-fit/model.dszog", "rows", "-o", "out.csv")
    assert (code, said) == (0, "")
    assert Path("out.csv").read_text() == straight
    assert straight.splitlines()[0] == "prediction,score"
    assert {line.split(",")[0] for line in straight.splitlines()[1:]} == {"-1", "1"}


@pytest.mark.parametrize(
    ("classes", "written"),
    [
        (("=1+1", "@SUM(A1)"), ("'=1+1", "'@SUM(A1)")),
        (("+a", "-b"), ("'+a", "'-b")),
        (("\tx", "\uff1dy"), ("'\tx", "'\uff1dy")),
        (("=x", "'=x"), ("'=x", "''=x")),  # still two
        (("'t", "a=b"), ("'t", "a=b")),
        (("-1", "+1"), ("-1", "1")),
        (("-1.5", "2e3"), ("-1.5", "2e3")),
    ],
)
def test_no_class_is_written_as_a_formula(
    classes: tuple[str, str], written: tuple[str, str], dszog: Dszog
) -> None:
    columns = people()
    names = dict(zip(("no", "yes"), classes, strict=True))
    columns["hired"] = [names[word] for word in columns["hired"]]
    write_csv("people.csv", columns)
    dszog("fit", *PAIRS, *QUICK)
    code, said, _ = dszog("predict", "dszog-fit/model.dszog", "people.csv")
    assert code == 0
    rows = csv.DictReader(io.StringIO(said, newline=""))
    assert {row["prediction"] for row in rows} == set(written)


def test_other_delimiters_and_packed_files_are_read(dszog: Dszog) -> None:
    import gzip

    write_csv("people.tsv", people(), "\t")
    Path("people.tsv.gz").write_bytes(gzip.compress(Path("people.tsv").read_bytes()))
    words = ("--task", "pairwise", "--target", "hired", *QUICK)
    for number, name in enumerate(("people.csv", "people.tsv", "people.tsv.gz")):
        assert dszog("fit", name, *words, "-o", str(number))[0] == 0
    assert report("0")["digest"] == report("1")["digest"] == report("2")["digest"]


def test_numbers_of_a_sensitive_column_can_be_words(dszog: Dszog) -> None:
    columns = people()
    ages = [str(20 + place % 12) for place in range(N)]  # too many to be groups
    write_csv("ages.csv", columns | {"age": ages})
    words = ("ages.csv", *FAIR[1:5], "--sensitive", "age", "--min-group", "2", *QUICK)
    dszog("fit", *words, "--tolerance", "0.9", "-o", "numbers")
    dszog("fit", *words, "--tolerance", "0.9", "--categorical", "age", "-o", "words")

    def groups(folder: str) -> set[str]:
        return {group["group"] for group in report(folder)["train"]["groups"][1:]}

    assert groups("words") == set(ages)
    assert groups("numbers") != set(ages)


def test_the_positive_class_is_the_one_that_is_typed(dszog: Dszog) -> None:
    words = (*FAIR, "--positive", "no", *QUICK, "--constraint-tol", "9")
    assert dszog("fit", *words)[0] == 0
    assert report()["positive"] == "no"
    said = dszog("predict", "dszog-fit/model.dszog", "people.csv")[1]
    for row in csv.DictReader(said.splitlines()):
        assert (row["prediction"] == "no") == (float(row["score"]) > 0.0)


def test_a_sensitive_column_of_numbers_can_be_an_input(dszog: Dszog) -> None:
    words = ("rows", "--task", "fair", "--sensitive", "2", "--use-sensitive")
    assert dszog("fit", *words, "--tolerance", "0.5", *QUICK)[0] == 0
    assert report()["train"]["groups"][1]["column"] == "feature 2"


def gaps() -> dict[str, list[str]]:
    columns = people()
    columns["merit"][1], columns["merit"][5] = "n/a", "-"
    columns["hired"][3] = ""
    return columns


def test_a_file_of_another_country_is_read_as_the_plain_one(dszog: Dszog) -> None:
    merit = [f"{1000 * float(text):.2f}" for text in people()["merit"]]
    colour = [text.replace("u", "ü") for text in people()["colour"]]
    write_csv("plain.csv", people() | {"merit": merit, "colour": colour})
    marks = str.maketrans(",.", ".,")
    written = [f" {float(text):,.2f} ".translate(marks) for text in merit]
    written_so = people() | {"merit": written, "colour": colour}
    written_so = {f" {name} ": column for name, column in written_so.items()}
    write_csv("leute.csv", written_so, ";", "latin-1")
    forms = ("--decimal", ",", "--thousands", ".", "--encoding", "latin-1")
    assert dszog("fit", "plain.csv", *PAIRS[1:], *QUICK, "-o", "a")[0] == 0
    assert dszog("fit", "leute.csv", *PAIRS[1:], *QUICK, *forms, "-o", "b")[0] == 0
    assert report("a")["digest"] == report("b")["digest"]
    plain, said = (
        dszog("predict", f"{one}/model.dszog", file)
        for one, file in (("a", "plain.csv"), ("b", "leute.csv"))
    )
    assert said[:2] == plain[:2]  # the model remembers how numbers were written
    assert said[0] == 0
    wrong = forms[:2] + forms[4:]  # 1.234,50 is no number then
    assert dszog("fit", "leute.csv", *PAIRS[1:], *QUICK, *wrong, "-o", "c")[0] == 2
    told = refused(dszog, "fit", "leute.csv", *PAIRS[1:], *forms[:4])
    assert "is not UTF-8. Convert the file to UTF-8, say --encoding latin-1 or" in told


def test_rows_with_missing_numbers_are_dropped_or_filled(dszog: Dszog) -> None:
    write_csv("gaps.csv", gaps())
    for how, n in (("drop", 3), ("fill", 1)):  # a row without a class is of no use
        words = ("gaps.csv", *PAIRS[1:], *QUICK, "--missing", how, "-o", how)
        code, said, _ = dszog("fit", *words)
        assert (code, report(how)["train"]["rows"]) == (0, N - n)
        assert f"{n} rows are left out: a value is missing." in said
    model = "fill/model.dszog"
    told = refused(dszog, "predict", model, "gaps.csv", "--missing", "refuse")
    assert "none of 'merit' in 2 rows (line 3)" in told
    code, said, _ = dszog("predict", model, "gaps.csv")  # as the model remembers
    assert (code, said.count("\n")) == (0, N + 1)
    rows = enumerate(gaps()["merit"])  # of those that the model has seen
    known = [float(text) for row, text in rows if text not in ("n/a", "-") and row != 3]
    mean = f"{np.mean(known):.15f}"
    filled = [mean if text == "n/a" else text for text in gaps()["merit"]]
    write_csv("mean.csv", gaps() | {"merit": filled})
    ours, theirs = (
        [float(line.split(",")[1]) for line in text.splitlines()[1:]]
        for text in (said, dszog("predict", model, "mean.csv")[1])
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_constraints_that_are_not_kept_exit_with_3_if_asked(dszog: Dszog) -> None:
    code, said, _ = dszog("fit", *PAIRS, *QUICK, "-o", "a")
    assert code == 0
    assert "not all are kept" in said
    for number, more in enumerate((("--penalty", "auto"), ("--constraint-tol", "0"))):
        code, said, _ = dszog("fit", *PAIRS, *more, *QUICK, "-o", f"b{number}")
        assert code == 3
        assert said.startswith("No success: the model does not keep the constraints.")
        assert report(f"b{number}")["success"] is False


@pytest.mark.parametrize("task", [PAIRS, FAIR])
def test_a_training_that_did_not_begin_is_no_success(dszog: Dszog, task: Any) -> None:
    code, said, _ = dszog("fit", *task, "--max-time", "1e-9")
    assert code == 3
    assert said.startswith("No success: the time was up before the first iteration.")


def test_columns_that_may_be_meant_otherwise_are_noted(dszog: Dszog) -> None:
    columns = people()
    columns |= {"id": [str(k + 1) for k in range(N)], "same": ["7"] * N}
    columns["pay"] = ["1.234", "950"] * (N // 2)
    columns["Stadt"] = ["K\u00f6ln", "Ulm"] * (N // 2)
    write_csv("odd.csv", columns, encoding="utf-8-sig")
    code, said, _ = dszog("fit", "odd.csv", *PAIRS[1:], *QUICK)
    assert code == 0
    for note in (
        "Column 'id' only numbers the rows. Leave it out: --drop id.",
        "Column 'same' is the same in all rows. Leave it out: --drop same.",
        "Column 'pay': 1.234 is read as a number below 1000. If the point groups "
        "digits: --thousands . --decimal ,.",
    ):
        assert note in said
        assert note in report()["notes"]
    assert "Features used (9): merit, colour=a=b, " in said
    assert "looks like utf-8" not in said
    more = ("--encoding", "latin-1", "--overwrite", "--drop", "pay")
    assert "looks like utf-8" in dszog("fit", "odd.csv", *PAIRS[1:], *QUICK, *more)[1]
    thousands = ("--decimal", ",", "--thousands", ".", "--drop", "merit", "-o", "b")
    said = dszog("fit", "odd.csv", *PAIRS[1:], *QUICK, *thousands)[1]
    assert "'pay'" not in said


# ------------------------------------------------------------------------ wrong usage

WRONG_FIT: list[tuple[list[str], str]] = [
    (["none.csv", "--task", "pairwise", "--target", "y"], "the file cannot be read"),
    (["people.csv", "--task", "pairwise"], "needs --target, got none. Name the column"),
    ([*PAIRS[:4], "hierd"], "there is no column 'hierd'. Did you mean 'hired'"),
    ([*PAIRS, "--drop", "ragion"], "Did you mean 'region'"),
    ([*PAIRS, "--sensitive", "region"], "--sensitive goes with --task fair"),
    ([*PAIRS, "--tolerance", "0.1"], "--tolerance goes with --task fair, got --task"),
    ([*PAIRS, "--bins", "3"], "--bins goes with --task fair"),
    ([*FAIR, "--margin", "0.1"], "--margin goes with --task pairwise, got --task fair"),
    ([*FAIR[:5]], "--task fair needs --sensitive, got none"),
    ([*PAIRS, "--loss", "logistik"], "Did you mean 'logistic'"),
    ([*FAIR, "--constraint", "equalised_odds"], "Did you mean 'equalized_odds'"),
    ([*PAIRS, "--penalty", "much"], "--penalty takes a number or auto, got 'much'"),
    ([*PAIRS, "--alpha", "-1"], "fit: --alpha must be a float in .*, got -1.0. Corr"),
    ([*PAIRS, "--max-iterations", "0"], "fit: --max-iterations must be .*, got 0. Cor"),
    ([*FAIR, "--bins", "-1"], "fit: --bins must be .*, got -1. Correct it"),
    ([*FAIR, "--min-group", "150"], "groups of --min-group 150 rows"),
    ([*PAIRS, "--max-queries", "9"], "fit: one .* got --max-queries 9. Raise --max"),
    ([*PAIRS, "--holdout", "1.5"], "--holdout must lie between 0 and 1, got 1.5. Try"),
    ([*PAIRS, "--holdout", "0.001"], "must leave rows on both sides"),
    ([*PAIRS, "--holdout", "0.2", "--test", "rows"], "got both --test and --holdout"),
    ([*PAIRS, "--seed", "-1"], "--seed must lie between 0 and"),
    ([*PAIRS, "-o", "rows"], "--output must be a folder, got the file rows"),
    ([*ROWS, "--target", "y"], "--target names a column of a CS"),
    ([*GROUPS, "2"], "without --use-sensitive"),
    ([*GROUPS, "9", "--use-sensitive"], "by its number, 1 to 2, got '9'"),
    (["people.csv", "--task", "pairwise", "--format", "libsvm"], "line 1, column 1"),
    (["mixed.csv", *PAIRS[1:5]], "line 4, column 'merit': the column has numbers and"),
    (
        ["gaps.csv", *PAIRS[1:]],
        r"none of 'hired' in 1 rows \(line 5\), 'merit' in 2 rows \(line 3\)\. Say .*"
        "--missing drop .*--missing fill",
    ),
    (["form.csv", *PAIRS[1:]], "'merit': the column looks like numbers in another .*,"),
    (
        ["form.csv", *PAIRS[1:], "--decimal", ","],
        "line 8, column 'merit': .* form, got '1.006,5'. Say .* --thousands .",
    ),
    (
        ["form.csv", *PAIRS[1:], "--decimal", ",", "--thousands", "."],
        "line 7, column 'merit': .* words, got 'k.A.'. .*empty if .* is missing",
    ),
    (["empty.csv", *PAIRS[1:5]], "column 'none' has no values. .*--drop none"),
    ([*PAIRS, "--positive", "Yes"], r"--positive must be one of .*got 'Yes'"),
    ([*PAIRS, "--thousands", "."], "`decimal` and `thousands` must differ"),
    (["three.csv", *PAIRS[1:5]], r"two classes to train on, got \['maybe', 'no', 'yes"),
    (
        ["many.csv", *PAIRS[1:5]],
        "'full name' has 201, 'id' has 201 dif.*--drop 'full name' --drop id",
    ),
    (["sign.csv", *PAIRS[1:5]], "must not have '=' in it, got 'a=b'. Rename"),
    ([*PAIRS, "--test", "three.csv"], r"classes \['no', 'yes'\], got \['maybe'\]"),
    (
        [*PAIRS, "--test", "numbers.csv"],
        r"\['no', 'yes'\], got \['0', '1'\]. Write the labels alike in both files",
    ),
    (
        ["numbers.csv", *PAIRS[1:], "--test", "people.csv"],
        "line 2, column 'hired': labels are whole numbers in the rows to train on, got "
        "'(yes|no)'. Write them alike",
    ),
    ([*PAIRS, "--categorical", "hired"], "'hired' is named by both --target and --cat"),
    ([*PAIRS, "--drop", "hired"], "'hired' is named by both --target and --drop"),
    ([*FAIR[:-1], "hired"], "both --target and --sensitive: nothing is left to be fai"),
    ([*PAIRS, "--categorical", "region"], "both --drop and --categorical: a column th"),
]


@pytest.fixture
def odd_files(folder: Path) -> None:
    columns = people(5)
    columns["merit"][2] = "much"
    write_csv("mixed.csv", columns)
    write_csv("gaps.csv", gaps())
    merit = ["983,2", "", "983,2", "983,2", "983,2", "k.A."]  # at first of another form
    merit += [f"1.{i:03},5" for i in range(6, N)]
    write_csv("form.csv", people() | {"merit": merit}, ";")
    columns = people()
    columns["hired"][7] = "maybe"
    write_csv("three.csv", columns)
    columns = people(201)
    names = [f"n{i}" for i in range(201)]
    write_csv("many.csv", {"full name": names, "id": names, **columns})
    write_csv("empty.csv", {"none": [""] * 201, **columns})
    hired = ["01"[word == "yes"] for word in people()["hired"]]
    write_csv("numbers.csv", people() | {"hired": hired})
    write_csv("sign.csv", {"a=b": columns["merit"], **columns})


@pytest.mark.parametrize(
    ("words", "complaint"), WRONG_FIT, ids=[" ".join(w) for w, _ in WRONG_FIT]
)
def test_wrong_usage_is_one_line_and_writes_nothing(
    dszog: Dszog, odd_files: None, words: list[str], complaint: str
) -> None:
    told = refused(dszog, "fit", *words)
    assert re.search(complaint, told), told
    assert not Path("dszog-fit").exists()


def test_a_model_is_replaced_only_if_that_is_asked_for(dszog: Dszog) -> None:
    words = ("fit", *ROWS, *QUICK, "--seed")
    dszog(*words, "0")
    before = Path("dszog-fit/model.dszog").read_bytes()
    assert "is there already" in refused(dszog, *words, "1")
    assert Path("dszog-fit/model.dszog").read_bytes() == before
    assert dszog(*words, "1", "--overwrite")[0] == 0
    assert Path("dszog-fit/model.dszog").read_bytes() != before


def test_without_scikit_learn_the_extra_is_named(
    dszog: Dszog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("dszog.learn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for words in (["fit", *PAIRS], ["predict", "model", "rows"]):
        assert 'pip install "dszog[learn]"' in refused(dszog, *words)


def test_predict_refuses_what_does_not_fit_the_model(dszog: Dszog) -> None:
    dszog("fit", *PAIRS, *QUICK, "-o", "named")
    dszog("fit", "rows", "--task", "pairwise", *QUICK, "-o", "numbered")
    columns = people(3)
    write_csv("less.csv", {"merits": columns["merit"], "colour": columns["colour"]})
    write_csv("words.csv", {"merit": ["a", "b"], "colour": ["red", "red"]})
    Path("wide").write_text("1 1:2 7:1\n")
    Path("empty.csv").write_text("merit,colour\n")
    Path("damaged").write_bytes(Path("named/model.dszog").read_bytes()[:-3])
    named, numbered = "named/model.dszog", "numbered/model.dszog"
    for words, complaint in [
        ((named, "less.csv"), "got a file without 'merit'. Did you mean 'merits'"),
        ((named, "words.csv"), "line 2, column 'merit': a number .* got 'a'. Cor"),
        ((named, "empty.csv"), r"no rows of data. Get it again; its first line"),
        ((named, "rows"), "fitted on a CSV file with the columns 'merit, colour', got"),
        ((numbered, "people.csv"), "fitted on a LIBSVM file with 2 numbered features"),
        ((numbered, "wide"), "the model has 2 features, got a file with 7. Give rows"),
        (("rows", "rows"), "'rows' is no model that can be used"),
        (("damaged", "people.csv"), "'damaged' is no model that can be used"),
        (("nothing", "people.csv"), "'nothing' cannot be read"),
        ((named, "nothing.csv"), "the file cannot be read"),
        ((named, "people.csv", "-o", "."), "--output must be a file, got the folder"),
        ((named, "people.csv", "-o", "no/p.csv"), "the folder of --output .* not ther"),
        ((named, "people.csv", "-o", named), "would be lost. Name another file"),
        ((named, "people.csv", "-o", "people.csv"), "be lost. Name another file"),
    ]:
        before = [Path(file).read_bytes() for file in (named, "people.csv")]
        told = refused(dszog, "predict", *words)
        assert re.search(complaint, told), told
        assert [Path(file).read_bytes() for file in (named, "people.csv")] == before


def test_names_of_columns_do_not_steer_the_terminal(dszog: Dszog) -> None:
    columns = people(30)
    columns["evil\x1b[31m"] = columns.pop("colour")
    columns["hired"][:2] = ["yes", "no"]
    write_csv("evil.csv", columns)
    code, said, _ = dszog("fit", "evil.csv", *PAIRS[1:5], *QUICK)
    assert code == 0, said
    told = refused(dszog, "predict", "dszog-fit/model.dszog", "people.csv")
    assert "\x1b" not in said + told


# ------------------------------------------------------------------------- interrupted
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_an_interrupt_keeps_the_best_model_so_far(number: int, code: int) -> None:
    words = ("fit", "rows", "--task", "pairwise", "--max-iterations", "100000000")
    process = start(*words, before=SHOWN)
    assert process.stderr is not None
    while "iteration 3 " not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert out.startswith("Interrupted. This is the best model so far.")
    found = report()
    assert found["status"] == "INTERRUPTED"
    assert found["success"] is False
    assert load("dszog-fit/model.dszog").n_iter_ == found["iterations"] > 0


def test_a_result_never_goes_over_the_problem(dszog: Dszog) -> None:
    Path("model.py").write_text("raise SystemExit('must not be run')")
    told = refused(dszog, "solve", "model.py:problem", "-o", "./model.py")
    assert "would be lost. Name another file, such as result.json." in told
    assert "must not be run" in Path("model.py").read_text()
