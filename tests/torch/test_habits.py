"""What those who know PyTorch do out of habit: it works, or the network stays whole."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

import dszog  # noqa: E402
import dszog.torch as dt  # noqa: E402
from dszog.methods.named import PointName  # noqa: E402
from dszog.torch.space import digest_of  # noqa: E402
from tests.torch.helpers import (  # noqa: E402
    Around,
    Pairs,
    both_ways,
    data,
    failing_after,
    looking,
    loop,
    network,
    one_loss,
    refused,
    trained,
    updated,
)


@both_ways
def test_weights_can_be_given_as_an_iterator_or_a_layer(gradients: bool) -> None:
    found = []
    for params in (
        lambda net: ["2."],
        lambda net: net[2],
        lambda net: net[2].parameters(),
        lambda net: (one for one in [net[2].weight, "2.bias"]),
    ):
        more: dict[str, Any] = {"gradients": gradients, "max_forwards": 5000}
        digest, report = updated(params=params, **more)
        found.append((digest, report.n_forwards))
    assert len(set(found)) == 1


def test_an_optimiser_that_holds_more_moves_only_what_may_change() -> None:
    net, new, keep = trained()
    for one in net.parameters():
        one.grad = torch.ones_like(one)  # left over from training
    frozen, moved = net[0].weight.clone(), net[2].weight.clone()
    adam = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)
    more: dict[str, Any] = {"gradients": True, "optimizer": adam, "max_forwards": 5000}
    dt.update(net, new, keep, params=["2."], **more)
    assert torch.equal(net[0].weight, frozen)
    assert not torch.equal(net[2].weight, moved)
    assert all(one.grad is None and one.requires_grad for one in net.parameters())


def test_gradients_are_made_where_they_were_switched_off() -> None:
    with torch.no_grad():
        net, new, keep = (torch.enable_grad()(trained))()
        dt.update(net, new, keep, gradients=True, max_forwards=2e4)
    assert digest_of(net.parameters()) == updated(gradients=True)[0]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
def test_weights_that_are_changed_between_steps_are_followed(kind: Any) -> None:
    net = network(kind)
    loss, limit = looking(net, 1.5)

    def closure(i: Any, j: Any) -> Any:
        return loss(i), limit(j)

    opt = dt.DSZOG(net, n_losses=120, n_constraints=120, n_iterations=20)
    for _ in range(5):
        opt.step(closure)
        with torch.no_grad():
            net[0].weight.zero_()
    assert net[2].weight.ne(network(kind)[2].weight).float().mean() > 0.5
    opt.step(closure)
    assert 0.0 < net[0].weight.abs().max() < 0.05


def test_small_moves_in_bfloat16_are_not_lost_between_steps() -> None:
    net = network(torch.bfloat16)
    loss, limit = looking(net, 1.5)
    opt, _ = loop(net, n_steps=3, step_size=1e-4)
    with pytest.raises(dszog.EvaluationError, match="as they were before this step"):
        opt.step(lambda i, j: (loss(i) / 0.0, limit(j)))
    before = opt.space.tensors()
    opt.space.adopt()  # as the next step begins: nobody has changed anything
    for name, one in opt.space.tensors().items():
        assert torch.equal(one, before[name])
        assert (one != net.get_parameter(name)).float().mean() > 0.9


class Recurrent(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Notes in which mode its recurrent layer was when gradients were made."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.LSTM(1, 8, 2, dropout=0.3, batch_first=True)
        self.last = torch.nn.Linear(8, 3)
        self.seen: set[Any] = set()

    def forward(self, x: Any) -> Any:
        self.seen.add((self.layer.training, self.layer.dropout, self.last.training))
        return self.last(self.layer(x.unsqueeze(-1))[0][:, -1])


@both_ways
def test_a_recurrent_network_is_updated_without_dropout(gradients: bool) -> None:
    net, (inputs, targets) = Recurrent(), data(300)
    more: dict[str, Any] = {"gradients": gradients, "max_forwards": 5000}
    report = dt.update(net, (inputs[:99], targets[:99]), (inputs, targets), **more)
    assert "evaluation mode: dropout off" in report.note
    # cuDNN makes gradients of it in training mode alone.
    assert net.seen == {(True, 0.0, False) if gradients else (False, 0.3, False)}
    assert (net.layer.training, net.layer.dropout) == (True, 0.3)


def test_groups_are_named_as_they_are_whatever_holds_them() -> None:
    names = []
    for wrap in (torch.tensor, list):
        groups = wrap([10 * (i % 2) + 2 for i in range(250)])
        names.append(updated(groups=groups, max_forwards=5000)[1].groups)
    assert names[0] == names[1]
    assert list(names[0]) == ["2", "12"]


def test_an_example_that_ties_is_right_neither_as_new_nor_as_kept() -> None:
    net = torch.nn.Linear(4, 3)
    net.weight.data, net.bias.data = torch.zeros(3, 4), torch.zeros(3)
    net.weight.data[2] = 1.0  # the last class leads where inputs are positive
    new = -torch.ones(40, 4), torch.zeros(40).long()
    keep = torch.ones(40, 4), torch.full((40,), 2)
    report = dt.update(net, new, keep, max_forwards=5000)
    assert (report.before.new_accuracy, report.before.kept_accuracy) == (0.0, 1.0)


def test_a_report_with_regressions_says_what_to_do() -> None:
    report = updated(rule="loss")[1]
    assert len(report.regressions)
    assert "more passes or gradients=True or more slack may mend that." in report.note
    note = updated(rule="loss", gradients=True)[1].note
    assert "worse: more passes or more slack" in note
    assert "max_forwards is used" in str(report)


def test_a_budget_below_what_a_saved_run_has_used_is_told(tmp_path: Path) -> None:
    saved: dict[str, Any] = {"checkpoint": tmp_path / "run", "resume": True}
    report = updated(max_forwards=8000, **saved)[1]
    assert updated(max_forwards=2e4, **saved)[1].result.nit > report.result.nit
    with pytest.raises(dszog.InputError, match="less than the saved run has used"):
        updated(max_forwards=8000, **saved)


@both_ways
def test_a_dataset_that_fails_later_leaves_the_network_as_it_was(
    gradients: bool,
) -> None:
    net, new, keep = trained()
    said = "of `new` cannot be read: OSError: no disk.*as they were"
    fading = Pairs(new, failing_after(3000, lambda i, pair: pair, OSError("no disk")))
    with refused(net, said) as raised:
        dt.update(net, fading, keep, gradients=gradients, max_forwards=1e5)
    assert "x = " not in str(raised.value)  # the name of a point tells nobody anything
    with refused(net, "nan at iteration.* in float32", dszog.EvaluationError):
        dt.update(net, new, keep, failing_after(20, one_loss), max_forwards=2e4)


def small(net: Any, room: int) -> Any:
    """Return a network that has memory for some examples at a time."""

    def call(around: Any, x: Any) -> Any:
        if len(x) > room:
            raise torch.OutOfMemoryError("no room")
        return around.net(x)

    return Around(net, call)


@both_ways
def test_smaller_batches_are_all_that_little_memory_takes(gradients: bool) -> None:
    net, new, keep = trained()
    more: dict[str, Any] = {"gradients": gradients}
    said = "memory.*'dual_batch': 64.*resume=True. The weights are as they were"
    with refused(net, said, dszog.EvaluationError):
        dt.update(small(net, 64), new, keep, **more, max_forwards=2e4)
    more["options"] = {"loss_batch": 16, "constraint_batch": 8, "dual_batch": 16}
    found = [updated(partial(small, room=n), **more)[1] for n in (64, 999)]
    assert found[0].after.new_loss == pytest.approx(found[1].after.new_loss, rel=1e-4)
    assert found[0].before.new_loss == pytest.approx(found[1].before.new_loss)
    assert found[0].n_forwards == found[1].n_forwards


@both_ways
def test_an_update_in_a_block_of_autocast_looks_at_the_weights_as_they_are(
    gradients: bool,
) -> None:
    more: dict[str, Any] = {"gradients": gradients, "max_forwards": 5000}
    net, new, keep = trained()
    with torch.autocast("cpu", torch.bfloat16):
        net(new[0])  # autocast keeps the weights of this pass
        dt.update(net, new, keep, **more)
        assert torch.is_autocast_cache_enabled()
        after = net(new[0])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(net(new[0]), after)
    other, new, keep = trained()
    dt.update(other, new, keep, autocast=torch.bfloat16, **more)
    assert digest_of(net.parameters()) == digest_of(other.parameters())


@both_ways
def test_an_update_tells_how_far_it_is_and_a_callback_ends_it(
    gradients: bool, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr("dszog.show.progress.Lines.every", 0.0)
    seen: list[Any] = []

    def stop(progress: Any) -> None:
        seen.append(progress)
        if progress.iteration == 7:
            raise StopIteration

    more: dict[str, Any] = {"gradients": gradients, "progress": True}
    report = updated(**more, callback=stop)[1]
    assert [one.iteration for one in seen] == [*range(gradients, 8)]  # 0: a first look
    assert np.isfinite(seen[-1].sampled_objective)
    assert seen[-1].n_queries < report.n_forwards < 2e4
    assert capsys.readouterr().err.count("iteration") >= 6


@pytest.mark.parametrize("stop", [StopIteration, signal.SIGINT])
def test_an_update_with_gradients_that_was_stopped_anywhere_goes_on_to_the_same_bits(
    stop: Any, tmp_path: Path
) -> None:
    def after_six(progress: Any) -> None:
        if progress.iteration == 6:  # between looks at constraints
            if stop is StopIteration:
                raise stop
            signal.raise_signal(stop)

    more: dict[str, Any] = {"gradients": True, "checkpoint": tmp_path / "run"}
    note = updated(callback=after_six, **more)[1].note
    how = "A callback ended the run.", "The run was interrupted."
    assert note == how[stop is not StopIteration]
    assert updated(resume=True, **more)[0] == updated(gradients=True)[0]


@both_ways
def test_an_update_ends_in_time_and_learns_to_its_end(
    gradients: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    clock = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: next(clock) / 100)
    more: dict[str, Any] = {"gradients": gradients, "checkpoint": tmp_path / "run"}
    more["max_forwards"] = 1e8
    report = updated(max_time=2.0, **more)[1]
    assert "The time is up" in str(report)
    assert next(clock) < 230
    again = updated(max_time=4.0, resume=True, **more)[1]
    assert 1.5 < again.n_forwards / report.n_forwards < 3.0


def test_ctrl_c_waits_for_the_end_of_a_move(monkeypatch: Any) -> None:
    spaces = [dt.ModuleSpace(network(), seed=1) for _ in range(2)]
    name = PointName(1, 0, 0, 0, (0.1,) * 5)
    spaces[0].go_to(name)
    move = spaces[1]._move

    def interrupted(*given: Any) -> None:
        move(*given)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(spaces[1], "_move", interrupted)
    with pytest.raises(KeyboardInterrupt):
        spaces[1].go_to(name)
    spaces[1].go_to(name)  # it is there
    assert spaces[0].digest() == spaces[1].digest()


def test_a_device_without_float64_is_refused(monkeypatch: Any) -> None:
    monkeypatch.setattr("dszog.torch.space.NO_FLOAT64", {"cpu"})
    with pytest.raises(dszog.InputError, match="on 'cpu', where PyTorch has no float"):
        updated()


def test_the_tool_that_compares_on_devices_runs() -> None:
    pytest.importorskip("sklearn")
    tool = Path(__file__).parents[2] / "tools" / "gpu.py"
    given = ["update", "--forwards", "3e4", "--device", "cpu", "--factor", "2"]
    done = subprocess.run([sys.executable, tool, *given], capture_output=True)
    found = json.loads(done.stdout)
    assert found["finite"]
    assert 2e4 < found["passes"] <= 3e4
