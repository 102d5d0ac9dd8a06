"""`dszog watch`: saved runs in a browser, alive or dead, on this machine only.

The standard library serves one page without anything from outside; what libraries of
dashboards would bring for two curves and a table is told in ``docs/watching.md``.
"""

from __future__ import annotations

import os
import secrets
import socketserver
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from cyclopts import Parameter
from rich.console import Console

from dszog._log import LOGGER
from dszog.cli.options import Flag
from dszog.cli.talk import DONE, say
from dszog.cli.watch_page import Shown, body
from dszog.contract.validation import shown
from dszog.errors import CheckpointError, InputError
from dszog.run.result import counted
from dszog.save.files import create
from dszog.save.looking import look_at, runs_in, trace_of
from dszog.save.store import STOP

HOST = "127.0.0.1"
PORT = 8642
MAX_POSTED = 1000  # bytes
BAD = "unreadable"
GONE = "Its folder is gone: this is what was seen of it last."
PAGE = Path(__file__).with_name("watch.html").read_text(encoding="utf-8")


def watch(
    *folders: Path,
    port: int = PORT,
    browser: Annotated[Flag, Parameter(name="--open")] = False,
) -> int:
    """Show saved runs in a browser, while they go on and afterwards.

    Serves one page on this machine's loopback address: objective, violation, budget,
    workers and messages of every run below the folders, as their checkpoints tell
    (a running one writes every ten seconds). Ctrl-C ends it; the runs go on.

    For example:

    dszog watch run-1 run-2

    dszog watch experiments --port 9000

    Parameters
    ----------
    folders
        Folders of --checkpoint, or folders that hold such folders; also of runs that
        have not begun yet.
    port
        Where the page is served; 0 takes one that is free.
    browser
        Open the page, too.
    """
    console = Console()
    board = Board(_checked(folders))
    with _serving(board, port) as server:
        where = f"http://{HOST}:{server.server_address[1]}/"
        runs = counted(len(board.runs()), "run")
        say(console, f"Watching {runs} at {where} (Ctrl-C ends it)")
        for folder in board.empty():
            say(console, f"{shown(str(folder))} holds no run yet: waiting for one.")
        if browser:
            import webbrowser

            webbrowser.open(where)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say(console, "No longer watched; the runs go on.")
    return DONE


def _checked(folders: Sequence[Path]) -> list[Path]:
    if not folders:
        raise InputError(
            "FOLDER is missing. Name the folder of a run (--checkpoint), or one that "
            "holds such folders."
        )
    for folder in folders:
        may_come = not folder.exists() and folder.absolute().parent.is_dir()
        if not folder.is_dir() and not may_come:
            raise InputError(
                f"{shown(str(folder))} is no folder. Name the folder that a run was "
                "given as checkpoint."
            )
    return [folder.resolve() for folder in folders]


class Board:
    """What is known of the runs below some folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._seen: dict[Path, tuple[object, Shown]] = {}
        self._lock = threading.Lock()
        self.token = secrets.token_urlsafe(16)

    def runs(self) -> list[Shown]:
        """Return all runs, those that are gone among them, as last seen."""
        with self._lock:
            there = {}
            for folder in self._folders:
                for path in runs_in(folder):
                    below = path.relative_to(folder)
                    there[path] = folder.name if path == folder else str(below)
            for path, name in there.items():
                self._look(path, name)
            for path in self._seen.keys() - there.keys():
                gone = replace(self._seen[path][1], going="deleted", trouble=GONE)
                self._seen[path] = (), gone
            return [one for _, one in self._seen.values()]

    def empty(self) -> list[Path]:
        """Return the folders that hold no run."""
        return [one for one in self._folders if next(runs_in(one), None) is None]

    def _look(self, path: Path, name: str) -> None:
        trace, (before, was) = trace_of(path), self._seen.get(path, (None, None))
        if trace == before and was is not None:
            return
        key = sha256(os.fsencode(path)).hexdigest()[:8]
        try:
            look = look_at(path)
            made = Shown(key=key, name=name, look=look, going=look.going)
        except CheckpointError as error:
            last, why = None if was is None else was.look, str(error)
            made = Shown(key=key, name=name, look=last, going=BAD, trouble=why)
        self._seen[path] = trace, made

    def stop(self, key: str) -> bool:
        """Leave word for a run that it should end; False if it does not go on."""
        for path, (_, run) in list(self._seen.items()):
            if run.key == key and run.going in ("running", "unknown"):
                with suppress(FileExistsError):
                    os.close(create(path / STOP))
                return True
        return False


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True  # after one that has ended; not beside another
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Keep it off the terminal: a browser that leaves early above all."""
        LOGGER.debug("The dashboard failed to answer.", exc_info=True)


def _serving(board: Board, port: int) -> _Server:
    try:
        return _Server((HOST, port), type("Handler", (_Handler,), {"board": board}))
    except OverflowError:
        why = "is no port; ports are from 0 to 65535"
    except PermissionError:
        why = "is not for everybody; take one above 1023"
    except OSError as error:
        why = f"cannot be used ({error.strerror}): perhaps by another dashboard, at "
        why += f"http://{HOST}:{port}/"
    raise InputError(f"port {port} {why}. Or give another --port, or 0.")


class _Handler(BaseHTTPRequestHandler):
    """Answers this machine's browser: the page, its body, and a wish to stop."""

    board: Board

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not self._is_ours() or url.path not in ("/", "/body"):
            self._send(404, "Not found.")
            return
        asked = dict(parse_qsl(url.query))
        made = body(self.board.runs(), asked, self.board.token)
        nonce = secrets.token_urlsafe(12)
        if url.path == "/":
            made = PAGE.replace("{nonce}", nonce).replace("{body}", made)
        self._send(200, made, nonce)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        small = length.isdecimal() and int(length) <= MAX_POSTED
        posted = self.rfile.read(int(length)).decode("latin-1") if small else ""
        asked: Mapping[str, str] = dict(parse_qsl(posted))
        token = asked.get("token", "").encode(), self.board.token.encode()
        is_ours = self._is_ours() and self.path == "/stop"
        if not is_ours or not secrets.compare_digest(*token):
            self._send(403, "Reload the page and try again.")
        elif not self.board.stop(asked.get("run", "")):
            self._send(409, "This run does not go on any more.")
        else:
            self._send(303, "", Location="/")

    def _is_ours(self) -> bool:
        """Whether it was asked for by this address: others may point names here."""
        port = self.server.server_address[1]  # type: ignore[index]
        return self.headers.get("Host") in (f"{HOST}:{port}", f"localhost:{port}")

    def _send(self, code: int, text: str, nonce: str = "", **more: str) -> None:
        content = text.encode("utf-8", "replace")
        policy = (
            "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; "
            f"form-action 'self'; frame-ancestors 'none'; script-src 'nonce-{nonce}'"
        )
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            **more,
        }
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing of it."""
