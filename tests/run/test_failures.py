"""A value that a function did not give: never a number, never a satisfied constraint.

The safety matrix is the product of the registries; a new method, policy or evaluator
adds its cells by being listed. Methods that stay in a feasible set ask the constraints
nothing; where these fail, it is in the check of the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import dszog
import dszog.contract
from dszog import (
    DSZOG,
    METHODS,
    Constraints,
    EvaluationError,
    Losses,
    Problem,
    Progress,
    Status,
)
from dszog.contract import NO_INDICES, Purpose, Query, Reply
from dszog.contract.arrays import BoolArray, FloatArray, IntArray
from dszog.maths.gradients import (
    central_difference,
    draw_directions,
    forward_difference,
)
from dszog.maths.subproblems import Box, L2Ball
from dszog.methods.spider import SpiderMethod
from dszog.methods.storm import StormMethod
from dszog.run.failures import MAX_RATE, POLICIES, WINDOW, FailureHandler
from dszog.run.loop import MAX_REJECTED
from dszog.workers import Serial
from tests.contracts.helpers import FEASIBLE_METHODS
from tests.runs import Record, by_dszog


# ---------------------------------------------------------- what a function may return
def raise_error() -> Any:
    raise ZeroDivisionError("the simulator broke")


def leave() -> Any:
    raise SystemExit(3)


BAD: dict[str, Callable[[], Any]] = {
    "nan": lambda: np.nan,
    "+inf": lambda: np.inf,
    "-inf": lambda: -np.inf,
    "None": lambda: None,
    "complex": lambda: -1.0 + 0.0j,
    "str": lambda: "-1.0",
    "wrong shape": lambda: np.array([-1.0, -1.0]),
    "exception": raise_error,
    "SystemExit": leave,
    "1e400": lambda: -(10**400),
}
KIND_OF = dict.fromkeys(BAD, "wrong shape")
KIND_OF |= dict.fromkeys(("nan", "+inf", "-inf"), "not finite")
KIND_OF |= dict.fromkeys(("exception", "SystemExit"), "exception")
FUNCTIONS = ("objective", "constraint")
PLACES = ("base point", "perturbed point", "dual query", "verification")
N_ITERATIONS = 8
TOLERANCE = 1e-2

# The functions below know the stage of a run by the order of their calls, which is that
# of one thread. All evaluators have a matrix of their own: tests/workers.
WATCHED = ("serial",)
SQP = "sampled_sqp"
PLACES_OF: dict[str, tuple[str, ...]] = dict.fromkeys(
    sorted(set(METHODS) - set(FEASIBLE_METHODS)),
    ("base point", "perturbed point", "verification"),
)
PLACES_OF["dszog"] = PLACES
PLACES_OF[SQP] = ("perturbed point", "verification")  # it looks at no point twice
CELLS = [
    cell
    for name, places in PLACES_OF.items()
    for cell in itertools.product(BAD, FUNCTIONS, places, POLICIES, [name], WATCHED)
]
COMPARING = {  # methods that take the difference of values at two points
    name
    for name, kind in FEASIBLE_METHODS.items()
    if issubclass(kind, (SpiderMethod, StormMethod))
}
FEASIBLE_BAD = ("nan", "-inf", "str", "exception")
FEASIBLE_PLACES = (
    ("objective", "base point"),
    ("objective", "perturbed point"),
    ("objective", "verification"),
    ("constraint", "verification"),
)
CELLS += [
    (bad, *place, policy, method, evaluator)
    for bad, place, policy, method, evaluator in itertools.product(
        FEASIBLE_BAD, FEASIBLE_PLACES, POLICIES, sorted(FEASIBLE_METHODS), WATCHED
    )
    if policy != "penalise" or method not in COMPARING
]


def test_the_matrix_has_a_cell_for_every_combination() -> None:
    assert len(CELLS) == len(set(CELLS))
    n_others = 10 * 2 * (4 + 2 + 3 * (len(PLACES_OF) - 2)) * len(POLICIES)
    n_pairs = len(FEASIBLE_METHODS) * len(POLICIES) - len(COMPARING)
    assert len(CELLS) == (n_others + 4 * 4 * n_pairs) * len(WATCHED)
    assert len(COMPARING) == 6
    assert {cell[4] for cell in CELLS} == set(METHODS)
    assert set(POLICIES) >= {"raise", "resample", "penalise"}
    assert "dszog" in METHODS
    assert KIND_OF.keys() == BAD.keys()


# ------------------------------------------------------------------------ the matrix
ANGLES = 2.0 * np.pi * np.arange(12) / 12


def clean_objective(x: FloatArray) -> float:
    return float((x[0] - 2.0) ** 2 + x[1] ** 2)


def clean_constraint(x: FloatArray, j: int) -> float:
    return float(x[0] * np.cos(ANGLES[j]) + x[1] * np.sin(ANGLES[j]) - 1.0)


@dataclass
class Staged:
    """Functions that fail at one stage of a run, from its fifth callback on.

    They know the stage from the callback: it says where the iterate is, and when the
    last iteration is over. In an iteration the values around the iterate come first;
    what is asked at the iterate after them is asked at that point alone.
    """

    bad: Callable[[], Any]
    function: str
    place: str
    always: bool
    method: str = "dszog"
    base: FloatArray = field(default_factory=lambda: np.zeros(2))
    seen_perturbed: set[str] = field(default_factory=set)
    n_callbacks: int = 0
    is_over: bool = False
    n_chances: int = 0
    failed_in_check: set[bytes] = field(default_factory=set)
    n_failed: int = 0

    def callback(self, progress: Progress) -> None:
        self.base, self.seen_perturbed = progress.x, set()
        self.n_callbacks += 1
        self.is_over = progress.iteration >= self.n_iterations

    @property
    def n_iterations(self) -> int:
        return 4 if self.method == SQP else N_ITERATIONS  # before it has converged

    def _stage(self, function: str, x: FloatArray) -> str:
        if self.is_over:
            return "verification"
        if not np.array_equal(x, self.base):
            self.seen_perturbed.add(function)
            return "perturbed point"
        alone = function in self.seen_perturbed or self._is_white(function)
        return "dual query" if alone and self.method == "dszog" else "base point"

    def _is_white(self, function: str) -> bool:
        is_white = self.place == "dual query" or self.method == "fcgs"
        return function == "objective" and is_white

    def _fails(self, function: str, x: FloatArray) -> bool:
        stage = self._stage(function, x)
        first = 2 if self.method == SQP else 5
        if (function, stage) != (self.function, self.place) or self.n_callbacks < first:
            return False
        self.n_chances += 1
        if not self.always and self.n_chances % 2:
            return False
        self.n_failed += 1
        if stage == "verification":
            self.failed_in_check.add(x.tobytes())
        return True

    def objective(self, x: FloatArray) -> Any:
        return self.bad() if self._fails("objective", x) else clean_objective(x)

    def constraint(self, x: FloatArray, j: int) -> Any:
        return self.bad() if self._fails("constraint", x) else clean_constraint(x, j)

    def losses(self) -> Any:
        if not self._is_white("objective"):
            return self.objective
        # A loss with a gradient is asked at the iterate alone, as the dual query is.
        return Losses(
            lambda points, i: self.objective(points[0]),
            1,
            gradient=lambda x, i: np.array([[2.0 * (x[0] - 2.0), 2.0 * x[1]]]),
        )

    def chosen(self) -> Any:
        """Return the method; those of feasible sets keep to a disc."""
        if self.method not in FEASIBLE_METHODS:
            return self.method
        kind = FEASIBLE_METHODS[self.method]
        settings: dict[str, Any] = {"domain": L2Ball(dim=2, radius=1.0)}
        if issubclass(kind, SpiderMethod):
            settings["period"] = N_ITERATIONS + 1
        return kind(**settings)

    def minimize(self, **settings: Any) -> Any:
        return dszog.minimize(
            self.losses(), np.zeros(2),
            Constraints.from_function(self.constraint, len(ANGLES)),
            max_iterations=self.n_iterations, constraint_tol=TOLERANCE, seed=5,
            callback=self.callback, method=self.chosen(), **settings,
        )  # fmt: skip


@pytest.mark.parametrize("always", [True, False], ids=["always", "sometimes"])
@pytest.mark.parametrize(
    "cell", CELLS, ids=lambda cell: "-".join(cell).replace(" ", "_")
)
def test_success_is_never_reported_at_a_point_that_is_not_known(
    cell: tuple[str, ...], always: bool
) -> None:
    bad, function, place, policy, method, evaluator = cell
    box = Staged(BAD[bad], function, place, always, method)
    settings = {"evaluator": evaluator, "on_failure": policy}
    if policy == "raise":
        what = "Objective" if function == "objective" else "Constraint"
        with pytest.raises(EvaluationError, match=what):
            box.minimize(**settings)
        return
    result = box.minimize(**settings)
    assert box.n_failed > 0  # the cell did happen
    assert result.failures.n_failed > 0
    assert set(result.failures.kinds) == {KIND_OF[bad]}
    if result.success:
        assert result.x.tobytes() not in box.failed_in_check
        worst = max(clean_constraint(result.x, j) for j in range(len(ANGLES)))
        assert worst <= TOLERANCE
        assert result.fun == clean_objective(result.x)
        assert result.maxcv == max(worst, 0.0)
        assert result.certificate.is_known
    if place == "verification" and always:
        assert not result.success
        assert not result.certificate.is_known
        unknown = result.fun if function == "objective" else result.maxcv
        assert np.isnan(unknown)
        assert "not known" in result.message


# ----------------------------------------------------------------------- the NaN well
WELL_STARTS: list[tuple[list[float], dict[str, Any]]] = [
    ([2.0, 1.0], {}),  # from the feasible side, as a user would
    ([2.0, 1.0], {"step_size": 0.5}),  # steps that jump into the well
    ([1.2, 0.5], {"step_size": 2.0, "penalty": 1.0}),
    ([0.6, 0.3], {}),  # not feasible, near the edge
    ([0.6, 0.3], {"step_size": 0.2, "penalty": 0.1}),  # drifts into it
    ([0.50001, 0.0], {"radius": 1e-2}),  # perturbed points lie in it
]


def well(bad: Callable[[], Any], function: str) -> tuple[Any, Any]:
    """Return min x.x under x0 >= 1, where one function fails for x0 < 0.5."""

    def objective(x: FloatArray) -> Any:
        return bad() if function == "objective" and x[0] < 0.5 else float(x @ x)

    def constraint(x: FloatArray, j: int) -> Any:
        return bad() if function == "constraint" and x[0] < 0.5 else float(1.0 - x[0])

    return objective, Constraints.from_function(constraint, 1)


def well_outcomes(
    seeds: range,
    policy: str,
    bad: str = "nan",
    function: str = "constraint",
    starts: list[tuple[list[float], dict[str, Any]]] = WELL_STARTS,
) -> tuple[int, int, int]:
    """Return false successes, runs that met the well, and runs."""
    n_false = n_met = n_runs = 0
    objective, constraints = well(BAD[bad], function)
    for seed, (x0, options) in itertools.product(seeds, starts):
        n_runs += 1
        try:
            result = dszog.minimize(
                objective,
                x0,
                constraints,
                options=options,
                max_iterations=25,
                on_failure=policy,  # type: ignore[arg-type]
                seed=seed,
            )
        except EvaluationError:
            n_met += 1
            continue
        n_met += result.failures.n_failed > 0
        n_false += bool(result.success) and not 1.0 - result.x[0] <= TOLERANCE
    return n_false, n_met, n_runs


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("n_seeds", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_the_nan_well_never_gives_a_false_success(
    n_seeds: int, policy: str, record_property: Record
) -> None:
    n_false, n_met, n_runs = well_outcomes(range(n_seeds), policy)
    if n_seeds == 100:
        record_property("runs", n_runs)
        record_property("runs that met unknown values", n_met)
        record_property("false successes", n_false)
    assert n_runs == n_seeds * len(WELL_STARTS)
    assert n_met >= n_runs / 3
    assert n_false == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("bad", BAD)
def test_no_failure_makes_a_feasible_well(bad: str, function: str, policy: str) -> None:
    starts = WELL_STARTS[2::2]
    n_false, n_met, _ = well_outcomes(range(1), policy, bad, function, starts)
    assert n_met > 0
    assert n_false == 0


# ---------------------------------------------------- pairs of points that stay matched
@dataclass(frozen=True)
class Pair:
    """A method between two points, and what it asked there."""

    method: Any
    state: Any
    queries: tuple[Query, ...]
    replies: tuple[Reply, ...]

    @classmethod
    def of(cls, name: str, **settings: Any) -> Pair:
        rng = np.random.Generator(np.random.Philox(key=3))
        centres = rng.normal(0.5, 0.3, (9, 3))
        problem = Problem(
            Losses(
                lambda points, i: ((points[:, np.newaxis] - centres[i]) ** 2).sum(2),
                9,
                gradient=lambda x, i: 2.0 * (x - centres[i]),
            ),
            None,
            3,
            bounds=[(-1.0, 1.0)] * 3,
        )
        domain = Box(lower=-np.ones(3), upper=np.ones(3))
        if issubclass(FEASIBLE_METHODS[name], SpiderMethod):
            settings |= {"period": 5}
        kind = FEASIBLE_METHODS[name]
        method = kind(domain=domain, loss_batch=6, n_directions=4, **settings)
        answer = Serial(problem)
        state = method.init(np.full(3, 0.9), problem.size, 0)
        for _ in range(2):
            queries = method.ask(state)
            state, _ = method.tell(state, queries, answer(queries))
        queries = method.ask(state)
        return cls(method, state, queries, tuple(answer(queries)))

    def gradient(self, policy: Any, lost: dict[int, BoolArray]) -> FloatArray:
        """Return the estimate if these values of these queries are not known."""
        replies = list(self.replies)
        for place, unknown in lost.items():
            values = np.where(unknown, np.nan, replies[place].losses)
            replies[place] = dszog.contract.Reply(
                losses=values, constraints=replies[place].constraints,
                loss_gradients=replies[place].loss_gradients, failures=(failure(),),
            )  # fmt: skip
        known = FailureHandler(policy).repair(self.queries, replies)
        found: FloatArray = self.method.tell(self.state, *known)[0].gradient
        return found


PAIRED = [
    (name, settings)
    for name, kind in FEASIBLE_METHODS.items()
    if issubclass(kind, (SpiderMethod, StormMethod))
    for settings in (
        [{}]
        if kind.needs_gradient
        else [{"estimator": e} for e in ("sphere", "gaussian", "coordinate")]
    )
]
every_pair = pytest.mark.parametrize(
    ("name", "settings"), PAIRED, ids=[f"{n}-{'-'.join(s.values())}" for n, s in PAIRED]
)


@every_pair
@pytest.mark.parametrize("what", ["loss", "direction"])
@pytest.mark.parametrize("side", [0, 1], ids=["here", "before"])
def test_what_is_unknown_at_one_point_is_left_out_at_both(
    side: int, what: str, name: str, settings: dict[str, Any]
) -> None:
    pair = Pair.of(name, **settings)
    lost = np.zeros(pair.replies[0].losses.shape, bool)
    if what == "loss":
        lost[0] = pair.queries[0].losses == pair.queries[0].losses[2]
    elif len(lost) == 1:
        return  # gradients have no directions
    else:
        lost[2, 1] = True
    one = pair.gradient("resample", {side: lost})
    both = pair.gradient("resample", {0: lost, 1: lost})
    np.testing.assert_array_equal(one, both)
    assert np.abs(one - pair.gradient("resample", {})).max() > 0.0


@every_pair
def test_where_nothing_is_known_at_both_points_the_estimate_stays(
    name: str, settings: dict[str, Any]
) -> None:
    pair = Pair.of(name, **settings)
    shape = pair.replies[0].losses.shape
    if shape[0] == 1:
        return
    half = (shape[0] - 1) // 2 if settings["estimator"] != "coordinate" else 1
    here, before = np.zeros(shape, bool), np.zeros(shape, bool)
    here[1 : 1 + half, 0] = True
    before[1 + half : (None if half > 1 else 4), 0] = True
    np.testing.assert_array_equal(
        pair.gradient("resample", {0: here, 1: before}), pair.state.gradient
    )


# -------------------------------------------------- constraints replaced by tangents
@dataclass
class Curved:
    """A disc whose constraints or losses are not known at some calls."""

    what: str  # "one constraint", "all constraints" or "loss"
    fails: Callable[[int], bool]
    n_calls: int = 0

    def _is_lost(self, what: str) -> bool:
        if not self.what.endswith(what):
            return False
        self.n_calls += 1
        return self.fails(self.n_calls)

    def values(self, points: FloatArray, j: IntArray) -> FloatArray:
        table: FloatArray = (points**2).sum(axis=1, keepdims=True) - 1.0 - 0.1 * j
        if self._is_lost("constraint") or self._is_lost("constraints"):
            table[:, : 1 if self.what == "one constraint" else None] = np.nan
        return table

    def losses(self, points: FloatArray, i: IntArray) -> FloatArray:
        table: FloatArray = ((points - 2.0) ** 2).sum(axis=1, keepdims=True) + 0.0 * i
        return table + np.nan if self._is_lost("loss") else table

    def minimize(self, method: str, nonconvex: str, **options: Any) -> Any:
        return dszog.minimize(
            Losses(
                self.losses,
                5,
                gradient=lambda x, i: np.repeat(2.0 * (x - 2.0)[np.newaxis], len(i), 0),
            ),
            [0.0, 0.0],
            Constraints(
                self.values,
                4,
                jacobian=lambda x, j: np.repeat(2.0 * x[np.newaxis], len(j), 0),
            ),
            method=method,
            options={"nonconvex": nonconvex, "step_size": 0.05} | options,
            max_iterations=15,
            on_failure="resample",
            seed=0,
        )


@pytest.mark.parametrize("what", ["one constraint", "all constraints", "loss"])
@pytest.mark.parametrize("nonconvex", ["linearise", "retract"])
@pytest.mark.parametrize("method", FEASIBLE_METHODS)
def test_a_look_or_step_that_fails_once_is_made_again_half_way_back(
    method: str, nonconvex: str, what: str
) -> None:
    for at in (3, 4, 7):
        box = Curved(what, lambda n, at=at: n == at)  # type: ignore[misc]
        exact = {"exact_prox": True} if method in ("fzcgs", "fcgs") else {}
        result = box.minimize(method, nonconvex, **exact)
        assert result.status == Status.MAX_ITERATIONS
        assert result.nit == 15
        assert result.failures.n_failed > 0
        assert (result.failures.n_rejected > 0) == (what != "one constraint")
        assert result.x @ result.x <= 1.0 + TOLERANCE


# ------------------------------------------------------------------- the estimates (B2)
DIM, N_DIRECTIONS, N_FAILED, RADIUS = 22, 2000, 25, 1e-3


def gradient_errors(policy: Any, paired: bool) -> tuple[float, float]:
    """Return root mean square errors of a gradient, clean and with 1.25 % failures."""
    centre = np.linspace(-1.0, 1.0, DIM)
    x = np.zeros(DIM)
    truth = -2.0 * centre
    difference = central_difference if paired else forward_difference
    clean, repaired = [], []
    for seed in range(12):
        rng = np.random.Generator(np.random.Philox(key=seed))
        directions = draw_directions(rng, "gaussian", N_DIRECTIONS, DIM)
        steps = RADIUS * directions
        steps = np.concatenate([steps, -steps]) if paired else steps
        values = ((x - centre + np.concatenate([x[np.newaxis], steps])) ** 2).sum(1)
        clean.append(difference(values, directions, RADIUS) - truth)
        values[1 + rng.choice(len(steps), N_FAILED, replace=False)] = np.nan
        query = Query(
            iteration=0, x=x, steps=steps, losses=np.zeros(1, np.int64), paired=paired
        )
        reply = Reply(
            losses=values[:, np.newaxis],
            constraints=np.empty((len(values), 0)),
            failures=(failure(),),
        )
        (query,), (reply,) = FailureHandler(policy).repair([query], [reply])
        left = query.steps[: len(query.steps) // (1 + paired)] / RADIUS
        assert np.isfinite(reply.losses).all()
        repaired.append(difference(reply.losses[:, 0], left, RADIUS) - truth)
    return _rms(clean), _rms(repaired)


def failure() -> Any:
    return dszog.contract.Failure(
        kind="not finite", what="loss", index=0, iteration=0, x=np.zeros(1), message="!"
    )


def run_of(box: Bases, policy: Any, method: Any, max_iterations: int) -> Any:
    return dszog.minimize(
        box.losses(), [3.0, 1.0], bounds=[(-9.0, 9.0)] * 2, method=method,
        max_iterations=max_iterations, on_failure=policy, seed=1,
    )  # fmt: skip


def _rms(errors: list[FloatArray]) -> float:
    return float(np.sqrt(np.mean([(e**2).sum() for e in errors])))


@pytest.mark.parametrize("paired", [False, True], ids=["forward", "antithetic"])
@pytest.mark.parametrize(("policy", "bar"), [("resample", 1.05), ("penalise", 2.0)])
def test_failures_hardly_move_gradients(policy: str, bar: float, paired: bool) -> None:
    clean, repaired = gradient_errors(policy, paired)
    assert repaired <= bar * clean


def test_an_antithetic_pair_is_dropped_whole() -> None:
    steps = np.arange(1.0, 5.0).reshape(4, 1)
    steps = np.concatenate([steps, -steps])
    query = Query(
        iteration=0, x=np.zeros(1), steps=steps, losses=np.array([0]),
        constraints=np.array([3, 8]), paired=True,
    )  # fmt: skip
    losses = np.arange(9.0).reshape(9, 1)
    constraints = np.arange(18.0).reshape(9, 2)
    losses[2] = np.nan  # direction 2, forwards
    constraints[8, 1] = np.nan  # direction 4, backwards
    reply = Reply(losses=losses, constraints=constraints, failures=(failure(),))
    (kept,), (left,) = FailureHandler("resample").repair([query], [reply])
    np.testing.assert_array_equal(kept.steps.ravel(), [1.0, 3.0, -1.0, -3.0])
    np.testing.assert_array_equal(left.losses.ravel(), [0.0, 1.0, 3.0, 5.0, 7.0])
    np.testing.assert_array_equal(left.constraints[:, 0], [0.0, 2.0, 6.0, 10.0, 14.0])
    np.testing.assert_array_equal(kept.constraints, [3, 8])


def test_an_index_unknown_at_the_base_point_is_left_out_alone() -> None:
    query = Query(
        iteration=0, x=np.zeros(1), steps=np.ones((2, 1)), losses=np.array([4, 5, 6]),
        constraints=np.array([7, 7, 9]),
    )  # fmt: skip
    losses = np.array([[1.0, np.nan, 3.0]] + 2 * [[1.0, 2.0, 3.0]])
    constraints = np.array([[1.0, 1.0, np.nan]] + 2 * [[1.0, 1.0, 9.0]])
    reply = Reply(losses=losses, constraints=constraints, failures=(failure(),))
    for policy in ("resample", "penalise"):
        (kept,), (left,) = FailureHandler(policy).repair([query], [reply])
        np.testing.assert_array_equal(kept.losses, [4, 6])
        np.testing.assert_array_equal(kept.constraints, [7, 7])
        assert left.losses.shape == (3, 2)
        assert left.constraints.shape == (3, 2)
        assert len(kept.steps) == 2


# ----------------------------------------------------------------- steps taken back
@dataclass
class Bases:
    """A loss that notes every base point and fails where it is told to."""

    fails: Callable[[FloatArray, int], bool]
    bases: list[FloatArray] = field(default_factory=list)

    def losses(self) -> Losses:
        def values(points: FloatArray, i: IntArray) -> FloatArray:
            table = np.asarray((points**2).sum(axis=1))[:, np.newaxis].copy()
            if len(points) > 1:  # an iteration; the check looks at single points
                self.bases.append(points[0])
            if self.fails(points[0], len(self.bases)):
                table[:] = np.nan
            return table

        return Losses(values, 1)


@pytest.mark.parametrize("policy", ["resample", "penalise"])
def test_a_rejected_base_point_goes_half_way_back(policy: str) -> None:
    box = Bases(lambda x, n: n in (4, 5))
    method = DSZOG(n_directions=2, step_size=0.3, directions="gaussian")
    result = run_of(box, policy, method, 10)
    last_good, rejected, half, quarter = box.bases[2:6]
    np.testing.assert_array_equal(half, (last_good + rejected) / 2)
    np.testing.assert_array_equal(quarter, (last_good + half) / 2)
    assert result.failures.n_rejected == 2
    assert result.nit == 10
    assert result.status == Status.MAX_ITERATIONS
    assert result.certificate.is_known


@pytest.mark.parametrize("policy", ["resample", "penalise"])
def test_five_steps_taken_back_in_a_row_are_the_last(policy: str) -> None:
    box = Bases(lambda x, n: n > 3)
    result = run_of(box, policy, DSZOG(n_directions=1, directions="gaussian"), 50)
    assert result.status == Status.TOO_MANY_FAILURES
    assert result.failures.n_rejected == MAX_REJECTED == 5
    assert len(box.bases) == 3 + MAX_REJECTED + 1
    assert result.nit == 3
    assert not result.success
    assert "result.failures" in result.message


@pytest.mark.parametrize("policy", ["resample", "penalise"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("bad", ["nan", "exception", "str"])
def test_a_start_without_values_is_refused(
    bad: str, function: str, policy: str
) -> None:
    objective, constraints = well(BAD[bad], function)
    with pytest.raises(EvaluationError, match=r"start cannot be evaluated.*another x0"):
        dszog.minimize(
            objective,
            [0.0, 0.0],
            constraints,
            max_iterations=30,
            on_failure=policy,  # type: ignore[arg-type]
            seed=0,
        )


# --------------------------------------------------------------------- counting (B3)
@dataclass
class Log:
    """What the functions saw and did, kept by themselves, one entry per query."""

    rate: float
    how: str
    queries: list[tuple[FloatArray, BoolArray]] = field(default_factory=list)

    def table(self, points: FloatArray, indices: IntArray, shift: float) -> FloatArray:
        """Return values, of which some are unknown at some points."""
        draws = np.array([_unit(x, shift) for x in points])
        failed = draws < self.rate
        if self.how == "exception" and failed.any():
            failed[:] = True
        if self.queries and self.queries[-1][0] is points:
            failed |= self.queries.pop()[1]
        self.queries.append((points, failed))
        if self.how == "exception" and (draws < self.rate).any():
            raise ValueError("no")
        table = np.repeat((points**2).sum(axis=1, keepdims=True), len(indices), axis=1)
        table[draws < self.rate] = np.nan
        return table


def _unit(x: FloatArray, shift: float) -> float:
    """Return a number in [0, 1) that depends on the point alone, wildly."""
    return float(np.abs(np.sin(1e6 * x.sum() + shift)) * 1e4 % 1.0)


@pytest.mark.parametrize("how", ["nan", "exception"])
@pytest.mark.parametrize("policy", ["resample", "penalise"])
@pytest.mark.parametrize("seed", range(5))
def test_failures_are_counted_as_the_black_box_counts_them(
    seed: int, policy: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No copies are handed out: the points of a query tell the log which one it is.
    monkeypatch.setattr("dszog.workers.base.handed_out", lambda array: array)
    log, told = Log(0.02 if how == "nan" else 0.002, how), list[int]()
    result = dszog.minimize(
        Losses(lambda points, i: log.table(points, i, 0.0), 30),
        np.full(3, 0.9),
        Constraints(lambda points, j: log.table(points, j, 1.0) - 1.0, 40),
        method=DSZOG(),
        max_iterations=60,
        on_failure=policy,  # type: ignore[arg-type]
        seed=seed,
        callback=lambda progress: told.append(progress.n_failed),
    )
    report = result.failures
    assert told == sorted(told)
    assert told[-1] == result.history["n_failed"][-1] <= report.n_failed
    assert report.n_points == sum(len(points) for points, _ in log.queries)
    assert report.n_failed == sum(int(failed.sum()) for _, failed in log.queries)
    assert report.rate == report.n_failed / report.n_points
    assert report.policy == policy
    assert set(report.kinds) <= {"not finite" if how == "nan" else "exception"}
    assert len(report.first) == min(3, sum(report.kinds.values()))


def test_the_first_three_failures_are_kept_with_where_and_why() -> None:
    def objective(x: FloatArray) -> float:
        if _unit(x, 0.0) < 0.05:
            raise_error()
        return float(x @ x)

    result = by_dszog(
        objective, [1.0, 1.0], Constraints.linear([[1.0, 0.0]], [5.0]),
        max_iterations=60, on_failure="resample", seed=1,
    )  # fmt: skip
    assert len(result.failures.first) == 3
    for one in result.failures.first:
        assert one.kind == "exception"
        assert one.what == "objective"
        assert one.index == 0
        assert _unit(one.x, 0.0) < 0.05
        assert isinstance(one.error, ZeroDivisionError)
        assert one.error.__traceback__ is not None
        assert "ZeroDivisionError: the simulator broke" in one.message
    iterations = [one.iteration for one in result.failures.first]
    assert iterations == sorted(iterations)


# ------------------------------------------------- some failures are normal (B5, B6)
@pytest.mark.parametrize("method", ["dszog", "sampled_sqp"])
@pytest.mark.parametrize("rate", [1e-3, 0.01, 0.05, 0.2])
def test_values_that_fail_leave_an_answer_that_says_what_it_rests_on(
    rate: float, method: str
) -> None:
    def constraint(x: FloatArray, j: int) -> float:
        return np.nan if _unit(x, 7.0 * j) < rate else clean_constraint(x, j)

    def objective(x: FloatArray) -> float:
        is_start = np.array_equal(x, x0)  # without a value there is no start
        fails = not is_start and _unit(x, 1.0) < rate
        return np.nan if fails else clean_objective(x)

    rates = []
    for seed in range(3):
        x0 = np.array([0.1 + 0.05 * seed, 0.2])
        at_start = [constraint(x0, j) for j in range(len(ANGLES))]
        result = dszog.minimize(
            objective, x0, Constraints.from_function(constraint, len(ANGLES)),
            method=method, max_queries=2000, on_failure="resample", seed=seed,
        )  # fmt: skip
        report = result.failures
        rates.append(report.rate)
        assert report.rate == report.n_failed / report.n_points
        assert bool(report.n_failed) == ("failures" in str(result))
        assert report.n_failed or not np.isnan(at_start).any()
        if result.success:
            worst = max(clean_constraint(result.x, j) for j in range(len(ANGLES)))
            assert worst <= TOLERANCE
            assert result.certificate.is_known
        assert result.status != Status.TOO_MANY_FAILURES or rate > 1e-3
    assert max(rates) > rate or rate < 0.01  # a point fails with any of its values


# ---------------------------------------------------------------------- breaker (B4)
@dataclass
class Ramp:
    """A loss whose rate of failures follows a law of the number of points so far."""

    rate: Callable[[int], float]
    seed: int
    failed: list[bool] = field(default_factory=list)  # of the points of the iterations

    def losses(self) -> Losses:
        rng = np.random.Generator(np.random.Philox(key=self.seed))

        def values(points: FloatArray, i: IntArray) -> FloatArray:
            table = np.asarray((points**2).sum(axis=1))[:, np.newaxis].copy()
            if len(points) > 1:
                for row in range(len(points)):
                    fails = rng.random() < self.rate(len(self.failed))
                    self.failed.append(fails)
                    if fails:
                        table[row] = np.nan
            return table

        return Losses(values, 1)

    def minimize(self, policy: Any, n_directions: int) -> Any:
        return dszog.minimize(
            self.losses(), [1.0, 2.0], bounds=[(-9.0, 9.0)] * 2,
            method=DSZOG(n_directions=n_directions, directions="gaussian"),
            max_iterations=400, on_failure=policy, seed=self.seed,
        )  # fmt: skip

    def first_over(self) -> int | None:
        """Return the number of points after which the threshold was passed first."""
        recent = np.convolve(self.failed, np.ones(WINDOW), "valid")
        over = np.flatnonzero(recent > MAX_RATE * WINDOW)
        return None if not len(over) else int(over[0]) + WINDOW


@pytest.mark.parametrize("policy", ["resample", "penalise"])
@pytest.mark.parametrize("slope", [1e-2, 1e-3, 3e-4])
@pytest.mark.parametrize("seed", range(3))
def test_a_rising_rate_of_failures_stops_the_run_soon_after_one_in_ten(
    seed: int, slope: float, policy: str
) -> None:
    ramp = Ramp(lambda n: slope * max(n - 100, 0), seed)
    result = ramp.minimize(policy, n_directions=4)
    assert result.status == Status.TOO_MANY_FAILURES
    assert not result.success
    over = ramp.first_over()
    n_points = len(ramp.failed)
    if over is not None:  # else it was a row of failures, or of steps taken back
        assert n_points - over <= WINDOW


FAILED, KNOWN = (
    Reply(
        losses=np.full((1, 1), value), constraints=np.empty((1, 0)), failures=failures
    )
    for value, failures in ((np.nan, (failure(),)), (1.0, ()))
)


@pytest.mark.parametrize(("every", "is_enough"), [(9, True), (10, False)])
def test_more_than_one_in_ten_of_200_is_enough(every: int, is_enough: bool) -> None:
    handler = FailureHandler("resample")
    for number in range(200):
        assert not handler.is_enough  # never before there are so many
        handler.count([KNOWN if number % every else FAILED])
    assert handler.is_enough is is_enough


def test_twenty_points_in_a_row_are_enough_and_nineteen_are_not() -> None:
    handler = FailureHandler("resample")
    handler.count(19 * [FAILED])
    assert not handler.is_enough
    handler.count([KNOWN])
    handler.count(19 * [FAILED])
    assert not handler.is_enough
    handler.count([FAILED])
    assert handler.is_enough


@pytest.mark.parametrize(("purpose", "is_enough"), [("step", True), ("trial", False)])
def test_steps_that_were_only_tried_say_nothing_of_how_often_functions_fail(
    purpose: Purpose, is_enough: bool
) -> None:
    handler = FailureHandler("resample")
    query = Query(
        iteration=0,
        x=np.zeros(1),
        steps=np.empty((0, 1)),
        losses=np.zeros(1, dtype=np.int64),
        constraints=NO_INDICES,
        purpose=purpose,
    )
    handler.count(30 * [FAILED], 30 * [query])
    assert handler.is_enough is is_enough
    assert handler.n_failed == 30  # and are counted all the same


# ----------------------------------------------------------------------- the message
def fails_at(index: int, error: bool) -> Constraints:
    def constraint(x: FloatArray, j: int) -> float:
        if j == index and x[0] < 0.99:
            if error:
                raise ValueError(f"mesh {j} is degenerate")
            return np.nan
        return -1.0

    return Constraints.from_function(constraint, 50)


def plain(x: FloatArray) -> float:
    return float(x @ x)


def colourless(x: FloatArray) -> float:
    if x[0] < 0.9:
        raise KeyError("colour")
    return plain(x)


def degenerate(x: FloatArray, j: int) -> float:
    raise ValueError(f"mesh {j} is degenerate")


WIDE = Constraints.linear([[1.0, 1.0]], 9.0)
SAID: list[tuple[Any, Constraints, str, type[BaseException] | None]] = [
    (
        plain,
        fails_at(17, False),
        r"^Constraint 17 returned nan at iteration [1-9]\d*, x = array\(\[0\.9\d+.*\]\)"
        r"\. Values must be finite",
        None,
    ),
    (
        plain,
        fails_at(17, True),
        "^Constraint 17 raised ValueError: mesh 17",
        ValueError,
    ),
    (
        colourless,
        WIDE,
        r"^Objective raised KeyError: 'colour' at iteration \d+, x = .*"
        r"expected: on_failure='resample' leaves",
        KeyError,
    ),
    (
        plain,
        Constraints.from_function(degenerate, 3),
        r"Constraint (\d+) raised .* mesh \1 is degenerate",
        ValueError,
    ),
    (plain, Constraints(lambda points, j: np.zeros(3), 5), "Expected", None),
    (lambda x: leave(), WIDE, r"raised SystemExit: 3", SystemExit),
    (
        plain,
        Constraints(lambda points, j: leave(), 5),
        r"raised SystemExit: 3",
        SystemExit,
    ),
]


@pytest.mark.parametrize(("fun", "constraints", "said", "cause"), SAID)
def test_the_error_names_function_index_iteration_and_point_and_keeps_its_cause(
    fun: Any, constraints: Constraints, said: str, cause: type[BaseException] | None
) -> None:
    with pytest.raises(EvaluationError, match=said) as caught:
        by_dszog(fun, [1.0, 1.0], constraints, seed=0)
    assert cause is None or isinstance(caught.value.__cause__, cause)
    if said == "Expected":  # a wrong shape is a mistake, which no policy outlives
        assert "on_failure" not in str(caught.value)


def test_a_value_is_not_blamed_on_the_error_of_another_query() -> None:
    problem = Problem(
        lambda x: raise_error() if x[0] > 0.0 else 1.0,
        Constraints.from_function(lambda x, j: np.nan if j == 1 else -1.0, 2),
        1,
    )
    around = Query(
        iteration=0, x=np.zeros(1), steps=np.ones((1, 1)), losses=np.array([0])
    )
    dual = Query.at(np.zeros(1), iteration=0, constraints=np.arange(2))
    of_loss, of_constraint = Serial(problem)([around, dual])
    assert [one.kind for one in of_loss.failures] == ["exception"]
    np.testing.assert_array_equal(of_loss.failures[0].x, [1.0])
    assert [one.kind for one in of_constraint.failures] == ["not finite"]
    assert "returned nan" in of_constraint.failures[0].message
