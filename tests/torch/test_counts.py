"""What goes through a network is counted, budgets hold, and runs go on to others."""

from __future__ import annotations

import itertools
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

import dszog  # noqa: E402
import dszog.torch as dt  # noqa: E402
from dszog.torch import passes  # noqa: E402
from dszog.torch.space import digest_of  # noqa: E402
from tests.torch.helpers import (  # noqa: E402
    Around,
    both_ways,
    counting,
    data,
    functions,
    looking,
    loop,
    network,
    noisy,
    refused,
    trained,
    updated,
)


@both_ways
@pytest.mark.parametrize("rule", ["right", "loss"])
@pytest.mark.parametrize("most", [6000, 20_000, 70_000])
def test_an_update_reports_all_that_went_through_and_keeps_to_its_budget(
    gradients: bool, rule: Any, most: int
) -> None:
    net, new, keep = trained()
    keep = keep[0][:90], keep[1][:90]  # some are drawn twice
    counted = Around(net, counting)
    more: dict[str, Any] = {"gradients": gradients, "max_forwards": most}
    report = dt.update(counted, new, keep, rule=rule, **more)
    assert report.n_forwards == counted.n_seen
    assert 0.8 * most < report.n_forwards <= most


def counted_run(most: float, shift: float = 1.3, n: int = 120, **more: Any) -> Any:
    """Return a result whose budget is kept, and whose count is that of the network."""
    net = Around(network(), counting)
    loss, limit = looking(net, shift)
    if every := more.pop("fails_every", None):
        loss = failing_every(every, loss)
    both = dt.Losses(loss, 120), dt.Constraints(limit, n)
    result = dt.minimize(net, *both, max_queries=most, seed=0, **more)
    assert result.n_forwards == net.n_seen <= most
    return result


@pytest.mark.parametrize(("most", "shift"), [(4000, 1.0), (20_000, 1.3), (60_000, 1.0)])
def test_a_run_counts_its_first_looks_and_what_is_drawn_twice(
    most: int, shift: float
) -> None:
    result = counted_run(most, shift)
    assert result.costs.n_retried > 0
    beside = result.costs.n_retried + result.n_looks
    assert result.n_forwards == result.nfev + result.ncev + beside
    said = " ".join(str(result).split())
    assert f"{result.n_forwards:,} examples went through the network" in said
    assert "drawn twice" in said


def failing_every(n: int, loss: Any) -> Any:
    calls = itertools.count(1)

    def failing(i: Any) -> Any:
        values = loss(i)
        return values * torch.nan if next(calls) % n == 0 and len(i) == 64 else values

    return failing


def test_values_that_are_asked_for_with_care_are_counted_too() -> None:
    result = counted_run(20_000, fails_every=5, on_failure="resample")
    assert result.failures.n_failed


def test_a_few_constraints_are_enough_to_see_how_far_weights_may_go() -> None:
    counted_run(60_000, n=2)


@both_ways
def test_a_loop_of_ones_own_counts_and_never_asks_for_nothing(gradients: bool) -> None:
    inner = network()
    net = Around(inner, counting)
    loss, limit = looking(net, 9.0 if gradients else 1.3)  # 9: none is ever broken
    adam = torch.optim.Adam(inner.parameters()) if gradients else None
    opt, _ = loop(net, lambda i, j: (loss(i), limit(j)), 6, optimizer=adam)
    # One that fills in for no constraints has no backward pass.
    n_filled = 6 if gradients else 0
    assert opt.n_forwards == net.n_seen - 2 * n_filled


@pytest.mark.parametrize("most", [20_000, 60_000])
def test_what_it_takes_to_perturb_by_layers_is_counted(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dszog.torch.space.LARGE", 1)
    counted_run(most)


@pytest.mark.parametrize("most", [4000, 20_000])
def test_what_a_recording_takes_is_counted(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Recording:
        """Does what a graph does on a GPU, by passes, which are few there."""

        def __init__(self, passes: Any, wanted: Any, space: Any) -> None:
            self.n_checked, self._passes = 0, passes
            self.indices = torch.from_numpy(wanted)
            passes(self.indices)

        def replay(self, wanted: Any, iteration: int) -> Any:
            self.indices = torch.from_numpy(wanted)
            return self._passes(self.indices).numpy()

    begin = passes.Passes.__init__

    def recording(self: Any, *given: Any, **more: Any) -> None:
        begin(self, *given, **more)
        self._records = True

    monkeypatch.setattr(passes, "_Recording", Recording)
    monkeypatch.setattr(passes.Passes, "__init__", recording)
    result = counted_run(most)
    assert result.costs.n_retried > 800  # the passes of an iteration


# -------------------------------------------------------------------- runs that go on


@pytest.mark.parametrize(("first", "then"), [(8000, 12_000), (70_000, 90_000)])
def test_an_update_goes_on_to_a_larger_budget_with_the_step_that_it_had(
    first: int, then: int, tmp_path: Path
) -> None:
    saved: dict[str, Any] = {"checkpoint": tmp_path / "run", "resume": True}
    reports = [updated(max_forwards=most, **saved)[1] for most in (first, then)]
    results: list[Any] = [report.result for report in reports]
    steps = [result.method.step_size for result in results]
    assert steps[0] == steps[1]
    assert first < reports[1].n_forwards <= then
    with pytest.raises(dszog.CheckpointError, match=r"differs in: step_size \("):
        updated(max_forwards=then, options={"step_size": 1.0}, **saved)


def test_other_settings_of_an_optimiser_are_named(tmp_path: Path) -> None:
    more: dict[str, Any] = {"gradients": True, "max_forwards": 4000}
    more |= {"checkpoint": tmp_path / "run", "resume": True}

    def adam(net: Any, rate: float = 1e-3, **others: Any) -> Any:
        return torch.optim.Adam(net.parameters(), rate, **others)

    assert updated(optimizer=adam, **more)[0] == updated(optimizer=adam, **more)[0]
    said = r"lr \(0.001 there, 0.1 here\); optimizer weight_decay \(0 there, 0.5 here\)"
    with pytest.raises(dszog.CheckpointError, match=said):
        updated(optimizer=partial(adam, rate=1e-1, weight_decay=0.5), **more)
    said = r"differs in: optimizer \(Adam there, SGD here\). Load"
    with pytest.raises(dszog.CheckpointError, match=said):
        updated(optimizer=lambda net: torch.optim.SGD(net.parameters()), **more)


def test_a_run_that_goes_on_with_other_params_says_which(tmp_path: Path) -> None:
    saved: dict[str, Any] = {"checkpoint": tmp_path / "run", "max_forwards": 4000}
    updated(**saved)
    said = r"`params` names others: '0.bias' \(40,\) there, '0.weight' \(40, 4\) there"
    with pytest.raises(dszog.CheckpointError, match=said):
        updated(params=["2."], resume=True, **saved)


# -------------------------------------------------------------- where nothing is gained


@pytest.mark.parametrize("rate", [1.0, 100.0])
def test_an_update_that_ran_away_gives_the_start_back(rate: float) -> None:
    digest, report = updated(
        optimizer=lambda net: torch.optim.Adam(net.parameters(), rate), gradients=True
    )
    assert digest == digest_of(trained()[0].parameters())
    assert not len(report.regressions)
    assert not report.kept_is_worse.any()
    assert report.after == report.before
    assert "no better than the start" in report.note
    assert "Lower the rate" in report.note


def test_many_regressions_for_little_that_is_new_give_the_start_back() -> None:
    module = sys.modules["dszog.torch.update"]
    scores = module.Scores

    def why(accuracy: float, loss: float, share: float) -> str:
        before = scores(new_loss=2.0, new_accuracy=0.5, kept_accuracy=1.0)
        after = scores(new_loss=loss, new_accuracy=accuracy, kept_accuracy=0.9)
        return str(module._why_worse(before, after, share))

    nan = float("nan")
    assert "11.00% of the kept examples had got worse" in why(0.6, 1.0, 0.11)
    assert not why(0.6, 1.0, 0.09)
    assert not why(0.7, 1.0, 0.11)
    assert not why(0.6, 3.0, 0.0)
    assert not why(0.5, 1.0, 0.0)
    assert not why(nan, 1.0, 0.05)
    assert "a loss of 2.1" in why(nan, 2.1, 0.0)
    assert "40.00% of them right" in why(0.4, 1.0, 0.01)


@both_ways
def test_a_callback_that_raises_what_ctrl_c_does_ends_a_run_alike(
    gradients: bool,
) -> None:
    def stop(progress: Any) -> None:
        raise KeyboardInterrupt

    more: dict[str, Any] = {"gradients": gradients, "max_forwards": 2e4}
    report = updated(callback=stop, **more)[1]
    assert "The run was interrupted" in str(report)
    if not gradients:
        assert "ended before there could be one" in report.note
        assert "Raise max_forwards" not in report.note


def zero_one(outputs: Any, targets: Any) -> Any:
    return (outputs.argmax(1) != targets).float()


def test_losses_that_are_flat_are_told_and_no_cause_for_a_refusal() -> None:
    report = updated(loss=zero_one, max_forwards=8000)[1]
    assert "The losses are flat" in report.note
    assert "gradients=True" not in report.note
    assert "flat" not in updated(max_forwards=8000)[1].note
    inputs, targets = data()
    net = network()
    flat = dt.Losses(lambda i: zero_one(net(inputs[i]), targets[i]), 9)
    limits = dt.Constraints(lambda j: zero_one(net(inputs[j]), targets[j]) - 2.0, 9)
    more: dict[str, Any] = {"max_iterations": 3, "options": {"radius": 1e-9}}
    assert dt.minimize(net, flat, limits, seed=0, **more).are_losses_flat  # not blind


def test_functions_of_another_network_are_refused() -> None:
    net, (loss, limit) = network(), looking(network(), 1.3)
    said = "does the closure use this network"
    with refused(net, said, dszog.EvaluationError):
        dt.minimize(net, *functions(network()), seed=0)
    with refused(net, said, dszog.EvaluationError):
        loop(net, lambda i, j: (loss(i), limit(j)))
    adam = torch.optim.Adam(net.parameters())
    with refused(net, "no parameter of the optimiser got a", dszog.InputError):
        loop(net, lambda i, j: (loss(i), limit(j)), optimizer=adam)


NOISE = torch.randn(9999, 3, generator=torch.Generator().manual_seed(0))


def by_place(around: Any, x: Any) -> Any:
    """Add noise that goes by the place in the batch."""
    return around.net(x) + 3.0 * NOISE[: len(x)]


def seeded(around: Any, x: Any) -> Any:
    """Have dropout that is the same in each call."""
    torch.manual_seed(0)
    return noisy(0.3)(around, x)


@both_ways
@pytest.mark.parametrize("call", [by_place, seeded])
def test_values_that_go_by_the_place_in_a_batch_are_refused(
    call: Any, gradients: bool
) -> None:
    with pytest.raises(dszog.InputError, match=r"another order: .* drawn in forward"):
        updated(lambda net: Around(net, call), gradients=gradients)


def test_a_penalty_is_advised_as_it_is_given() -> None:
    net = network()
    result = dt.minimize(net, *functions(net, 0.2), max_iterations=5, seed=0)
    assert "options={'penalty': " in result.message


def test_what_training_mode_became_names_what_is_there() -> None:
    notes = []
    for layer in (torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(40)):
        net, new, keep = trained()
        net.insert(1, layer)
        report = dt.update(net.train(), new, keep, max_forwards=5000)
        assert report.note in str(report)
        assert net.training
        notes.append(report.note)
    assert "evaluation mode: dropout off (1 of its layers)." in notes[0]
    assert "mode: batch norm as it has learned (1 of its" in notes[1]
    assert updated(max_forwards=5000)[1].note == ""  # in evaluation mode
