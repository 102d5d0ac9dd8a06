"""`dszog watch` shows runs as they are, alive or dead, and nothing else to anybody."""

from __future__ import annotations

import http.client
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

pytest.importorskip("cyclopts")

import dszog as library
from dszog.cli import watch_page
from dszog.cli.watch import Board, _checked, _serving
from dszog.cli.watch_page import N_BUCKETS, N_WORST, Shown, body, thinned, worst_of
from dszog.run.history import History
from dszog.save import store
from dszog.save.container import pack, unpack
from dszog.save.looking import look_at, runs_in
from tests.cli.conftest import Dszog, refused

EVIL = "<img src=x onerror=alert(1)>&{body}{nonce}"


def solve(folder: Path, **more: Any) -> library.Result:
    limits = np.linspace(0.0, 1.0, 50)
    constraints = library.Constraints(
        lambda points, j: points[:, :1] + 0.1 - limits[j], m=50
    ).named(lambda j: f"<b>{j}")
    given: dict[str, Any] = {"method": "dszog", "max_iterations": 20, "seed": 0}
    given |= {"options": {"radius": 1e-4}}  # the paper's algorithm: it has weights
    given |= {"tag": EVIL, "checkpoint": folder, **more}
    return library.minimize(
        lambda x: float((x - 2.0) @ (x - 2.0)), np.zeros(2), constraints, **given
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run that ended and one that died."""
    folder = tmp_path_factory.mktemp("runs")
    solve(folder / "ended")
    solve(folder / EVIL.replace("/", "") / "dead", resume=True)
    (folder / EVIL / "dead" / "end.dszog").unlink()
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs"))


@pytest.fixture
def served(runs: Path) -> Iterator[tuple[Board, int]]:
    board = Board([runs])
    with _serving(board, 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        assert server.server_address[0] == "127.0.0.1"
        yield board, server.server_address[1]
        server.shutdown()


def ask(port: int, way: str, what: str, **more: Any) -> tuple[int, str]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.request(way, what, **more)
    answer = link.getresponse()
    return answer.status, answer.read().decode()


def test_a_run_is_seen_running_then_ended_with_what_its_result_says(
    tmp_path: Path,
) -> None:
    seen = []
    result = solve(tmp_path, callback=lambda progress: seen.append(look_at(tmp_path)))
    look = look_at(tmp_path)
    assert {one.going for one in seen} == {"running"}
    assert look.names == {str(j): f"<b>{j}" for j, _ in look.weights} != {}
    assert look.going == ("ended" if result.success else "failed")
    assert look.end is not None
    assert look.end.said == result.verdict
    assert (look.end.objective, look.end.violation) == (result.fun, result.maxcv)
    assert look.counts.n_iterations == result.nit == 20
    np.testing.assert_array_equal(look.column("n_queries"), result.history["n_queries"])
    assert dict(look.weights).items() <= dict(zip(*result.weights, strict=True)).items()


def test_a_run_that_died_after_an_end_is_dead(runs: Path) -> None:
    (journal,) = sorted((runs / "ended").glob("journal-*"))[-1:]
    journal.write_bytes(journal.read_bytes() + b"\0")
    assert look_at(runs / "ended").going == "dead"


def test_a_run_whose_state_this_version_does_not_know_is_looked_at(runs: Path) -> None:
    folder = runs / EVIL / "dead"
    before = look_at(folder)
    assert before.names == {str(j): f"<b>{j}" for j, _ in before.weights} != {}
    for path in folder.glob("checkpoint-*"):
        facts, (tree, *arrays) = unpack(path.read_bytes())
        assert b'"DSZOGState"' in tree.tobytes()
        other = tree.tobytes().replace(b'"DSZOGState"', b'"OtherState"')
        pieces = pack(facts, [np.frombuffer(other, dtype=np.uint8), *arrays])
        path.write_bytes(b"".join(pieces))
    look = look_at(folder)
    assert (look.going, look.weights) == ("dead", [])
    np.testing.assert_array_equal(look.history, before.history)


def test_a_run_that_broke_off_says_why(tmp_path: Path) -> None:
    def fail(x: Any) -> float:
        raise ValueError(EVIL)

    with pytest.raises(library.EvaluationError):
        library.minimize(fail, [0.0], checkpoint=tmp_path, method="dszog", seed=0)
    board = Board([tmp_path])
    assert [run.going for run in board.runs()] == ["failed"]
    assert "ValueError: &lt;img" in body(board.runs(), {}, "")


def test_a_file_ends_a_run_and_the_next_one_is_free_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOOK_EVERY", 0.0)

    def stop(progress: library.Progress) -> None:
        if progress.iteration == 5:
            (tmp_path / store.STOP).touch()

    stopped = solve(tmp_path, callback=stop)
    resumed = solve(tmp_path, resume=True)
    assert (stopped.status.name, stopped.nit) == ("STOPPED_BY_CALLBACK", 5)
    assert resumed.nit == 20


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("dask", "ray")]


@pytest.mark.parametrize("kind", ["processes", *SLOW])
def test_the_table_of_workers_counts_what_each_answered(
    kind: str, tmp_path: Path
) -> None:
    if kind in ("dask", "ray"):
        pytest.importorskip({"dask": "distributed", "ray": "ray"}[kind])
    solve(tmp_path, evaluator=getattr(library.evaluators, kind.title())(n_workers=2))
    look = look_at(tmp_path)
    assert 1 <= len(look.workers) <= 2
    assert sum(n for _, n, _ in look.workers) >= 20
    assert look.lost == (0, 0)
    page = body(Board([tmp_path]).runs(), {}, "")
    assert all(name in page for name, *_ in look.workers)


def test_a_hundred_thousand_iterations_become_a_few_hundred_points() -> None:
    x, y = np.arange(1e5), np.random.default_rng(0).standard_normal(100_000)
    y[[3, 77_777]], y[500] = (50.0, -50.0), np.nan
    points = thinned(x, y)
    assert len(points) <= 2 * N_BUCKETS + 2
    assert {(3.0, 50.0), (77_777.0, -50.0)} <= set(map(tuple, points))
    assert (points[0, 0], points[-1, 0]) == (0.0, 99_999.0)
    assert (np.diff(points[:, 0]) > 0).all()
    worst = worst_of(points)
    assert (len(worst), worst[-1, 0], worst[:, 1].max()) == (N_WORST, 99_999.0, 50.0)
    assert watch_page._round(0.0, 639_240.0) == [0.0, 2e5, 4e5, 6e5]
    assert watch_page._round(2.9, 25.1) == [5.0, 10.0, 15.0, 20.0, 25.0]


@pytest.mark.parametrize(
    "values", [[0.0] * 3, [1e308, -1e308, 5e-324], [np.nan, np.inf, 1.0], [np.nan] * 3]
)
def test_numbers_of_any_size_are_drawn(runs: Path, values: list[float]) -> None:
    rest = [values] * (len(History.COLUMNS) - 1)
    table = np.column_stack([np.arange(1.0, 4.0), *rest])
    look = replace(look_at(runs / "ended"), history=table, end=None)
    shown = Shown(key="k", name="n", look=look, going="dead")
    page = body([shown], {"against": "iterations"}, "")
    assert page.count("<polyline") == (0 if np.isnan(values[-1]) else 2)
    assert page.count(" open><summary") == 1  # a run that is alone
    assert " open><summary" not in body([shown, shown], {}, "")
    assert not re.search(r'points="[^"]*(nan|inf)', page)
    marks = re.findall(r'text-anchor="end">([^<]*)<', page.split("worst violation")[-1])
    assert values[0] or marks == ["0", "iterations"]  # no power of ten for nothing


@pytest.mark.parametrize("against", ["queries", "iterations", "seconds", "<b>"])
def test_all_text_of_users_is_escaped(runs: Path, against: str) -> None:
    page = body(Board([runs]).runs(), {"against": against, "hide": "<b>"}, "")
    assert "<img" not in page
    assert "hide=<" not in page
    assert page.count("&lt;img") >= 4  # the name, twice, and both tags
    assert page.count("<td>&lt;b&gt;") >= 2  # constraints that weigh most
    assert page.count("<polyline") == 4
    assert "ended: " in page
    assert ">dead<" in page
    assert "is gone" in page


def test_a_deleted_run_stays_as_it_was_seen_and_a_damaged_one_says_so(
    runs: Path,
) -> None:
    board = Board([runs])
    before = body(board.runs(), {}, "")
    for path in (runs / EVIL / "dead").glob("checkpoint-*"):
        path.write_bytes(b"damaged")
    shutil.rmtree(runs / "ended")
    page = body(board.runs(), {}, "")
    assert sorted(run.going for run in board.runs()) == ["deleted", "unreadable"]
    assert "folder is gone" in page
    assert "too few for a checkpoint" in page
    assert page.count("<polyline") == before.count("<polyline")


def test_a_run_that_has_not_begun_is_waited_for(runs: Path, tmp_path: Path) -> None:
    board = Board(_checked([tmp_path / "later"]))
    assert board.empty() == [tmp_path / "later"]
    assert "shows up here by itself" in body(board.runs(), {}, "")
    shutil.copytree(runs / "ended", tmp_path / "later")
    assert [run.name for run in board.runs()] == ["later"]
    assert board.empty() == []


def test_links_are_not_followed(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "link").symlink_to(runs / "ended")
    assert list(runs_in(tmp_path / "given")) == []


def test_others_get_nothing_and_the_page_may_load_nothing(
    served: tuple[Board, int], runs: Path
) -> None:
    port = served[1]
    assert ask(port, "GET", "/")[0] == 200
    for what in ("/../etc/passwd", "/ended/lock", "//x/body", "/stop"):
        assert ask(port, "GET", what)[0] == 404
    for name in ("evil.example", f"evil.example:{port}", ""):
        assert ask(port, "GET", "/", headers={"Host": name})[0] == 404
    link = http.client.HTTPConnection("127.0.0.1", port)
    link.request("GET", "/")
    assert "default-src 'none'" in str(link.getresponse().headers)


def test_only_the_page_can_stop_a_run(
    served: tuple[Board, int], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board, port = served
    monkeypatch.setattr("dszog.save.looking.owner_of", lambda folder: (None, True))
    key = {run.name: run.key for run in board.runs()}["ended"]
    wish = urlencode({"token": board.token, "run": key})
    assert ask(port, "POST", "/stop", body=urlencode({"run": key}))[0] == 403
    assert ask(port, "POST", "/stop", body=wish, headers={"Host": "evil"})[0] == 403
    assert not (runs / "ended" / store.STOP).exists()
    assert ask(port, "POST", "/stop", body=wish)[0] == 303
    assert (runs / "ended" / store.STOP).exists()
    assert ask(port, "POST", "/stop", body=urlencode({"token": board.token}))[0] == 409


def test_what_cannot_be_watched_is_refused_in_a_sentence(
    dszog: Dszog, runs: Path, served: tuple[Board, int], tmp_path: Path
) -> None:
    for words, expected in (
        ((), "FOLDER is missing"),
        ((tmp_path / "none" / "none",), "is no folder"),
        ((runs / "ended" / "lock",), "is no folder"),
        ((runs, "--port", served[1]), "perhaps by another dashboard"),
        ((runs, "--port", 70_000), "from 0 to 65535"),
    ):
        assert expected in refused(dszog, "watch", *words)


@pytest.mark.browser
def test_a_browser_shows_runs_and_keeps_looking(
    served: tuple[Board, int], tmp_path: Path
) -> None:
    chromium = shutil.which("chromium") or pytest.skip("apt-get install chromium")
    shown = subprocess.run(
        [
            *(chromium, "--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"),
            f"--user-data-dir={tmp_path / 'profile'}",
            f"http://127.0.0.1:{served[1]}/",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "as of " in shown.stdout  # the script ran, and asked again
    assert shown.stdout.count("<polyline") == 4
    assert "<img" not in shown.stdout
    assert "CONSOLE" not in shown.stderr
