"""Read hostile files: `python -m tests.fuzz.campaign N SEED [coverage] [TARGET ...]`.

Each reader gets N files made from valid ones. Prints one line of JSON for each: how
many were read and refused, what else was raised, the slowest, the most memory, and,
with `coverage`, the share of the branches of the reader that were taken.
"""

from __future__ import annotations

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
    from tests.fuzz.targets import targets

    with tempfile.TemporaryDirectory() as name:
        saved, work = Path(name, "saved"), Path(name, "work")
        saved.mkdir()
        work.mkdir()
        chosen = [one for one in targets(saved) if not names or one.name in names]
        found = [campaign(target, n_cases, seed, work) for target in chosen]
        if meter is not None:
            meter.stop()
            report = Path(name, "report")
            meter.json_report(outfile=str(report))
            files = json.loads(report.read_text())["files"]
            for target, figures in zip(chosen, found, strict=True):
                told = {file: reached(files, file) for file in target.files}
                figures["coverage"] = {file: share for file, (share, _) in told.items()}
                figures["missed lines"] = {file: at for file, (_, at) in told.items()}
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
        *("asked", "retried", "answered", "_note"),
    },
}


def reached(files: dict[str, Any], file: str) -> tuple[float, str]:
    """Return the share of a reader that was run, and the lines that were not.

    Counts statements and branches, but not those of functions that only write.
    """
    (found,) = (one for path, one in files.items() if path.endswith(f"/dszog/{file}"))
    parts = [
        part
        for name, part in found["functions"].items()
        if name.rpartition(".")[2] not in WRITING.get(file, ())
    ]
    sums = [part["summary"] for part in parts]
    n_all = sum(one["num_statements"] + one["num_branches"] for one in sums)
    n_taken = sum(one["covered_lines"] + one["covered_branches"] for one in sums)
    missed = {line for part in parts for line in part["missing_lines"]}
    missed |= {line for part in parts for line, _ in part["missing_branches"]}
    return round(100.0 * n_taken / n_all, 1), ", ".join(map(str, sorted(missed)))


if __name__ == "__main__":
    words = sys.argv[3:]
    main(
        int(sys.argv[1]),
        int(sys.argv[2]),
        "coverage" in words,
        [word for word in words if word != "coverage"],
    )
