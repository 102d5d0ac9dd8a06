"""Networks as variables: nothing drifts, runs come back bit for bit, wrong input."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

import dszog  # noqa: E402
import dszog.torch as dt  # noqa: E402
from dszog.contract.signs import Signs  # noqa: E402
from dszog.methods.named import RISE, NamedDSZOG, PointName  # noqa: E402
from dszog.torch import signs as torch_signs  # noqa: E402
from dszog.torch.first_order import GradientSteps  # noqa: E402
from dszog.torch.moves import MoveLog  # noqa: E402
from dszog.torch.space import digest_of  # noqa: E402
from tests.torch.helpers import (  # noqa: E402
    Around,
    Pairs,
    augmented,
    both_ways,
    data,
    failing_after,
    functions,
    looking,
    loop,
    network,
    noisy,
    one_loss,
    refused,
    run,
    trained,
    updated,
)

KINDS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.mark.parametrize("numbers", [(0,), (0, 1, 2, 3, 4), tuple(range(11))])
@pytest.mark.parametrize("along", ["_on_cpu", "_elsewhere"])
def test_signs_are_those_of_numpy_on_every_path(
    numbers: tuple[int, ...], along: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(torch_signs, "_on_cpu", getattr(torch_signs, along))
    signs = Signs(2**63 + 5, 2**33 + 7, numbers, 700, 1.0)
    amounts = tuple(np.linspace(-1.0, 2.0, len(numbers)).tolist())
    x = torch.linspace(0, 1, 700, dtype=torch.float64)
    cut = torch.nn.ParameterList([x[:256].clone(), x[256:].clone()])
    space = dt.ModuleSpace(cut, seed=signs.seed)
    space.go_to(PointName(1, signs.iteration, 0, 0, amounts))
    moved = torch.cat([one.detach() for one in cut]).numpy()
    np.testing.assert_array_equal(moved, signs.along(x.numpy(), amounts))


@each_kind
def test_a_thousand_perturbed_looks_leave_every_bit(kind: Any) -> None:
    net = network(kind)
    before = digest_of(net.parameters())
    space = dt.ModuleSpace(net, seed=3)
    seen = set()
    for n in range(1000):
        with space.at(PointName(0, 0, n % 5 + 1, n // 5, (0.0,) * 5).vector):
            seen.add(tuple(net[0].weight.view(-1)[:40].tolist()))
    space.restore()
    assert digest_of(net.parameters()) == before
    assert len(seen) == 1000


@each_kind
def test_the_same_moves_give_the_same_weights_and_small_ones_are_not_lost(
    kind: Any,
) -> None:
    nets = network(kind), network(kind)
    for net in nets:
        space = dt.ModuleSpace(net, seed=3)
        for t in range(1, 400):
            space.go_to(PointName(t, 0, 0, 0, (1e-4, -1e-5)))
    assert digest_of(nets[0].parameters()) == digest_of(nets[1].parameters())
    start, end = (next(n.parameters()).double() for n in (network(kind), nets[0]))
    moved = (start - end).abs().mean()
    assert 0.035 < moved < 0.045  # 399 moves of 1e-4, each below bfloat16's rounding


@pytest.mark.parametrize("n", [5, 200])  # in the looks before the run, and in it
def test_an_exception_in_a_function_leaves_the_weights_as_they_were(n: int) -> None:
    net = network()
    losses, limits = functions(net)
    error, moved = RuntimeError("no way"), set()
    limits = dt.Constraints(failing_after(n, limits.values, error), 120)
    more: dict[str, Any] = {"max_iterations": 100, "seed": 0}
    more["callback"] = lambda _: moved.add(digest_of(net.parameters()))
    kind = RuntimeError if n == 5 else dszog.EvaluationError
    with refused(net, "no way" if n == 5 else "no way.*as they were", kind):
        dt.minimize(net, losses, limits, **more)
    assert len(moved) > 3 or n == 5


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), ""),
        (dszog.EvaluationError("No."), "No. The weights are as they were."),
        (None, "Lower the rate"),  # the optimiser runs away
    ],
)
def test_an_exception_with_gradients_leaves_network_and_buffers(
    error: Any, said: Any
) -> None:
    net, new, keep = trained()
    net.register_buffer("seen", torch.zeros(1))
    before, calls = digest_of(net.parameters()), itertools.count()

    def loss(outputs: Any, targets: Any) -> Any:
        net.seen += next(calls) > 5  # not before the first steps: it is refused
        if error is not None and net.seen:
            assert digest_of(net.parameters()) != before
            raise error
        return one_loss(outputs, targets)

    sgd = torch.optim.SGD(net.parameters(), lr=1e30 if error is None else 0.1)
    more: dict[str, Any] = {"gradients": True, "optimizer": sgd, "max_forwards": 2500}
    with refused(net, said, type(error or dszog.EvaluationError())):
        dt.update(net, new, keep, loss, **more)
    assert net.seen == 0


def test_a_run_improves_the_network_and_says_so_by_fresh_values() -> None:
    net = network()
    losses, limits = functions(net)
    before = losses.at(torch.arange(120)).mean().item()
    result = run(net, max_iterations=400)
    after = losses.at(torch.arange(120)).mean().item()
    assert after < before - 0.05
    assert result.fun == pytest.approx(after, rel=1e-5)
    worst = limits.at(torch.arange(120)).max().clamp_min(0.0).item()
    assert result.maxcv == pytest.approx(worst, abs=1e-5)
    assert result.certificate.stationarity is None
    assert f"weights of the network, digest {result.weights_digest[:9]}" in str(result)


def test_two_runs_are_one_and_another_seed_is_another() -> None:
    found = [run(network(), seed=seed) for seed in (1, 1, 2)]
    assert found[0].weights_digest == found[1].weights_digest
    assert found[0].digest == found[1].digest != found[2].digest


KILLED = """
import os, sys, torch
from tests.torch.helpers import network, run
def die(progress):
    if progress.iteration == int(sys.argv[2]):
        os._exit(9)
result = run(network(), checkpoint=sys.argv[1], resume=True, callback=die)
print(result.weights_digest, result.digest)
"""


def test_killed_and_resumed_a_run_comes_to_the_same_weights(tmp_path: Path) -> None:
    straight = run(network())
    code = [sys.executable, "-c", KILLED, str(tmp_path / "run")]
    for n_done in (12, 23):  # iterations, of which a resumed run replays the first
        assert subprocess.run([*code, str(n_done)], check=False).returncode == 9
    done = subprocess.run([*code, "-1"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [straight.weights_digest, straight.digest]


def test_moves_are_replayed_from_a_snapshot_without_a_forward_pass(
    tmp_path: Path,
) -> None:
    net = network()
    space = dt.ModuleSpace(net, seed=3)
    space.log = MoveLog(tmp_path / "w")
    names = [PointName(t, t - 1, 0, 0, (0.01 * t, -0.02)) for t in range(1, 20)]
    for name in names:
        space.go_to(name)
        space.log.note(name)
        if name.n_moves == 7:
            space.log.write_snapshot(7, space.tensors())
    space.log.close()
    end = digest_of(net.parameters())
    other = network()
    again = dt.ModuleSpace(other, seed=3)
    again.log = MoveLog(tmp_path / "w")
    again.go_to(names[-1])
    assert digest_of(other.parameters()) == end


def test_points_of_names_are_halfway_back_after_a_step_that_failed() -> None:
    method = NamedDSZOG(n_variables=10, n_directions=2)
    state = method.init(
        np.zeros(6), dszog.Problem(np.sum, (), 6, bounds=[(0, 1)] * 6).size, 0
    )
    name = PointName(4, 7, 0, 0, (1.0, -2.0))
    back = replace(state, x=name.vector).back_to(state)
    assert PointName.of(back.x) == PointName(5, 7, 0, 0, (-0.5, 1.0))


@pytest.mark.parametrize("decay", ["linear", "sqrt"])
def test_the_penalty_rises_over_a_run_whose_length_is_known(decay: Any) -> None:
    """Losses fall along one direction, constraints along the other."""
    method = NamedDSZOG(
        n_variables=10**6,
        n_directions=2,
        normalised=True,
        directions="rademacher",
        penalty=1.0,
        step_decay=decay,
        horizon=100,
        start="sampled",
    )
    problem = dszog.Problem(np.sum, dszog.Constraints(lambda x, j: x, 1), 6)
    first = method.init(np.zeros(6), problem.size, 0, (np.zeros(1, int), np.ones(1)))
    ratios = []
    for iteration in (0, 100):
        state = replace(first, iteration=iteration)
        queries = method.ask(state)
        around = dszog.contract.Reply(
            np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [1.0], [2.0]])
        )
        dual = dszog.contract.Reply(np.empty((1, 0)), np.ones((1, 1)))
        moved, _ = method.tell(state, queries, [around, dual])
        one, other = PointName.of(moved.x).amounts
        ratios.append(other / one)
    assert ratios[0] == pytest.approx(3.0)
    assert ratios[1] == pytest.approx(3.0 * (RISE if decay == "linear" else 1.0))


def tied() -> Any:
    net = network().append(torch.nn.Linear(3, 3)).append(torch.nn.Linear(3, 3))
    net[4].weight = net[3].weight
    return net


def with_buffers() -> Any:
    net = network()
    net.insert(1, torch.nn.BatchNorm1d(40))
    net.insert(1, torch.nn.Dropout(0.5))
    return net.train()


class Attentive(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Attention uses the weights of its last layer without calling it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(1, 8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        x = self.first(x.unsqueeze(-1))
        return self.last(self.attention(x, x, x, need_weights=False)[0].mean(1))


def frozen() -> Any:
    net = network()
    net[0].requires_grad_(False)
    return net


@pytest.mark.parametrize("make", [tied, with_buffers, Attentive, frozen])
def test_networks_of_all_sorts_are_moved_where_they_may_be(make: Any) -> None:
    net = make()
    modes = [module.training for module in net.modules()]
    buffers = digest_of(net.buffers())
    fixed = {n: p.clone() for n, p in net.named_parameters() if not p.requires_grad}
    before = {n: p.detach().clone() for n, p in net.named_parameters()}
    moved = set()

    def look(progress: Any) -> None:  # the result may be the start, all the same
        for name, weights in net.named_parameters():
            if not torch.equal(weights, before[name]):
                moved.add(name)

    run(net, max_iterations=10, callback=look)
    assert [module.training for module in net.modules()] == modes
    assert digest_of(net.buffers()) == buffers
    assert all(
        torch.equal(dict(net.named_parameters())[n], p) for n, p in fixed.items()
    )
    assert moved == before.keys() - fixed.keys()


def reaching() -> Any:
    """Return a layer whose weights are used outside of its call, too."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3)
    return Around(layer, lambda it, x: it.net(x) + (x @ it.net.weight.T).sin())


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("make", "has_layers"),
    [
        *((network, True), (tied, True), (Attentive, True), (with_buffers, True)),
        *((frozen, True), (reaching, False)),
    ],
)
def test_a_large_network_is_perturbed_by_layers_to_the_same_run(
    make: Any, has_layers: bool, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for large in (10**9, 1):
        monkeypatch.setattr("dszog.torch.space.LARGE", large)
        net = make().to(kind)
        seen: list[int] = []

        def look(progress: Any, net: Any = net, seen: Any = seen) -> None:
            seen.append(sum(bool(m._forward_pre_hooks) for m in net.modules()))

        result = run(net, max_iterations=10, callback=look)
        found.append((result.digest, digest_of(net.parameters())))
        assert (seen[-1] > 0) == (large == 1 and has_layers)
        assert not any(m._forward_pre_hooks for m in net.modules())
    assert found[0] == found[1]


def test_only_the_weights_that_are_named_change() -> None:
    net, before = network(), network()
    run(net, params=["2."], max_iterations=5)
    assert torch.equal(net[0].weight, before[0].weight)
    assert not torch.equal(net[2].weight, before[2].weight)


@both_ways
def test_a_loop_of_ones_own_lowers_the_losses(gradients: bool) -> None:
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1) if gradients else None
    more: dict[str, Any] = {"n_iterations": 200, "optimizer": optimizer}
    _, infos = loop(net, n_steps=200, **more)
    first, last = (
        np.mean([info.sampled_objective for info in part])
        for part in (infos[:20], infos[-20:])
    )
    assert last < first - 0.03


@both_ways
@pytest.mark.parametrize("rule", ["right", "loss"])
def test_an_update_learns_and_counts_what_got_worse(gradients: bool, rule: Any) -> None:
    net, new, keep = trained()
    more: dict[str, Any] = {"groups": (keep[1] > 0).tolist(), "max_forwards": 1e5}
    slack = 0.05 if rule == "loss" else 0.0
    report = dt.update(
        net, new, keep, rule=rule, slack=slack, gradients=gradients, **more
    )
    assert report.after.new_loss < report.before.new_loss
    assert report.n_forwards <= 1e5
    assert sum(n for n, _ in report.groups.values()) == report.n_kept
    assert sum(bad for _, bad in report.groups.values()) == len(report.regressions)
    assert len(report.kept_values[1]) == report.n_kept
    assert report.kept_is_worse.sum() == len(report.regressions)
    if rule == "right":
        old, _, _ = trained()
        right = (old(keep[0]).argmax(1) == keep[1]) & (
            net(keep[0]).argmax(1) != keep[1]
        )
        np.testing.assert_array_equal(report.regressions, right.nonzero()[:, 0])
        of = sys.modules["dszog.torch.update"]._Network(*[None] * 4, rule)
        bound, kept = of.kept(torch.tensor([-5.0, 1.0, -0.01]), 0.0)
        assert (kept.tolist(), bound.tolist()) == ([0, 2], [pytest.approx(0.1)] * 2)
    assert "kept examples got worse" in str(report)


@both_ways
def test_a_loss_may_take_whatever_the_network_returns(gradients: bool) -> None:
    def wrap(net: Any) -> Any:
        return Around(net, lambda it, x: {"logits": it.net(x)})

    more: dict[str, Any] = {"rule": "loss", "gradients": gradients}
    report = updated(wrap, loss=lambda o, t: one_loss(o["logits"], t), **more)[1]
    plain = updated(**more)[1]
    assert report.after.new_loss == pytest.approx(plain.after.new_loss, rel=1e-3)
    assert report.after.new_loss < report.before.new_loss
    with pytest.raises(dszog.InputTypeError, match="with a loss that takes"):
        updated(wrap, rule="loss")


@pytest.mark.parametrize("rule", ["right", "loss"])
def test_a_picture_has_every_kept_example_that_got_worse(rule: Any) -> None:
    pytest.importorskip("matplotlib")
    report = updated(rule=rule, max_forwards=1e4)[1]
    worse = np.zeros(report.n_kept, bool)
    worse[::7] = True
    left, right = replace(report, kept_is_worse=worse).plot().axes
    drawn = [len(dots.get_offsets()) for dots in right.collections]
    assert drawn == [report.n_kept - worse.sum(), worse.sum()]
    assert f"{worse.sum()} got worse" in right.get_title(loc="left")
    assert len(left.patches) == (4 if rule == "right" else 2)
    assert "3 more of `keep` were wrong" in str(replace(report, n_wrong_before=3))
    assert "nan" not in str(report)


def test_a_dataset_its_tensors_and_any_whole_labels_give_the_same_update() -> None:
    digests = []
    for wrap, kind in ((Pairs, torch.int32), (tuple, torch.uint8), (tuple, torch.long)):
        net, new, keep = trained()
        keep = keep[0], keep[1].to(kind)
        dt.update(net, wrap(new), wrap(keep), max_forwards=2e4)
        digests.append(digest_of(net.parameters()))
    assert len(set(digests)) == 1


def lossy(value: Any) -> Any:
    return {"losses": dt.Losses(lambda i: value(i.double()), 120)}


X, Y = data()
# What is other than in an accepted call of `minimize`; some is made of the network.
MINIMIZE: dict[str, Any] = {
    "not their mean: reduction='none'": lossy(torch.mean),
    "in float32": lossy(lambda i: i * torch.nan),
    "must be a tensor, got float": lossy(lambda i: 1.0),
    r"values.flatten\(1\).mean\(1\)": lossy(lambda i: i[:, None]),
    r"Losses: .*shapes: outputs.squeeze\(1\)": lossy(lambda i: i[:, None] - i),
    r"Make them: dt.Losses\(f, n\)": {"losses": torch.mean},
    "Pass model.module": lambda n: {"model": torch.nn.DataParallel(n)},
    "a DataParallel spreads": lambda n: {
        "model": torch.nn.Sequential(torch.nn.DataParallel(n))
    },
    "must be a torch.nn.Module": {"model": 3},
    "without trainable": lambda n: {"model": n.requires_grad_(False)},
    "'weight' has no shape yet": {"model": torch.nn.LazyLinear(3)},
    r"one device, got \['cpu', 'meta'\]": lambda n: {
        "model": n[0].to("meta").requires_grad_(False) and n
    },
    "weight is called 'head'": {"params": ["head"]},
    "got int, which is none of them": {"params": 5},
    "got Parameter, which is none": lambda n: {
        "params": [n[0].weight, network()[0].weight]
    },
    "or `params` without trainable": {"params": []},
    "no argument 'evaluator'": {"evaluator": "processes"},
    "must be a folder, got .* a file": {"checkpoint": __file__},
    "mean 'step_size'": {"options": {"stepsize": 1}},
    "`options` must be a dict": {"options": ["step_size"]},
    "option 'lr'. There are: .* step_size": {"options": {"lr": 1}},
    "minimize: `callback` must be a function, got 3": {"callback": [3]},
    "take 256 queries, got max_queries=200": {"max_queries": 200},
}
OTHERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "buffer 'total'": lambda n, f, g: run(adding(n)),
    "`m` must be at least 1": lambda n, f, g: dt.Constraints(f, 0),
    "`closure` must take 2": lambda n, f, g: loop(n, lambda: f(0)),
    "a list of int": lambda n, f, g: loop(5, print),
    "a list of dict": lambda n, f, g: loop([{"params": n.parameters()}], print),
    "`n_losses` must be at least 1": lambda n, f, g: loop(n, n_losses=0),
    "`n_iterations` must be at least 1": lambda n, f, g: loop(n, n_iterations=0),
    "DSZOG: .* SGD with none of them": lambda n, f, g: loop(
        n, optimizer=sgd(network())
    ),
    "two tensors, got Tensor": lambda n, f, g: loop(n, lambda i, j: f(i)),
    "closure's losses: .* got float": lambda n, f, g: loop(n, lambda i, j: (1.0, j)),
    "losses: .*reduction='none'": lambda n, f, g: loop(
        n, lambda i, j: (f(i).mean(), g(j))
    ),
    "closure gave values that are not finite": lambda n, f, g: loop(
        n, lambda i, j: (f(i), j / 0.0)
    ),
    "the network gives values that are not finite": lambda n, f, g: loop(
        n, lambda i, j: (f(i) * torch.nan, g(j)), optimizer=sgd(n)
    ),
    r"must not call backward\(\)": lambda n, f, g: loop(
        n, lambda i, j: (f(i).mean().backward(), g(j))
    ),
    "return the values alone, it must not": lambda n, f, g: loop(
        n, lambda i, j: (f(i).mean().backward(), g(j)), optimizer=sgd(n)
    ),
    r"training mode: .* Call model.eval\(\)": lambda n, f, g: loop(
        n.append(torch.nn.Dropout(0.1))
    ),
}
# What is other than in an accepted call of `update`; some is made of the network.
UPDATES: dict[str, Any] = {
    "736 forward passes": {"max_forwards": 10},
    "`slack` goes with rule='loss'": {"slack": 1},
    "`max_time` must be positive": {"max_time": 0},
    "`resume` needs the folder": {"resume": True},
    "`seed` must be a whole number, got 'a'": {"seed": "a"},
    "update: `callback` must be a function, got 3": {"callback": 3},
    "'max_forward'. Did you mean 'max_forwards'": {"max_forward": 1e4},
    "one for each of 120": {"groups": [1]},
    "`loss` must take 2 arguments": {"loss": lambda outputs: outputs},
    "`loss`: .* not their mean": {"loss": torch.nn.functional.cross_entropy},
    "must be a torch.dtype, got 'bf16'": {"autocast": "bf16"},
    "`new` is empty": {"new": data(0)},
    "a stream will not do": {"new": iter([1])},
    "got Stream. .* a stream will not do": lambda n: {"new": Stream()},
    "pass .dataset": {"new": torch.utils.data.DataLoader(Pairs((X, Y)))},
    "nothing to keep": lambda n: {"keep": (X, (n(X).argmax(1) + 1) % 3)},
    "and 7 targets": {"new": (X, Y[:7])},
    "`new` is on the device 'meta'": {"new": (X.to("meta"), Y)},
    r"example 3 of `keep` \(and 1 more: \[5\]\) .* holds nan": {
        "keep": (X.index_fill(0, torch.tensor([3, 5]), torch.nan), Y)
    },
    "example 3 of `new` .* holds nan": {
        "new": (X.index_fill(0, torch.tensor(3), torch.nan), Y)
    },
    "must be a tensor or a number, got dict": {"new": [({"x": 1.0}, 1)] * 3},
    "of `new` must be a pair of input and target, got dict": {"new": [{"x": 1}] * 3},
    "examples of `new` cannot be stacked": {
        "new": [(torch.zeros(k), 0) for k in (4, 5, 6)]
    },
    "example 77 of `keep` cannot be read: OSError: no disk": lambda n: {
        "keep": Pairs((X, Y), unreadable)
    },
    r"inputs of shape \(120, 3\) of `keep`: RuntimeError: mat1": {
        "keep": (X[:, 1:], Y)
    },
    r"inputs of shape \(120, 3\) of `new`: .* Give inputs as in": {
        "new": (X[:, 1:], Y)
    },
    "of torch.float64: .* pass inputs.to.torch.float32": {"keep": (X.double(), Y)},
    "of torch.uint8: .* pass inputs.to.torch.float32": {"new": (X.byte(), Y)},
    r"Pass targets.long\(\)": {"keep": (X, Y.float())},
    r"shape \(120, 1\). Pass targets.squeeze\(1\)": {"keep": (X, Y[:, None])},
    r"shape \(120, 3\). Pass targets.argmax\(1\)": {
        "keep": (X, torch.nn.functional.one_hot(Y))
    },
    "between 0 and 2": {"new": (X, Y + 1)},
    "got 3 for example 7 of `new`": {"new": (X, Y.index_fill(0, torch.tensor(7), 3))},
    "got -1 for example 119 of `keep`": {
        "keep": (X, Y.index_fill(0, torch.tensor(119), -1))
    },
    "must return a tensor, got tuple": {"model": torch.nn.LSTM(4, 3)},
    r"of shape \(120, 1\). Use rule='loss'": {"model": torch.nn.Linear(4, 1)},
    r"return torch.cat\(\[-z, z\], 1\)": {"model": torch.nn.Linear(4, 1)},
    r"'0.weight' was made in torch.inference_mode\(\)": lambda n: {
        "model": torch.inference_mode()(network)()
    },
    "changes the network's buffer 'total'.* `if self.training": lambda n: {
        "model": adding(n)
    },
    "`keep`: .* apart with and without others": lambda n: {
        "model": torch.nn.Sequential(
            torch.nn.BatchNorm1d(4, track_running_stats=False), n
        )
    },
}
BY_PASSES: dict[str, Any] = UPDATES | {
    "2,600 leaves .* less than one iteration": {
        "keep": data(900),
        "max_forwards": 2600,
    },
    "Set gradients=True": {"optimizer": 1},
}
BY_GRADIENTS: dict[str, Any] = UPDATES | {
    "with gradients there is no option 'radius'": {"options": {"radius": 1}},
    "'weights' goes with gradients=False": {"weights": {0: 1}},
    "must have gradients, got values without": {
        "loss": lambda outputs, targets: one_loss(outputs.detach(), targets)
    },
    "SGD with none of them": lambda n: {"optimizer": sgd(network())},
    "step by itself, got LBFGS": lambda n: {
        "optimizer": torch.optim.LBFGS(n.parameters())
    },
    "lost in torch.float16. Call model.float": {"model": network(torch.float16)},
    "Adam cannot take .* sparse .* sparse=False": {
        "model": torch.nn.EmbeddingBag(9, 3, sparse=True),
        **dict.fromkeys(("new", "keep"), (X.abs().long(), Y)),
    },
}


class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        return iter([(X[0], Y[0])] * 3)


def unreadable(i: int, pair: Any) -> Any:
    if i == 77:
        raise OSError("no disk")
    return pair


def adding(net: Any) -> Any:
    """Return a network with a buffer that changes in each pass."""
    around = Around(net, lambda it, x: it.net(x) + it.total.add_(len(x)))
    around.register_buffer("total", torch.zeros(()))
    return around


def list_of(net: Any) -> Any:
    """Hold the weights that a network has now: one that is refused may be changed."""
    return torch.nn.ParameterList(net.parameters())


def sgd(net: Any) -> Any:
    return torch.optim.SGD(net.parameters())


@pytest.mark.parametrize(("said", "other"), MINIMIZE.items())
def test_wrong_calls_of_minimize_are_refused(said: str, other: Any) -> None:
    net = network()
    losses, constraints = functions(net)
    call = {"model": net, "losses": losses, "constraints": constraints}
    with refused(list_of(net), said):
        dt.minimize(**(call | (other(net) if callable(other) else other)))


@pytest.mark.parametrize("said", OTHERS)
def test_other_wrong_calls_are_refused_with_what_to_do(said: str) -> None:
    net = network()
    with refused(list_of(net), said):
        OTHERS[said](net, *looking(net, 1.5))


@pytest.mark.parametrize(
    ("said", "other", "gradients"),
    [(*row, False) for row in BY_PASSES.items()]
    + [(*row, True) for row in BY_GRADIENTS.items()],
)
def test_wrong_updates_are_refused_with_what_to_do(
    said: str, other: Any, gradients: bool
) -> None:
    net = network()
    call = {"model": net, "new": (X, Y), "keep": (X, Y), "max_forwards": 1e4}
    with refused(list_of(net), said):
        change = other(net) if callable(other) else other
        dt.update(**(call | {"gradients": gradients} | change))


def test_only_broken_constraints_go_back_through_the_network() -> None:
    net = network()
    losses, limits = functions(net)
    looked, back = list[Any](), list[Any]()

    def closure(i: Any, j: Any) -> Any:
        values = limits.values(j) + 0.4
        (back if torch.is_grad_enabled() else looked).append((j, values > 0.0))
        return losses.values(i), values

    sgd = torch.optim.SGD(net.parameters(), lr=0.0)
    batches: dict[str, Any] = {"dual_batch": 25, "constraint_batch": 8}
    opt = dt.DSZOG(net, n_losses=120, n_constraints=120, optimizer=sgd, **batches)
    infos = [opt.step(closure) for _ in range(8)]
    assert [len(j) for j, _ in looked] == [100, 100]  # one look for four steps
    for n, (j, are_broken) in enumerate(back):
        seen, were_broken = looked[n // 4]
        assert bool(are_broken.all())
        assert j.tolist() == seen[were_broken][n % 4 :: 4][:8].tolist()
        assert infos[n].n_touched == int(were_broken.sum()) > 8
    # A look asks for no losses: one fills in, as closures are given no empty batch.
    assert opt.n_forwards == 2 * 101 + 3 * sum(64 + len(j) for j, _ in back)


@pytest.mark.parametrize(("way", "share"), [((0.5, 1e-3), 1e-3), ((0.9,), 1.0)])
def test_an_update_goes_back_to_where_nothing_is_worse_or_stays(
    way: tuple[float, ...], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def far(model: Any, named: Any, *others: Any, **more: Any) -> tuple[int, str]:
        return len([one.data.neg_() for one in named.values()]), ""

    module = sys.modules["dszog.torch.update"]  # the function has its name
    monkeypatch.setattr(module, "descend", far)
    monkeypatch.setattr(module, "BACK", way)
    monkeypatch.setattr(module, "_why_worse", lambda *_: "")
    net, new, keep = trained()
    report = dt.update(net, new, keep, gradients=True, max_forwards=1e5)
    assert (len(report.regressions) == 0) == (share < 1.0)
    assert (f"back to {share} of the way" in str(report)) == (share < 1.0)
    for one, start in zip(net.parameters(), trained()[0].parameters(), strict=True):
        torch.testing.assert_close(one, (1 - 2 * share) * start, rtol=1e-6, atol=0.0)
    assert report.n_forwards == 2 * 400 + 4 * 64 + 4 + len(way) * 250


OTHER: dict[str, Callable[[Any, Any, Any], Any]] = {  # what it goes on with
    r"`new` \(150 of torch.float32 \(4,\) there, 149": lambda net, new, keep: {
        "new": (new[0][1:], new[1][1:])
    },
    "in: examples of `keep`;": lambda net, new, keep: {
        "keep": (keep[0].flip(0), keep[1])
    },
    "losses at the start": lambda net, new, keep: {
        "loss": lambda outputs, targets: 2 * one_loss(outputs, targets)
    },
    "in: buffer 'seen'. Load the network": lambda net, new, keep: (
        net.seen.add_(1.0) is None or {}
    ),
    "in: frozen weight '0.bias'. Load the network": lambda net, new, keep: (
        net[0].bias.data.add_(1e-9) is None or {}
    ),
    "other weights than the one": lambda net, new, keep: (
        net[2].bias.requires_grad_(False) is None or {}
    ),
}


@both_ways
def test_a_finished_update_goes_on_with_nothing_but_what_it_began_with(
    gradients: bool, tmp_path: Path
) -> None:
    def begun() -> tuple[Any, Any, Any]:
        net, new, keep = trained()
        net.register_buffer("seen", torch.zeros(1))
        net[0].bias.requires_grad_(False)
        return net, new, keep

    folder = tmp_path / "run"
    more: dict[str, Any] = {"gradients": gradients, "max_forwards": 5000}
    net, new, keep = begun()
    report = dt.update(net, new, keep, checkpoint=folder, **more)
    with pytest.raises(dszog.InputError, match="holds a run"):
        dt.update(net, new, keep, checkpoint=folder, **more)
    more |= {"checkpoint": folder, "resume": True}
    again = dt.update(net, new, keep, **more)  # the network is the updated one
    assert (again.before, again.after) == (report.before, report.after)
    for said, change in OTHER.items():
        net, new, keep = begun()
        other = change(net, new, keep)
        with refused(net, f"{said}.* as they were", dszog.CheckpointError):
            dt.update(**({"model": net, "new": new, "keep": keep} | other), **more)


def test_a_run_does_not_go_on_with_other_functions(tmp_path: Path) -> None:
    net = network()
    losses, limits = functions(net)
    more: dict[str, Any] = {"max_iterations": 3, "checkpoint": tmp_path / "run"}
    dt.minimize(net, losses, limits, **more)
    other = dt.Constraints(lambda j: limits.values(j) - 0.5, 120)
    with pytest.raises(dszog.CheckpointError, match="constraints at the start"):
        dt.minimize(net, losses, other, resume=True, **more)
    coarse = network(torch.bfloat16)
    with pytest.raises(dszog.CheckpointError, match=r"precision \(torch.float32 there"):
        run(coarse, seed=None, resume=True, **more)


@both_ways
def test_values_that_are_random_are_refused_where_they_would_decide(
    gradients: bool, tmp_path: Path
) -> None:
    net, new, keep = trained()
    more: dict[str, Any] = {"gradients": gradients, "max_forwards": 1e4}
    said = r"`keep`: .*twice.*which get worse would be chance.*"
    with pytest.raises(dszog.InputError, match=rf"{said}dropout\(x, training"):
        dt.update(Around(net, noisy(0.1)), new, keep, **more)
    with pytest.raises(dszog.InputError, match=f"{said}no augmentation in datasets"):
        dt.update(net, new, augmented(keep), **more)
    if not gradients:
        with pytest.raises(dszog.InputError, match=r"`new`: .*losses would be noise"):
            dt.update(net, augmented(new), keep, **more)
        return
    more["checkpoint"] = tmp_path / "run"
    for resume in (False, True):  # other examples each time are the same each time
        with pytest.warns(dszog.PurityWarning, match="will not have the same bits"):
            dt.update(net, augmented(new), keep, resume=resume, **more)


def test_values_that_are_rounded_by_chance_are_told() -> None:
    def loss(outputs: Any, targets: Any) -> Any:
        return one_loss(outputs, targets) * (1 + 1e-6 * torch.rand(len(targets)))

    with pytest.warns(dszog.PurityWarning, match="use_deterministic_algorithms"):
        updated(loss=loss, max_forwards=1e4)


def test_the_library_does_not_import_torch() -> None:
    code = "import sys, dszog, dszog.minimize; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("optimizer", [None, torch.optim.SGD])
def test_an_update_with_gradients_goes_on_where_it_was_saved(
    optimizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(steps: int | None = None, **more: Any) -> str:
        net, new, keep = trained()
        if optimizer is not None:
            more["optimizer"] = optimizer(net.parameters(), lr=0.01, momentum=0.9)
        step, done = GradientSteps.step, list[int]()

        def counted(self: Any, *given: Any) -> Any:
            if len(done) == steps:
                raise KeyboardInterrupt
            done.append(0)
            return step(self, *given)

        with monkeypatch.context() as patched:
            patched.setattr(GradientSteps, "step", counted)
            patched.setattr("dszog.torch.descent.EVERY", -1.0)  # after each step
            try:
                dt.update(net, new, keep, gradients=True, max_forwards=2e4, **more)
            except KeyboardInterrupt:
                assert steps is not None
        return digest_of(net.parameters())

    straight = run()
    saved: dict[str, Any] = {"checkpoint": tmp_path / "run", "resume": True}
    for steps in (3, 9):
        assert run(steps, **saved) != straight
    assert run(**saved) == straight
    assert run(0, **saved) == straight  # nothing is left to do
    with pytest.raises(dszog.CheckpointError, match=r"seed \(0 there, 5 here\)"):
        updated(gradients=True, seed=5, **saved)


def test_a_budget_with_gradients_is_kept_or_refused() -> None:
    with pytest.raises(dszog.InputError, match="one step takes"):
        updated(gradients=True, max_forwards=1200)
    few = {n: updated(gradients=True, max_forwards=n)[1] for n in (1600, 2000, 5000)}
    assert all(report.n_forwards <= n for n, report in few.items())


def test_a_report_says_that_the_network_stayed_where_it_was() -> None:
    digest, report = updated(options={"step_size": 10.0})
    assert digest == digest_of(trained()[0].parameters())
    assert "No point was better than the start" in str(report)


def test_compiled_networks_and_autocast_are_updated() -> None:
    _, plain = updated()
    _, report = updated(lambda net: torch.compile(net, backend="eager"))
    assert report.after.new_loss == pytest.approx(plain.after.new_loss, rel=1e-3)
    _, coarse = updated(autocast=torch.bfloat16)
    assert coarse.after.new_loss < coarse.before.new_loss
    assert coarse.before.new_loss != plain.before.new_loss


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("no room"), "smaller batches"),
        (RuntimeError("CUDA error: device lost"), "resume=True"),
    ],
)
def test_a_gpu_that_fails_leaves_weights_and_advice(error: Any, said: str) -> None:
    net = network()
    losses, limits = functions(net)
    losses = dt.Losses(failing_after(30, losses.values, error), 120)
    with pytest.raises(dszog.EvaluationError, match=said) as raised:
        dt.minimize(net, losses, limits, max_iterations=50, seed=0)
    assert str(raised.value).count("dszog.torch: ") == 1


def test_weights_wander_no_further_than_constraints_bear() -> None:
    from dszog.torch.passes import ALONG, PARTS, WANDERS, Passes

    found = []
    for slack, seed in ((0.02, 2), (1e9, 2), (-1e9, 2), *((0.3, k) for k in range(8))):
        net = network()
        space = dt.ModuleSpace(net, seed=seed)
        before = digest_of(net.parameters())
        with torch.no_grad():
            first = net(X)[:, 0]

            def both(i: Any, j: Any, first: Any = first, slack: Any = slack) -> Any:
                return first[i], (net(X[j])[:, 0] - first[j]).abs() - slack  # noqa: B023

            share, n = Passes(space, both, record=False).steadiness(120)
        assert digest_of(net.parameters()) == before
        assert n <= (1 + 5 * ALONG // PARTS) * 120
        found.append(share)
    assert found[0] < min(found[3:]) <= max(found[3:]) < found[1] == WANDERS[0]
    assert max(found[3:]) < 1.5 * min(found[3:])  # whatever the seed
    assert found[2] == np.inf  # none holds: it says nothing


FACTORY = """
import signal
import sys
sys.path.insert(0, {root!r})
from tests.torch.helpers import one_loss, torch, trained
def factory():
    return trained()
def wrong():
    return 3
def stopped():
    def loss(outputs, targets, calls=iter(range(30))):
        if next(calls, 0) == 29:
            signal.raise_signal(signal.SIGINT)
        return one_loss(outputs, targets)
    return *trained(), loss
"""


@pytest.mark.parametrize("more", [[], ["--gradients"]])
def test_the_command_updates_a_network_of_a_file(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cyclopts")
    from safetensors.torch import load_file

    from dszog.cli.app import run as command

    file, out = tmp_path / "model.py", tmp_path / "out"
    file.write_text(FACTORY.format(root=str(Path(__file__).parents[2])))
    typed = ["update", f"{file}:factory", "--max-forwards", "2e4", "-o", str(out)]
    assert command([*typed, *more]) in (0, 3)
    net, new, keep = trained()
    dt.update(net, new, keep, max_forwards=2e4, gradients=bool(more))
    for name, weights in load_file(out / "weights.safetensors").items():
        assert torch.equal(weights, net.state_dict()[name])
    assert "kept examples got worse" in (out / "report.txt").read_text()
    assert (out / "report.png").exists() == (find_spec("matplotlib") is not None)
    assert command([*typed, *more]) == 2  # it holds a run
    assert "--resume" in capsys.readouterr().err
    assert command([*typed, *more, "--resume"]) in (0, 3)
    again = str(tmp_path / "again")
    assert (
        command(["update", f"{file}:stopped", *typed[2:4], *more, "-o", again]) == 130
    )
    assert command(["update", f"{file}:wrong"]) == 2
    assert "(model, new, keep)" in " ".join(capsys.readouterr().err.split())
