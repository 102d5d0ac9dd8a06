"""No file makes a reader import, compile, execute, or open a connection."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dszog

SCRIPT = """
import sys, tempfile, pathlib, gzip, bz2, lzma, pickle
import numpy as np
from dszog.errors import InputError
from dszog.readers import read_csv, read_libsvm

class Evil:
    def __reduce__(self):
        return print, ("executed",)

rng = np.random.Generator(np.random.Philox(0))
evil = [pickle.dumps(Evil(), protocol) for protocol in range(6)]
evil += [b"__import__('os').system('echo executed')\\n", b"=cmd|' /C calc'!A0\\n"]
seeds = evil + [b"+1 1:0.5 3:2\\n-1 2:1\\n", b"a,b\\n1,x\\n2,y\\n"]
seeds += [pack(seed) for seed in seeds for pack in (gzip.compress, bz2.compress,
          lzma.compress)]

def hostile():
    for _ in range(400):
        seed = bytearray(seeds[rng.integers(len(seeds))])
        for _ in range(rng.integers(4)):
            seed[rng.integers(len(seed))] = rng.integers(256)
        yield bytes(seed[: rng.integers(1, len(seed) + 1)] if rng.random() < 0.3
                    else seed)

def read_all(path):
    n_read = 0
    for content in hostile():
        path.write_bytes(content)
        for reader in (read_libsvm, read_csv):
            try:
                reader(path)
                n_read += 1
            except InputError:
                pass
    return n_read

FORBIDDEN = ("pickle.", "exec", "compile", "import", "subprocess.", "os.system",
             "socket.", "os.exec", "os.spawn", "os.posix_spawn", "ctypes.")
seen = []

def hook(event, arguments):
    if armed and event.startswith(FORBIDDEN):
        seen.append((event, str(arguments)[:80]))

armed = False
sys.addaudithook(hook)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "hostile")
    read_all(path)  # whatever is imported late, is now
    armed = True
    n_read = read_all(path)
    armed = False
print(n_read > 20, seen)
"""


def test_no_file_makes_a_reader_run_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(dszog.__file__).parents[1],
    )

    assert done.stdout.strip() == "True []"
