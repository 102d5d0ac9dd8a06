"""States and settings come back bit for bit; anything else is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dszog.contract import ProblemSize
from dszog.errors import CheckpointError, InputError
from dszog.maths.distribution import DISTRIBUTIONS
from dszog.methods import METHODS, State
from dszog.run.history import Counts, FailureCounts, Rows, SubproblemCounts
from dszog.run.loop import Position
from dszog.run.meter import Limits
from dszog.run.run import Run
from dszog.save.container import dump_json, load_json
from dszog.save.encoding import TYPES, decode, encode, settings_of, with_settings
from tests.contracts.helpers import CELLS, Cell, digest, trip

SIZE = ProblemSize(
    dim=3, n_losses=1, n_constraints=9, lower=np.zeros(3), upper=np.ones(3)
)
FEW = [cell for cell in CELLS if cell.problem_name in ("black box", "white box")]


def there_and_back(value: Any, size: ProblemSize = SIZE) -> Any:
    arrays: list[Any] = []
    tree = load_json(dump_json(encode(value, arrays)))
    return decode(tree, [array.copy() for array in arrays], size)


def is_same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and digest(first) == digest(second)


@given(st.integers(0, 2**64 - 1))
def test_every_float_comes_back_to_the_bit_unless_it_is_a_nan(pattern: int) -> None:
    value = float(np.uint64(pattern).view(np.float64))
    for kind in (float, np.float64):
        back = there_and_back(kind(value))
        assert type(back) is kind
        same = np.float64(back).view(np.uint64) == np.uint64(pattern)
        assert same or (np.isnan(back) and np.isnan(value))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, -(2**70), "Grüße\ud800", 1.5, np.int64(3), b"\0\xff"),
        *([], (), {}, [1, (2.0, None)], {"a": {"b": [np.float64(1.0)]}}),
        *(float("inf"), -0.0),
    ],
    ids=repr,
)
def test_plain_values_come_back_with_their_types(value: Any) -> None:
    back = there_and_back(value)
    assert is_same(back, value)


@pytest.mark.parametrize("cell", FEW, ids=str)
def test_every_state_of_every_method_comes_back(cell: Cell) -> None:
    made = trip(cell)
    for state in made.states:
        back = there_and_back(state, made.problem.size)
        assert is_same(back, state)
        assert back.size is made.problem.size
        assert not back.x.flags.writeable


def every_state(kind: type[Any] = State) -> Iterator[type[Any]]:
    for child in kind.__subclasses__():
        yield child
        yield from every_state(child)


def test_every_state_and_distribution_of_the_library_is_listed() -> None:
    # By name: a dataclass with slots is made of a class that is thrown away.
    ours = {k.__name__ for k in every_state() if k.__module__.startswith("dszog.")}
    assert {"DSZOGState", "FeasibleState"} <= ours <= set(TYPES)
    assert set(DISTRIBUTIONS.values()) <= set(TYPES.values())


def test_an_object_that_is_not_listed_is_refused() -> None:
    for value in (object(), 1j, {1, 2}, np.float32(1.0), print):
        with pytest.raises(CheckpointError, match="cannot be written"):
            encode(value, [])


WRONG: dict[str, Any] = {
    "list": [],
    "two kinds": {"float": "0x1p0", "int64": 3},
    "none": {},
    "unknown": {"pickle": "gAS="},
    "unknown object": {"object": ["Popen", []]},
    "object of the library": {"object": ["DSZOG", []]},
    "no fields": {"object": ["StartPass", []]},
    "one field too many": {"object": ["UniformDistribution", [["a", 1], ["b", 1]]]},
    "wrong field": {"object": ["UniformDistribution", [["n_constraints", "9"]]]},
    "true for a number": {"object": ["UniformDistribution", [["n_constraints", True]]]},
    "other size": {"object": ["UniformDistribution", [["n_constraints", 8]]]},
    "object alone": {"object": 3},
    "no hexadecimal": {"float": "one"},
    "too large": {"float": "0x1p99999"},
    "float of a list": {"float": []},
    "array that is not there": {"array": 0},
    "array before the first": {"array": -1},
    "array by name": {"array": "x"},
    "int64 too large": {"int64": 2**70},
    "int64 of text": {"int64": "3"},
    "name twice": {"dict": [["a", 1], ["a", 2]]},
    "name that is none": {"dict": [[None, 1]]},
    "dict of numbers": {"dict": [1]},
    "list of nothing": {"list": None},
    "odd bytes": {"bytes": "0"},
    "bytes of a number": {"bytes": 3},
}


@pytest.mark.parametrize("tree", WRONG.values(), ids=WRONG)
def test_what_cannot_have_been_written_is_refused(tree: Any) -> None:
    with pytest.raises(CheckpointError):
        decode(tree, [], SIZE)


def test_what_is_nested_too_deeply_is_refused() -> None:
    tree: Any = 1
    for _ in range(100_000):
        tree = {"list": [tree]}
    with pytest.raises(CheckpointError, match="deep"):
        decode(tree, [], SIZE)
    while isinstance(tree, dict):  # taken apart by hand: freeing it would recurse
        tree = tree.pop("list")[0]


@pytest.mark.parametrize("cell", FEW, ids=str)
def test_settings_come_back_and_leave_the_set_alone(cell: Cell) -> None:
    method: Any = cell.method
    settings = there_and_back(settings_of(method))
    inner = getattr(method, "method", method)
    values = {item.name: getattr(inner, item.name) for item in fields(inner)}
    halves = {name: v / 2 for name, v in values.items() if type(v) is float}
    other = replace(inner, **halves)
    assert other != inner
    changed = other if inner is method else replace(method, method=other)
    back = with_settings(changed, settings)
    assert settings_of(back) == settings_of(method)
    for name in ("domain", "constraints"):
        assert getattr(back, name, None) is getattr(method, name, None)


@pytest.mark.parametrize("name", METHODS)
def test_settings_of_another_method_or_that_cannot_be_are_refused(name: str) -> None:
    kind: Any = METHODS[name]
    method = kind()
    settings = settings_of(method)
    assert set(settings) == {"type"} | {item.name for item in fields(kind)} - {"domain"}
    for wrong in (
        None,
        {},
        settings | {"more": 1},
        settings | {"type": "Other"},
        settings | {"type": np.zeros(0)},
        settings | {"radius": np.zeros(2)},
        settings | {"n_directions": -3},
        settings | {"n_directions": "many"},
        settings | {"radius": object()},
    ):
        with pytest.raises(CheckpointError):
            with_settings(method, wrong)


def test_a_method_from_elsewhere_cannot_be_saved() -> None:
    class Own:
        pass

    with pytest.raises(InputError, match="method of the library, got Own"):
        settings_of(Own())


@pytest.mark.parametrize("cell", FEW[:3], ids=str)
def test_a_state_that_does_not_fit_the_problem_is_refused(cell: Cell) -> None:
    made = trip(cell)
    size = made.problem.size
    larger = replace(
        size,
        dim=size.dim + 1,
        lower=np.zeros(size.dim + 1),
        upper=np.ones(size.dim + 1),
    )
    for state in made.states:
        with pytest.raises(CheckpointError, match="does not fit the problem"):
            there_and_back(state, larger)


@pytest.mark.parametrize("name", ["iteration", "seed", "x"])
@pytest.mark.parametrize("wrong", ["text", {"float": "0x1p1"}, None, True])
def test_a_field_of_a_wrong_type_is_refused(name: str, wrong: Any) -> None:
    made = trip(FEW[0])
    arrays: list[Any] = []
    tree = encode(made.states[-1], arrays)
    items = tree["object"][1]
    (place,) = [i for i, (key, _) in enumerate(items) if key == name]
    items[place] = [name, wrong]
    with pytest.raises(CheckpointError, match=f"`{name}` of a .* has a wrong type"):
        decode(tree, arrays, made.problem.size)


def run_of(**changes: Any) -> Run:
    """Return a run, with other parts of it or of its position."""
    state = METHODS["dszog"]().init(np.zeros(3), SIZE, 0)
    position = Position.at(state, seen={7: 0.5, 3: 0.1})
    moved = {name: changes.pop(name) for name in Position._fields if name in changes}
    parts: dict[str, Any] = {
        "limits": Limits(queries=10),
        "start": state.x,
        "notes": ("a note",),
        "method": {},
        "planned": {},
        "attempt": 0,
        "round": 1,
        "ends": (Limits(iterations=2), Limits(time=1.0)),
        "position": position._replace(**moved),
        "counts": Counts(paces={"both": (1.0, 2, 0.5)}, events=Counter("aab")),
        "failures": FailureCounts(recent=[True, False]),
        "history": Rows(stride=2, table=np.ones((4, 10))),
        "subproblems": SubproblemCounts(),
    }
    return Run(**(parts | changes))


def test_a_run_comes_back_with_what_it_remembers_in_its_order() -> None:
    back = there_and_back(run_of())
    assert back.position.seen == {7: 0.5, 3: 0.1}
    assert list(back.position.seen) == [7, 3]
    assert back.counts == run_of().counts
    assert type(back.counts.events) is Counter
    assert (back.limits, back.ends) == (run_of().limits, run_of().ends)
    assert back.notes == ("a note",)


@pytest.mark.parametrize(
    "changes",
    [
        {"round": 2},
        {"round": -1},
        {"attempt": -1},
        {"start": np.zeros(2)},
        {"notes": ["a note"]},
        {"ends": (None,)},
        {"counts": Counts(n_iterations=1.5)},  # type: ignore[arg-type]
        {"counts": Counts(paces={"both": (1.0, 2)})},  # type: ignore[dict-item]
        {"failures": FailureCounts(recent=[1])},  # type: ignore[list-item]
        {"failures": SubproblemCounts()},
        *(
            {"history": Rows(stride=1, table=np.zeros(shape))}
            for shape in ((2, 9), (10,), (1, 2, 10))
        ),
        {"history": Rows(stride=0, table=np.zeros((2, 10)))},
        {"average": np.zeros(4)},
        {"state": None},
        {"digest": "a"},
        {"n_done": -1},
        {"first": {"objective": "high"}},
        {"seen": {-1: 0.5}},
        {"seen": {9: 0.5}},
        {"seen": {1: np.nan}},
        {"seen": {"a": 0.5}},
        {"seen": {1: 2}},
    ],
    ids=str,
)
def test_a_run_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError):
        there_and_back(run_of(**changes))
