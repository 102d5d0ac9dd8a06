from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog.errors import InputError
from dszog_bench.a9a import (
    Features,
    HeadlineSettings,
    a9a_rows,
    best_threshold,
    headline,
    linear_problem,
    paper_size,
)
from dszog_bench.customers import (
    MODELS,
    SLACK,
    TARGET_VIOLATION,
    Customers,
    customers_case,
    load_reference,
)
from dszog_bench.rotated import GOLDEN, N_ROWS, rotated_problem, rotated_rows

RNG = np.random.Generator(np.random.Philox(key=11))


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


# ------------------------------------------------------------ as many as one likes


def test_a_rotated_constraint_is_a_function_of_its_index() -> None:
    dim = 7
    X, _ = rotated_rows(dim)
    problem = rotated_problem(10**12, dim)
    indices = np.array([0, 1, N_ROWS, 5 * N_ROWS + 3, 10**12 - 1])
    w = RNG.standard_normal(dim)

    assert problem.constraints is not None
    found = problem.constraints.values(w[np.newaxis], indices)[0]

    for value, j in zip(found, indices.tolist(), strict=True):
        turn, row = divmod(j, N_ROWS)
        shifted = np.roll(X[row], -(turn % dim))
        bound = 0.3 + 0.3 * (GOLDEN * (turn % 1_000_003) % 1.0)
        assert value == pytest.approx(shifted @ w - bound, abs=1e-12)


def test_a_trillion_rotated_constraints_are_run_on() -> None:
    result = dszog.minimize(rotated_problem(10**12, 5), max_iterations=20, seed=0)

    assert result.nit == 20
    assert len(result.weights[0]) < 10**6


# ------------------------------------------------------------------- nobody gets worse


@pytest.mark.parametrize("model", MODELS)
def test_the_old_model_leaves_every_customer_with_the_slack(model: Any) -> None:
    customers = Customers(model, 300)

    np.testing.assert_allclose(customers.all_constraints(customers.old), -SLACK)


@pytest.mark.parametrize("model", MODELS)
def test_the_black_box_of_the_customers_is_their_loss_and_its_rise(model: Any) -> None:
    customers = Customers(model, 300)
    w = customers.old + 0.1 * RNG.standard_normal(len(customers.old))
    problem = customers.problem()
    rows = np.array([5, 200])

    assert problem.constraints is not None
    at = problem.constraints.values(np.array([customers.old, w]), rows)

    np.testing.assert_allclose(at[1], customers.all_constraints(w)[rows])
    scores = customers.model.scores(w[np.newaxis], customers.X[rows])[0]
    rise = np.log1p(np.exp(-customers.y[rows] * scores)) - customers.allowed[rows]
    np.testing.assert_allclose(at[1], rise)
    everything = problem.losses.values(w[np.newaxis], np.arange(2000))
    assert customers.objective(w) == pytest.approx(everything.mean())


@pytest.mark.parametrize("model", MODELS)
def test_the_gradients_of_the_reference_are_right(model: Any) -> None:
    customers = Customers(model, 50)
    w = customers.old + 0.1 * RNG.standard_normal(len(customers.old))
    steps = 1e-6 * np.eye(len(w))
    rows = np.arange(50)

    def slopes(values: Any) -> Any:
        return np.array([(values(w + s) - values(w - s)) / 2e-6 for s in steps]).T

    found = customers._jacobian(w, rows)
    np.testing.assert_allclose(found, slopes(customers.all_constraints), atol=1e-8)
    np.testing.assert_allclose(
        customers._gradient(w), slopes(customers.objective), atol=1e-8
    )


def test_the_reference_of_a_small_problem_is_feasible_and_stationary() -> None:
    customers = Customers("linear", 400)

    found = customers.reference(n_starts=2)

    w = np.array(found.w)
    assert found.worst_violation == customers.worst(w) <= 0.0
    assert found.value == customers.objective(w) < found.value_at_start
    assert found.value > found.unconstrained_value
    assert found.kkt_residual < 1e-5
    assert found.n_active >= 1
    # The linear problem is convex: the starts agree.
    np.testing.assert_allclose(found.start_values, found.value, atol=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_the_stored_reference_is_of_this_problem(model: Any) -> None:
    stored = load_reference(model, 10**4)
    case = customers_case(model, 10**4)

    w = np.array(stored.w)
    assert case.objective(w) == pytest.approx(stored.value, abs=1e-6)
    assert case.worst(w) < 1e-5
    assert case.is_reached(w)
    assert not case.is_reached(case.start)
    assert stored.kkt_residual < 1e-6
    assert stored.value < case.target_objective < stored.value_at_start
    assert case.target_violation == TARGET_VIOLATION < SLACK


def test_a_reference_that_is_not_there_says_how_to_make_it() -> None:
    with pytest.raises(
        InputError, match=r"benchmarks/customers.py --model linear --m 77"
    ):
        load_reference("linear", 77)


def test_a_model_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="Did you mean 'linear'"):
        Customers("liner", 10)  # type: ignore[arg-type]


# -------------------------------------------------------------------- relaxed pairwise


def test_the_relaxed_case_has_the_constraints_of_its_problem() -> None:
    pytest.importorskip("sklearn")
    from dszog_bench.relaxed import load_optimum, relaxed_case

    case = relaxed_case(0)
    w = RNG.standard_normal(case.problem.dim)
    indices = RNG.integers(case.n_constraints, size=100)

    known: Any = case.problem.constraints
    values = case.constraints(w)
    np.testing.assert_allclose(
        values[indices], known.values(w[np.newaxis], indices)[0], atol=1e-12
    )
    assert case.worst(w) == pytest.approx(values.max(), abs=1e-12)
    assert len(values) == case.n_constraints == len(known)
    everything = case.problem.losses.values(w[np.newaxis], np.arange(case.n_losses))
    assert case.objective(w) == pytest.approx(everything.mean())
    assert case.is_reached(np.array(load_optimum(0).w))
    assert not case.is_reached(case.start)
    assert not case.is_reached(np.full(case.problem.dim, np.nan))


# --------------------------------------------------------------------------------- a9a


def test_without_data_a_named_stand_in_is_used(no_data: None) -> None:
    rows = a9a_rows()

    assert "stand-in" in rows.name
    assert not rows.is_real
    assert rows.train.n_rows + rows.test.n_rows == 600


def test_a_folder_without_the_files_is_refused(no_data: None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a9a is not in .*--data FOLDER"):
        a9a_rows(tmp_path)


def test_the_linear_problem_has_a_constraint_for_each_pair(no_data: None) -> None:
    rows = paper_size(a9a_rows().train, n_rows=100)

    problem = linear_problem(rows)

    n_positive = int((rows.y > 0).sum())
    assert rows.n_rows == 100
    assert problem.size.n_constraints == n_positive * (100 - n_positive)
    assert not problem.size.has_gradient
    assert not problem.size.has_jacobian


def test_the_threshold_makes_the_most_predictions_right() -> None:
    for _ in range(20):
        scores = RNG.integers(6, size=15).astype(float)  # with many ties
        y = np.where(RNG.random(15) < 0.5, 1.0, -1.0)
        tried = [-np.inf, *(np.unique(scores) + 0.5)]
        most = max(((scores > each) == (y > 0)).mean() for each in tried)

        threshold = best_threshold(scores, y)

        assert ((scores > threshold) == (y > 0)).mean() == most


def test_features_have_equal_variances_and_a_constant(no_data: None) -> None:
    X = a9a_rows().train.dense

    rows = Features(X, 3, floor=0.0)(X)

    np.testing.assert_array_equal(rows[:, -1], 1.0)
    np.testing.assert_allclose(
        np.cov(rows[:, :-1].T), np.eye(rows.shape[1] - 1), atol=1e-6
    )


def test_the_headline_figures_are_exact(no_data: None, monkeypatch: Any) -> None:
    rows = a9a_rows()
    settings = HeadlineSettings(
        n_components=2, iterations=60, loss_batch=32, constraint_batch=32
    )
    points: list[Any] = []
    minimize = dszog.minimize

    def watched(*arguments: Any, callback: Any, **more: Any) -> Any:
        def both(progress: dszog.Progress) -> None:
            points.append(progress.x)
            callback(progress)

        return minimize(*arguments, callback=both, **more)

    monkeypatch.setattr(dszog, "minimize", watched)
    found = headline(rows, settings)

    features = Features(rows.train.dense, 2, settings.floor)
    scores = features(rows.train.dense) @ points[-1]
    positive, negative = (scores[rows.train.y * sign > 0] for sign in (1, -1))
    gaps = np.subtract.outer(negative, positive)
    assert found["pairs"] == gaps.size
    assert found["share_violated"] == pytest.approx((gaps > 0).mean(), abs=1e-6)
    assert found["worst_violation"] == pytest.approx(gaps.max())
    right = (features(rows.test.dense) @ points[-1]) > best_threshold(
        scores, rows.train.y
    )
    assert found["test_accuracy"] == ((rows.test.y > 0) == right).mean()
    assert found["iterations"] == 60
    assert found["share_violated"] < 0.45  # it learns: the start has no order at all
