"""No file makes a reader import, compile, execute, start or connect to anything."""

from __future__ import annotations

import json

from tests.runs import Record, said_by

N_CASES = 100  # of each of four readers

SCRIPT = """
import json, os, pathlib, pickle, sys, tempfile
import numpy as np
from tests.fuzz.targets import targets

FORBIDDEN = ("pickle.", "marshal.", "exec", "compile", "import", "subprocess.",
             "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork",
             "socket.", "ctypes.", "webbrowser.", "urllib.", "code.")
seen, armed = [], False

def hook(event, arguments):
    if armed and event.startswith(FORBIDDEN):
        seen.append((event, str(arguments)[:80]))

class Evil:
    def __reduce__(self):
        return os.system, ("echo executed",)

EVIL = [pickle.dumps(Evil(), protocol) for protocol in range(6)]
EVIL += [b"__import__('os').system('echo executed')\\n", b"=cmd|' /C calc'!A0\\n",
         b"!!python/object/apply:os.system ['echo executed']\\n",
         b"cos\\nsystem\\n(S'echo executed'\\ntR.", b"%s%s%n\\n", b"{0.__class__}\\n"]

def evil(target, case):
    kind = type(case[0])
    for content in EVIL:
        yield (content, 0) if kind is bytes else (*case[:2], content)

with tempfile.TemporaryDirectory() as name:
    saved, work = pathlib.Path(name, "saved"), pathlib.Path(name, "work")
    saved.mkdir()
    work.mkdir()
    n_files = n_read = 0
    readers = targets(saved)
    rng = np.random.Generator(np.random.Philox(key=99))
    cases = [(one, one.case(rng)) for one in readers for _ in range(N_CASES)]
    cases += [(one, case) for one in readers
              for case in evil(one, one.case(rng))]
    # What is imported late by any use at all, is now: one case of each that is refused
    # for its first byte, and one that is not.
    for target in readers:
        tries = (target.case(np.random.Generator(np.random.Philox(key=k)))
                 for k in range(100))
        while not target.read(work, next(tries)):
            pass
    sys.addaudithook(hook)
    for target, case in cases:
        armed = True
        n_read += target.read(work, case)
        armed = False
        n_files += 1
    armed = True
    compile("1", "alive", "eval")  # the hook sees
    armed = False
print(json.dumps({"files": n_files, "read": n_read, "seen": seen}))
"""


def test_no_hostile_file_makes_a_reader_run_anything(record_property: Record) -> None:
    script = SCRIPT.replace("N_CASES", str(N_CASES))
    *before, last = said_by("-c", script, DSZOG_KERNELS="numpy").splitlines()
    found = json.loads(last)
    record_property("hostile files", found["files"])
    record_property("events", len(found["seen"]) - 1)
    assert before == []  # nothing of them was executed
    assert found["files"] >= 400
    assert found["read"] > 20
    assert [event for event, _ in found["seen"]] == ["compile"], found["seen"][:5]
