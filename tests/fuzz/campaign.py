"""Read hostile files: `python -m tests.fuzz.campaign N SEED [coverage] [TARGET ...]`.

Each reader gets N files made from valid ones. Prints one line of JSON for each: how
many were read and refused, what else was raised, the slowest, the most memory, and,
with `coverage`, the share of the branches of the reader that were taken.
"""

from __future__ import annotations

import ast
import json
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

N_SHOWN = 5


def campaign(target: Any, n_cases: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return the figures of one target."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    found: dict[str, Any] = {"target": target.name, "cases": n_cases, "accepted": 0}
    escaped: list[str] = []
    slowest = 0.0
    for _ in range(n_cases):
        case = target.case(rng)
        before = time.process_time()  # what others do meanwhile does not count
        try:
            found["accepted"] += bool(target.read(folder, case))
        except Exception as error:  # noqa: BLE001  (whatever is not ours to raise)
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            escaped.append(f"{type(error).__name__} at {where}: {error!s:.200}")
        slowest = max(slowest, time.process_time() - before)
    found["escaped"] = len(escaped)
    found["first escaped"] = sorted(set(escaped))[:N_SHOWN]
    found["slowest"] = round(slowest, 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["peak MB"] = round(peak / 1024.0)
    return found


def main(n_cases: int, seed: int, with_coverage: bool, names: list[str]) -> None:
    meter = None
    if with_coverage:
        import coverage

        meter = coverage.Coverage(branch=True, data_file=None, source=["dszog"])
        meter.start()
    # After that: what runs on import counts too.
    from tests.fuzz.targets import SOURCE, targets

    with tempfile.TemporaryDirectory() as name:
        saved, work = Path(name, "saved"), Path(name, "work")
        saved.mkdir()
        work.mkdir()
        chosen = [one for one in targets(saved) if not names or one.name in names]
        found = [campaign(target, n_cases, seed, work) for target in chosen]
    if meter is not None:
        meter.stop()
        for target, figures in zip(chosen, found, strict=True):
            found_in = {file: reached(meter, SOURCE, file) for file in target.files}
            figures["coverage"] = {file: share for file, (share, _) in found_in.items()}
            figures["missed lines"] = {file: at for file, (_, at) in found_in.items()}
    for figures in found:
        print(json.dumps(figures))


WRITING = {  # functions that no file makes run, or only a huge one or a broken disk
    "save/container.py": {"pack", "dump_json", "check", "_memory"},
    "save/encoding.py": {"encode", "pack_value"},
    "save/journal.py": {
        *("new", "append", "sync", "_loud", "_check_copy"),
        *("question", "pack"),
        *("failure_to_json", "n_queries", "in_check"),
    },
    "save/sizing.py": {
        *("n_noted", "count", "_write"),
        *("__init__", "__call__", "_check_affordable"),
    },
    "save/checkpoints.py": {
        *("save", "log", "sync", "n_failed", "is_due", "end", "_names", "_work"),
        *("asked", "retried", "answered"),
    },
}


def reached(meter: Any, source: Path, file: str) -> tuple[float, str]:
    """Return the share of a reader that was run, and the lines that were not.

    Counts statements and branches, but not those of functions that only write.
    """
    text = (source / file).read_text()
    aside = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name in WRITING.get(file, ())
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    analysis = meter._analyze(str(source / file))
    statements = set(analysis.statements) - aside
    missing = set(analysis.missing) - aside
    branches = {
        line: pair
        for line, pair in analysis.branch_stats().items()
        if line not in aside
    }
    n_all = len(statements) + sum(total for total, _ in branches.values())
    n_taken = len(statements - missing) + sum(taken for _, taken in branches.values())
    partial = {line for line, (total, taken) in branches.items() if taken < total}
    lines = ", ".join(map(str, sorted(missing | partial)))
    return round(100.0 * n_taken / n_all, 1), lines


if __name__ == "__main__":
    words = sys.argv[3:]
    main(
        int(sys.argv[1]),
        int(sys.argv[2]),
        "coverage" in words,
        [word for word in words if word != "coverage"],
    )
