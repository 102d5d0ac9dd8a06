"""Measure what the library promises, and write it down.

    python tools/reliability.py [--quick] [--only ID ...] [--fresh] [--output DIR]

Runs the reliability tests item by item, reads the figures that they record from
pytest's XML, compares them with their bars, and writes `reliability.json` and
`docs/reliability.md`. Interrupt, and call again to go on.

Each figure is kept with its date, its commit, and a print of all that it depends on:
the item's tests, what these import of `tests` and `src`, and the versions. An item of
the same print is not measured again. If that changed since, the figure stays in the
table, marked as of an earlier state, until it is measured again. Exits with 1 if a bar
is missed or a test fails.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import operator
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 3600.0  # seconds for one item
RELATIONS = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}
VERSIONS = ("numpy", "scipy", "numba", "dask", "ray", "pytest", "hypothesis")


@dataclass(frozen=True)
class Bar:
    """What a figure has to be: exactly, at most or at least so much."""

    figure: str
    relation: str  # of `RELATIONS`
    bound: float

    def is_met(self, figures: dict[str, Any]) -> bool:
        """Whether the figure is there and within its bar."""
        value = figures.get(self.figure)
        if not isinstance(value, (int, float)):
            return False
        return bool(RELATIONS[self.relation](value, self.bound))

    def __str__(self) -> str:
        return f"{self.figure} {self.relation} {self.bound:g}"


@dataclass(frozen=True)
class Item:
    """One promise, the tests that hold the library to it, and its bars."""

    id: str  # of the contract
    promise: str
    tests: str  # files below tests, or FILE::NAME, with blanks between
    held_to: str = ""  # bars, such as "kills >= 1300", with semicolons between
    select: str = ""  # pytest's -k

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(self.tests.split())

    @property
    def bars(self) -> list[Bar]:
        parts = [text.rsplit(" ", 2) for text in self.held_to.split("; ") if text]
        return [
            Bar(figure, relation, float(bound)) for figure, relation, bound in parts
        ]


ITEMS: tuple[Item, ...] = (
    Item(
        "A1",
        "A killed run goes on bit for bit",
        "save/test_resume.py",
        "mismatches = 0; orphans = 0; kills >= 1300; kills with workers >= 300",
        select="killed_processes",
    ),
    Item(
        "A1b",
        "Every method dies in every call and ends as if it had lived",
        "save/test_resume.py",
        select="not killed_processes",
    ),
    Item(
        "A2",
        "A save is whole or not there, whatever is lost",
        "save/test_store.py",
        select="death or synced or order or disk_error",
    ),
    Item(
        "A3",
        "A corrupted checkpoint is never loaded",
        "save/test_store.py save/test_container.py",
        "undetected = 0; corruptions >= 10000",
        select="corrupted or flip or truncation or damaged",
    ),
    Item("A4", "A torn journal is cut and no study is lost", "save/test_journal.py"),
    Item(
        "A7",
        "One writer to a folder",
        "save/test_store.py",
        select="second_writer or two_stores",
    ),
    Item(
        "B1",
        "An unknown value is never used, never a satisfied constraint",
        "run/test_failures.py",
        "false successes = 0",
    ),
    Item(
        "B2",
        "Of problems made to mislead the sampled SQP no success is false",
        "methods/sampled_sqp/test_adversarial.py",
        "false successes = 0; adversarial runs >= 2000",
    ),
    Item(
        "C",
        "Workers that die, hang or repeat themselves change no bit",
        "workers/test_chaos.py",
        "other digests = 0; lost = 0; used twice = 0; beyond what was charged = 0; "
        "chaotic runs, processes >= 400; chaotic runs, dask >= 50; "
        "chaotic runs, ray >= 50",
    ),
    Item(
        "C6",
        "Timeouts end workers, clusters end with the run and serve this machine only",
        "workers/test_clusters.py workers/test_failure_matrix.py",
    ),
    Item(
        "D1", "Same seed, same bits, whatever evaluates", "workers/test_determinism.py"
    ),
    Item(
        "E1",
        "A query budget is never exceeded",
        "run/test_budgets.py",
        "exceeded or miscounted = 0",
        select="budget",
    ),
    Item(
        "E1b",
        "Nor is it while drivers and workers are killed and functions fail",
        "save/test_budget_of_killed.py",
        "exceeded = 0; miscounted = 0; most over = 0; configurations >= 2000",
    ),
    Item(
        "F1",
        "Ctrl-C returns the best so far",
        "run/test_budgets.py",
        "results lost = 0",
        select="ctrl_c",
    ),
    Item("F3", "Signals and exit codes of the command line", "cli/test_solve.py"),
    Item(
        "H1",
        "Success only on fresh, finite values within the tolerance",
        "evidence/test_certificate.py",
        select="success or unknown or known",
    ),
    Item(
        "H2",
        "The bound on the violated share holds",
        "evidence/test_certificate.py",
        f"least coverage >= {0.95 - 2 * (0.95 * 0.05 / 2000) ** 0.5}",
        select="bound_covers or (best_of_three and 2000)",
    ),
    Item(
        "I1",
        "The simplex projection is right at every scale",
        "maths/distribution/test_projection.py",
        "failures of 20,000 = 0",
    ),
    Item(
        "I2",
        "Sparse and dense weights agree",
        "maths/distribution/test_sparse.py",
        "largest difference <= 1e-12",
    ),
    Item(
        "I4",
        "Estimators are unbiased, and broken ones are caught",
        "maths/test_unbiased.py",
    ),
    Item(
        "L1",
        "No file makes a reader run anything",
        "security/test_readers_run_nothing.py",
        "events = 0; hostile files >= 300",
    ),
    Item(
        "L2",
        "Fuzzed readers raise our errors only",
        "fuzz",
        "escaped = 0; peak MB <= 512; slowest <= 1; "
        "least coverage of a reader, % >= 95",
    ),
    Item("L4", "Links, open folders and bombs lead nowhere", "security/test_files.py"),
    Item("L5", "A run touches no network", "security/test_no_network.py"),
    Item("L6", "No terminal escapes in messages", "security/test_terminal.py"),
    Item(
        "L8",
        "Two hard dependencies; the wheel is the same each time",
        "security/test_wheel.py",
        "wheels that differ = 0",
    ),
    Item("S3", "Any order of ask and tell keeps the invariants", "test_stateful.py"),
)
MUTANTS = Item(
    "S2",
    "Each guard taken away turns its tests red",
    "",
    "mutants >= 40; mutants that survived = 0",
)

HELD: dict[str, str] = {  # the other promises of the contract, and a test of each
    "A5 Saved floats, settings and versions come back": "save/test_container.py::"
    "test_every_pattern_of_64_bits_comes_back",
    "A6 Failing to save is loud": "save/test_resume.py::"
    "test_a_full_disk_is_loud_and_gives_the_result_so_far",
    "A8 Saving takes little of the time": "save/test_resume.py::"
    "test_saving_takes_two_percent_of_the_time_at_most",
    "A9 Other versions and kernels go on": "save/test_resume.py::"
    "test_a_run_goes_on_where_numbers_are_rounded_otherwise",
    "A10 Locks end with their owner": "save/test_store.py::"
    "test_a_child_of_a_killed_run_keeps_no_lock",
    "B2 Policies for failures": "contracts/test_evaluators.py::"
    "test_an_exception_comes_out_wrapped_with_the_query_and_its_cause",
    "B3 Failures are counted and shown": "run/test_failures.py::"
    "test_failures_are_counted_as_the_black_box_counts_them",
    "B4 Too many failures stop a run": "run/test_failures.py::"
    "test_a_rising_rate_of_failures_stops_the_run_soon_after_one_in_ten",
    "B5 Estimates with failures are conditional, and say so": "test_docs.py::"
    "test_the_pages_say_what_leaving_failures_out_does_to_an_estimate",
    "B6 Some failures are normal": "run/test_failures.py::"
    "test_values_that_fail_leave_an_answer_that_says_what_it_rests_on "
    "run/test_failures.py::test_failures_hardly_move_gradients",
    "B7 Impure functions are noticed": "test_repeats.py::"
    "test_answers_that_differ_are_told_once",
    "C1 No worker makes a run hang": "workers/test_processes.py::"
    "test_a_stopped_worker_is_replaced",
    "C2 Only what ran in a lost worker is made again": "workers/test_chaos.py::"
    "test_two_chaotic_runs_end_as_quiet_ones_do",
    "C3, C4 No reply is used twice, a late one is no error": "workers/"
    "test_supervisor.py::"
    "test_nothing_is_lost_or_used_twice_by_any_pool",
    "C5 No orphans": "workers/test_processes.py::"
    "test_workers_end_when_the_run_is_killed",
    "C8 Forks and garbage of workers": "workers/test_processes.py::"
    "test_a_worker_that_writes_to_all_is_replaced",
    "D2 Draws depend on seed and iteration alone": "contracts/test_methods.py::"
    "test_asking_twice_gives_the_same_queries",
    "D3 Another machine is told of": "save/test_resume.py::"
    "test_other_versions_and_machines_are_told_of",
    "D4 Runs do not influence each other": "run/test_budgets.py::"
    "test_a_run_inside_a_run_changes_neither",
    "E2 What a scheduler adds is visible": "workers/test_clusters.py::"
    "test_dask_makes_no_call_again_by_itself",
    "E3 A budget too small says what is enough": "run/test_budgets.py::"
    "test_a_budget_too_small_is_refused_with_one_that_does",
    "E4 Counters add up": "run/test_budgets.py::"
    "test_no_budget_is_exceeded_and_every_call_is_counted",
    "F2 A callback may stop, other errors are wrapped": "run/test_failures.py::"
    "test_the_error_names_function_index_iteration_and_point_and_keeps_its_cause "
    "save/test_resume.py::test_a_function_that_failed_is_asked_again "
    "save/test_resume.py::test_a_run_that_a_callback_ended_goes_on",
    "G1 Wrong input is refused with a cure": "test_wrong_input.py",
    "G1 What is accepted works": "test_accepted_input.py",
    "G1 Writing into arguments harms nobody": "test_written_arguments.py",
    "G2 scikit-learn has no objection": "learn/test_estimators.py::"
    "test_scikit_learn_has_no_objection",
    "H2b The bound is true for the returned point": "evidence/test_certificate.py::"
    "test_the_bound_holds_for_the_best_of_three_points_on_one_draw",
    "H3 Never worse than the start": "test_minimize.py::"
    "test_no_result_is_worse_than_the_start",
    "H4 The result says what it rests on": "test_minimize.py::"
    "test_the_result_is_scipys_with_what_the_documentation_lists",
    "I3 Weights sum to one, none without weight is drawn": "contracts/"
    "test_distributions.py::"
    "test_a_constraint_without_weight_is_not_drawn_even_at_the_edges",
    "I5 Answers do not get worse": "methods/test_regression.py::"
    "test_no_answer_is_worse_than_those_kept",
    "I6 Answers of solvers are checked": "maths/subproblems/test_against_exact.py::"
    "test_answers_agree_with_exact_arithmetic_under_every_kernel",
    "J1 Memory does not grow with m": "bench/test_yardsticks.py::"
    "test_memory_is_that_of_the_run_and_not_of_who_started_it",
    "J2 Nothing grows with the iterations": "run/test_loop.py::"
    "test_memory_does_not_grow_with_the_iterations "
    "run/test_loop.py::test_the_history_is_bounded_evenly_spaced_and_up_to_date",
    "J3 Readers take no more than a file has": "security/test_files.py::"
    "test_a_file_larger_than_the_memory_is_refused_before_it_is_read",
    "K1 Callbacks in order, in the caller's thread": "run/test_budgets.py::"
    "test_callbacks_come_in_order_in_the_callers_thread_with_read_only_points",
    "K2 States are immutable, threads do not meet": "contracts/test_methods.py::"
    "test_every_array_of_a_state_is_read_only",
    "K3 A failing callback loses no reply": "save/test_resume.py::"
    "test_a_run_that_a_callback_ended_goes_on",
    "L3 libsvm files are read as they stand": "readers/test_libsvm.py::"
    "test_every_valid_file_is_read_as_scikit_learn_reads_it",
    "L7 Nothing is imported from the current folder": "cli/test_solve.py::"
    "test_the_current_folder_is_not_searched_for_modules",
    "S1 No holes in the matrices": "run/test_failures.py::"
    "test_the_matrix_has_a_cell_for_every_combination",
    "S4 Seeds are fixed, nothing is tried again": "tools/test_reliability.py::"
    "test_no_test_draws_without_a_seed_and_none_is_tried_again",
    "S5 One command writes this page": "tools/test_reliability.py::"
    "test_the_page_has_a_row_for_every_item",
}


# ------------------------------------------------------------------------- measuring


def run_item(item: Item, quick: bool) -> dict[str, Any]:
    """Run the tests of an item; return its figures."""
    present = [n for n in item.nodes if (ROOT / "tests" / n.split("::")[0]).exists()]
    if not present:
        return {"outcome": "not run", "why": "its tests are not there", "figures": {}}
    with tempfile.TemporaryDirectory() as name:
        report = Path(name, "report.xml")
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        words += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
        words += ["-m", "not slow and not browser" if quick else "not browser"]
        words += ["-k", item.select] if item.select else []
        words += [f"tests/{node}" for node in present]
        code, said = _call(words)
        figures = read_report(report) if report.exists() else {}
    if code == 0 and figures.get("tests", 0):
        return against_bars(item, figures, fails=not quick)
    return {"outcome": "failed", "figures": figures, "why": said[-1500:]}


def against_bars(item: Item, figures: dict[str, Any], fails: bool) -> dict[str, Any]:
    """Return figures with the bars that they miss, and whether that is a failure."""
    missed = [str(bar) for bar in item.bars if not bar.is_met(figures)]
    outcome = "missed" if missed and fails else "passed"
    return {"outcome": outcome, "missed": missed, "figures": figures}


def run_mutants() -> dict[str, Any]:
    """Run the mutants; return how many were killed."""
    with tempfile.TemporaryDirectory() as name:
        output = Path(name, "mutants.json")
        words = [sys.executable, "tools/mutants.py", "--output", str(output)]
        _, said = _call(words)
        if not output.exists():
            return {"outcome": "failed", "figures": {}, "why": said[-1500:]}
        found = json.loads(output.read_text())
    figures = {
        "mutants": found["mutants"],
        "mutants that survived": found["mutants"] - found["killed"],
    }
    survivors = [one["mutant"] for one in found["survivors"]]
    return against_bars(MUTANTS, figures, fails=True) | {"survivors": survivors}


def _call(words: Sequence[str]) -> tuple[int, str]:
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    paths = [str(ROOT / "src"), str(ROOT), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    try:
        done = subprocess.run(
            words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return 1, f"not finished after {TIMEOUT:.0f} s"
    return done.returncode, done.stdout + done.stderr


def read_report(path: Path) -> dict[str, Any]:
    """Return the figures of a report: how many tests, and what they recorded."""
    figures: dict[str, Any] = {"tests": 0, "skipped": 0, "failed": 0}
    recorded: dict[str, list[float]] = {}
    for case in ET.parse(path).getroot().iter("testcase"):  # written by pytest
        figures["tests"] += 1
        figures["skipped"] += case.find("skipped") is not None
        broken = case.find("failure") is not None or case.find("error") is not None
        figures["failed"] += broken
        for one in case.iter("property"):
            try:
                value = float(one.get("value", ""))
            except ValueError:
                continue
            name = str(one.get("name"))
            if name.startswith("coverage of "):
                name = "least coverage of a reader, %"
            recorded.setdefault(name, []).append(value)
    return figures | {name: _joined(name, found) for name, found in recorded.items()}


def _joined(name: str, values: list[float]) -> float:
    """Return what figures of one name from several tests are together."""
    if name.startswith(("largest", "slowest", "peak", "most")):
        return max(values)
    if name.startswith(("least", "p-value")):
        return min(values)
    total = sum(values)
    return int(total) if total == int(total) else total


# -------------------------------------------------------------------- what is written


def source_print(item: Item) -> str:
    """Return a print of everything in the tree that an item's figures depend on."""
    digest = hashlib.sha256(repr((item.nodes, item.select)).encode())
    for path in sorted(sources(item)):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def sources(item: Item) -> set[Path]:
    """Return the files of an item: its tests, what lies beside them, what they import.

    What lies beside them and is no test may be run by them as a script.
    """
    if not item.nodes:  # the mutants change any source and run any test
        folders = (ROOT / "src", ROOT / "tests")
        found = {path for folder in folders for path in folder.rglob("*.py")}
        return found | set((ROOT / "tools").glob("mutants.py"))
    ahead: set[Path] = set()
    for node in item.nodes:
        path = ROOT / "tests" / node.split("::")[0]
        if path.is_dir():
            ahead.update(path.rglob("*.py"))
        elif path.exists():
            beside = path.parent.glob("*.py")
            helpers = {one for one in beside if not one.name.startswith("test_")}
            ahead |= {path, *helpers}
    found = set()
    while ahead:
        found |= ahead
        ahead = {one for path in ahead for one in imported(path)} - found
    return found


@cache
def imported(path: Path) -> frozenset[Path]:
    """Return the files of this tree that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    found: set[Path] = set()
    for name in names:
        words = name.split(".")
        for n in range(1, len(words) + 1):  # and the packages it lies in
            for root in (ROOT / "src", ROOT):
                place = root.joinpath(*words[:n])
                for file in (place.with_suffix(".py"), place / "__init__.py"):
                    if file.exists():
                        found.add(file)
    return frozenset(found)


def commit() -> str:
    """Return the commit of the tree, with a mark if there are changes to it."""
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "src", "tests", "tools")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def surroundings() -> dict[str, Any]:
    """Return the versions and the machine."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, Any] = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return {
        "versions": found,
        "machine": {
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
    }


def markdown(record: dict[str, Any]) -> str:
    """Return the table for the documentation."""
    versions = record["versions"]
    lines = [
        "# Reliability, measured",
        "",
        "Written by `make reliability`; not edited by hand. "
        "`docs/faults.md` says what is promised, `SECURITY.md` what is trusted.",
        "",
        f"{record['date'][:10]}, Python {versions['python']}, NumPy "
        f"{versions['numpy']}, SciPy {versions['scipy']}, "
        f"{record['machine']['system']} with {record['machine']['cores']} cores.",
        "",
        "| | Promise | Outcome | Figures | Bars | Measured |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for item in (*ITEMS, MUTANTS):
        found = record["items"].get(item.id, {"outcome": "not run", "figures": {}})
        shown = "; ".join(
            f"{name} {_number(value)}"
            for name, value in found["figures"].items()
            if not (name in ("skipped", "failed") and not value)
        )
        bars = "; ".join(map(str, item.bars)) or "all tests pass"
        outcome, when = found["outcome"], measured(item, found, record)
        lines.append(
            f"| {item.id} | {item.promise} | {outcome} | {shown} | {bars} | {when} |"
        )
    lines += [
        "",
        "None of n means at most 3/n with 95 % confidence. *Not run* means that the "
        "tests are not part of this tree, or that the item was left out. *Earlier* "
        "means that a file which the item depends on was changed since; a + that the "
        "commit had changes when it was measured.",
        "",
        "## Which tests hold which promise",
        "",
        "Those above, and of the other promises a test of each:",
        "",
        "| Promise | Tests |",
        "| --- | --- |",
    ]
    for item in ITEMS:
        chosen = f" (`-k {item.select!r}`)" if item.select else ""
        nodes = ", ".join(f"`{node}`" for node in item.nodes)
        lines.append(f"| {item.id} {item.promise} | {nodes}{chosen} |")
    lines.append(f"| {MUTANTS.id} {MUTANTS.promise} | `mutants/listed.py` |")
    for promise, node in HELD.items():
        named = ", ".join(f"`{one.replace('::test_', '` `')}`" for one in node.split())
        lines.append(f"| {promise} | {named} |")
    lines.append("")
    return "\n".join(lines)


def measured(item: Item, found: dict[str, Any], record: dict[str, Any]) -> str:
    """Return when a figure was measured, of what, and whether that is the present."""
    if "commit" not in found:  # not run
        return ""
    words = [found["date"][:10], f"at {found['commit']}"]
    if found["quick"]:
        words.append("quick tests only")
    if not is_present(item, found, record):
        words.append("earlier")
    return ", ".join(words)


def is_present(item: Item, found: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a figure is of the tree and the versions as they are."""
    same = found.get("versions") == record["versions"]
    return same and found.get("source") == source_print(item)


def _number(value: float) -> str:
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:.3g}"


# ----------------------------------------------------------------------- the command


def main() -> int:
    """Measure what is asked for, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="leave out slow tests")
    parser.add_argument("--only", nargs="*", default=[], help="ids of items")
    parser.add_argument("--fresh", action="store_true", help="measure all again")
    parser.add_argument("--output", type=Path, default=ROOT, help="folder to write to")
    asked = parser.parse_args()
    known = [item.id for item in (*ITEMS, MUTANTS)]
    for one in asked.only:
        if one not in known:
            parser.error(f"there is no item {one!r}; items: {', '.join(known)}")
    asked.output.mkdir(parents=True, exist_ok=True)
    path = asked.output / "reliability.json"
    record = _begun(path)
    for item in (*ITEMS, MUTANTS):
        if asked.only and item.id not in asked.only:
            continue
        before = record["items"].get(item.id, {})
        if (
            before.get("outcome") == "passed"
            and not asked.fresh
            and is_present(item, before, record)
            and before["quick"] <= asked.quick
        ):
            print(f"{item.id:4} passed before", flush=True)
            continue
        began, source = time.perf_counter(), source_print(item)
        found = run_mutants() if item is MUTANTS else run_item(item, asked.quick)
        record["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        record["items"][item.id] = found | {
            "seconds": round(time.perf_counter() - began, 1),
            "date": record["date"],
            "commit": commit(),
            "source": source,
            "quick": asked.quick,
            "versions": record["versions"],
        }
        _write(path, record)
        figures = json.dumps(found["figures"])
        print(f"{item.id:4} {found['outcome']} {figures}", flush=True)
        for line in (*found.get("missed", ()), found.get("why", "")):
            if line:
                print(f"     {line}", flush=True)
    outcomes = [found["outcome"] for found in record["items"].values()]
    return 0 if all(one in ("passed", "not run") for one in outcomes) else 1


def _begun(path: Path) -> dict[str, Any]:
    """Return the record to go on with: what was found before, in these surroundings."""
    record: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **surroundings(),
        "items": {},
    }
    if path.exists():
        record["items"] = json.loads(path.read_text(encoding="utf-8"))["items"]
    return record


def _write(path: Path, record: dict[str, Any]) -> None:
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    os.replace(beside, path)
    page = path.parent / "docs" / "reliability.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(markdown(record), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
