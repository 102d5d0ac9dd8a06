"""A run opens no connection and listens to none."""

from __future__ import annotations

import json

from tests.runs import said_by

SCRIPT = """
import json, pathlib, socket, sys, tempfile

seen = []

def hook(event, arguments):
    if event.startswith(("socket.", "urllib.", "http.", "ftplib.", "smtplib.",
                         "webbrowser.", "subprocess.", "os.system")):
        seen.append(event)

sys.addaudithook(hook)
import dszog
from tests.save.cells import CELLS

with tempfile.TemporaryDirectory() as name:
    for cell in CELLS[::3]:
        folder = pathlib.Path(name, cell.name)
        result = cell.run(folder, max_iterations=4)
        cell.run(folder, max_iterations=6)
    dszog.certify(CELLS[0].problem(), result.x)
    rows = pathlib.Path(name, "rows")
    rows.write_text("1 1:1\\n")
    from dszog.readers import read_libsvm
    read_libsvm(rows)
    try:
        from dszog.cli.app import app
    except ImportError:
        pass
    else:
        model = pathlib.Path(name, "model.py")
        model.write_text(
            "from tests.save.cells import CELLS\\nproblem = CELLS[0].problem()\\n"
        )
        try:
            app(["solve", f"{model}:problem", "--max-iterations", "3",
                 "--checkpoint", f"{name}/cli"], console=None)
        except SystemExit as end:
            assert end.code in (0, 3), end.code
during = list(seen)
socket.socket().close()  # the hook sees
print("\\n" + json.dumps([during, seen[len(during):]]))
"""


def test_a_run_touches_no_network_and_starts_no_program() -> None:
    said = said_by("-c", SCRIPT, DSZOG_KERNELS="numpy")
    during, after = json.loads(said.splitlines()[-1])
    assert during == []
    assert after == ["socket.__new__"]
