"""A state that was saved goes on bit for bit, and nothing else is ever loaded."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog.errors import CheckpointError, CheckpointWriteError, InputTypeError
from dszog.methods import METHODS
from dszog.run.feasible_set import with_feasible_set
from dszog.save import state_file
from dszog.save.store import Store

A = np.random.default_rng(0).normal(size=(40, 3))


def problem() -> dszog.Problem:
    def fun(points: Any, i: Any) -> Any:
        return np.repeat(np.sum((points - 1.0) ** 2, axis=1)[:, None], len(i), axis=1)

    def gradient(point: Any, i: Any) -> Any:
        return np.repeat(2.0 * (point - 1.0)[None], len(i), axis=0)

    losses = dszog.Losses(fun, 1, gradient=gradient)
    return dszog.Problem(
        losses, dszog.Constraints.linear(A, 1.0), 3, bounds=[(-2.0, 2.0)] * 3
    )


def advanced(method: Any, state: Any, n: int) -> Any:
    answer = dszog.EVALUATORS["serial"](problem())
    for _ in range(n):
        queries = method.ask(state)
        state, _ = method.tell(state, queries, answer(queries))
    return state


@pytest.mark.parametrize("name", sorted(METHODS))
def test_saving_and_loading_changes_no_iterate(name: str, tmp_path: Path) -> None:
    method, _ = with_feasible_set(problem(), METHODS[name]())
    size = problem().size
    half = advanced(method, method.init(np.zeros(3), size, 0), 5)
    dszog.save_state(tmp_path / "half", method, half)
    loaded = dszog.load_state(tmp_path / "half", method, size)
    assert type(loaded) is type(half)
    straight, resumed = advanced(method, half, 5), advanced(method, loaded, 5)
    assert resumed.x.tobytes() == straight.x.tobytes()
    assert resumed.iteration == straight.iteration == 10


def begun() -> tuple[Any, Any]:
    method = dszog.DSZOG()
    return method, method.init(np.zeros(3), problem().size, 0)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    method, state = begun()
    dszog.save_state(tmp_path / "state", method, advanced(method, state, 3))
    return tmp_path / "state"


def load(path: Path, method: Any = None, **changes: Any) -> Any:
    size = replace(problem().size, **changes)
    return dszog.load_state(path, method or dszog.DSZOG(), size)


def test_a_setting_that_an_earlier_version_lacked_counts_as_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = state_file._about
    monkeypatch.setattr(
        state_file,
        "_about",
        lambda *given: {
            name: text
            for name, text in about(*given).items()
            if name != "method antithetic"
        },
    )
    dszog.save_state(tmp_path / "old", *begun())
    monkeypatch.undo()

    assert load(tmp_path / "old").iteration == 0
    with pytest.raises(CheckpointError, match=r"antithetic \(False there, True here\)"):
        load(tmp_path / "old", dszog.DSZOG(antithetic=True))


def test_a_later_save_replaces_the_file_and_no_more(saved: Path) -> None:
    method = dszog.DSZOG()
    dszog.save_state(str(saved), method, advanced(method, load(saved), 2))
    assert load(saved).iteration == 5
    assert [path.name for path in saved.parent.iterdir()] == ["state"]
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"'.*tuesday' cannot be used: it cannot"):
        load(tmp_path / "tuesday")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_constraints": 41}, "number of constraints"),
        ({"n_losses": 2}, "number of losses"),
        ({"upper": np.ones(3)}, r"upper bounds \(others there than here\)"),
        ({"has_jacobian": False}, "jacobian of the constraints"),
        (
            {"method": dszog.DSZOG(radius=0.5)},
            r"method radius \(0.0001 there, 0.5 here\)",
        ),
        (
            {"method": with_feasible_set(problem(), dszog.ZOPSGD())[0]},
            r"method type \('DSZOG' there, 'ZOPSGD'",
        ),
    ],
)
def test_another_problem_or_method_is_refused(
    saved: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(CheckpointError, match=words):
        load(saved, **changes)


def test_the_checkpoint_of_a_run_is_no_state(tmp_path: Path) -> None:
    store = Store(tmp_path, resume=False)
    store.save({}, {"x": 1})
    store.close()
    with pytest.raises(CheckpointError, match="it holds a run, not a state"):
        load(tmp_path / "checkpoint-00000001.dszog")


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointWriteError, match="Give a folder that is there"):
        dszog.save_state(tmp_path / "none" / "state", *begun())


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_that_can_not_be_a_key_is_refused(seed: int, tmp_path: Path) -> None:
    method, state = begun()
    dszog.save_state(tmp_path / "state", method, replace(state, seed=seed))
    with pytest.raises(CheckpointError, match="does not fit the problem"):
        load(tmp_path / "state")


def crafted(path: Path, part: str, **changes: Any) -> None:
    """Save a state of which something was changed."""
    method, state = begun()
    state = advanced(method, state, 3)
    if part == "distribution":
        changes = {part: replace(state.distribution, **changes)}
    dszog.save_state(path, method, replace(state, **changes))


ONE = np.array([1], dtype=np.int64)


def share(weight: float, **more: Any) -> dict[str, Any]:
    """Return what a distribution of one own weight is made of."""
    made = {"gradient": np.zeros(1), "memory": np.zeros(1), "indices": ONE}
    return made | {"weights": np.array([weight])} | more


@pytest.mark.parametrize(
    ("part", "changes", "said"),
    [
        ("state", {"x": np.full(3, np.inf)}, "`x` in it is not finite"),
        ("state", {"velocity": np.full(3, np.nan)}, "`velocity` in it is not finite"),
        ("distribution", share(np.nan), "`weights` in it is not finite"),
        ("distribution", share(np.inf), "`weights` in it is not finite"),
        (
            "distribution",
            {"background_weight": np.inf},
            "`background_weight` in it is not finite",
        ),
        ("distribution", share(-1.0), "no distribution, their sum is nan"),
        (
            "distribution",
            share(0.0, background_weight=0.0),
            "no distribution, their sum is 0",
        ),
    ],
)
def test_numbers_that_no_run_leaves_behind_are_refused_at_once(
    part: str, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    crafted(tmp_path / "state", part, **changes)
    with pytest.raises(CheckpointError, match=f"cannot be used: .*{said}"):
        load(tmp_path / "state")


class BytesPath:
    """A path, but of bytes."""

    def __fspath__(self) -> bytes:
        return b"state"


def test_wrong_arguments_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path, (method, state) = tmp_path / "state", begun()
    queries = method.ask(state)
    told = method.tell(state, queries, dszog.EVALUATORS["serial"](problem())(queries))
    save: Any = dszog.save_state
    for arguments, said in (
        ((path, method, told), "tell returns it first"),
        ((None, method, state), "`path` must be the path of a file"),
        ((BytesPath(), method, state), "`path` must be the path of a file"),
        ((path, "dszog", state), "`method` must be a method of the library"),
    ):
        with pytest.raises(InputTypeError, match=said):
            save(*arguments)
    with pytest.raises(InputTypeError, match=r"Pass problem\.size"):
        dszog.load_state(path, method, problem())  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
