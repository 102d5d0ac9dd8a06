"""A small network, its examples, and ways to call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

import dszog  # noqa: E402
import dszog.torch as dt  # noqa: E402
from dszog.torch.space import digest_of  # noqa: E402

both_ways = pytest.mark.parametrize("gradients", [False, True])
Pair = tuple[Any, Any]


def network(kind: Any = torch.float32) -> Any:
    torch.manual_seed(3)
    layers = torch.nn.Linear(4, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3)
    return torch.nn.Sequential(*layers).to(kind)


def data(n: int = 120) -> Pair:
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(n, 4, generator=generator)
    return inputs, (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0.5).long()


def one_loss(outputs: Any, targets: Any) -> Any:
    return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")


def looking(net: Any, shift: float) -> Pair:
    """Return functions that look through the network one kind at a time."""
    inputs, targets = data()
    inputs = inputs.to(next(net.parameters()).dtype)

    def loss(i: Any) -> Any:
        return one_loss(net(inputs[i]).float(), targets[i])

    return loss, lambda j: loss(j) - shift


def functions(net: Any, shift: float = 1.5) -> tuple[dt.Losses, dt.Constraints]:
    loss, limit = looking(net, shift)
    return dt.Losses(loss, 120), dt.Constraints(limit, 120)


def run(net: Any, **more: Any) -> dszog.Result:
    return dt.minimize(
        net, *functions(net), **({"max_iterations": 30, "seed": 1} | more)
    )


def loop(net: Any, closure: Any = None, n_steps: int = 1, **more: Any) -> Any:
    """Take steps in a loop of one's own; return the optimiser and what it told."""
    if closure is None:
        loss, limit = looking(net, 1.5)
        closure = lambda i, j: (loss(i), limit(j))  # noqa: E731
    opt = dt.DSZOG(net, **({"n_losses": 120, "n_constraints": 120} | more))
    return opt, [opt.step(closure) for _ in range(n_steps)]


def trained() -> tuple[Any, Pair, Pair]:
    """Return a network, what is new to it, and what it knows."""
    net = network()
    inputs, targets = data(400)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs[:250]), targets[:250]).backward()
        optimizer.step()
    new = inputs[250:].flip(1), targets[250:]
    return net, new, (inputs[:250], targets[:250])


def updated(wrap: Callable[[Any], Any] | None = None, **more: Any) -> tuple[str, Any]:
    """Return a print of the updated network, wrapped or not, and the report.

    What has to be made of the network is given as a function of it.
    """
    net, new, keep = trained()
    more |= {k: more[k](net) for k in ("params", "optimizer") if callable(more.get(k))}
    given: dict[str, Any] = {"new": new, "keep": keep, "max_forwards": 2e4} | more
    report = dt.update(net if wrap is None else wrap(net), **given)
    return digest_of(net.parameters()), report


@contextmanager
def refused(net: Any, said: str, kind: Any = dszog.DszogError) -> Iterator[Any]:
    """See to an error in so many words, and to a network that is what it was."""
    before = digest_of(net.parameters())
    with pytest.raises(kind, match=f"(?s){said}") as raised:
        yield raised
    assert digest_of(net.parameters()) == before


class Around(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A network, and what is done around its call."""

    def __init__(self, net: Any, call: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.net, self._call = net, call
        self.n_seen = 0

    def forward(self, x: Any) -> Any:
        return self._call(self, x)


def noisy(share: float) -> Callable[[Any, Any], Any]:
    """Return dropout in functional form: it is on in evaluation mode, too."""
    return lambda around, x: around.net(torch.nn.functional.dropout(x, share))


def counting(around: Any, x: Any) -> Any:
    """Count the examples; a backward pass is two."""
    assert len(x)
    around.n_seen += len(x) * (3 if torch.is_grad_enabled() else 1)
    return around.net(x)


class Pairs:
    """A map-style dataset, whose examples may be read in some way."""

    def __init__(self, pair: Pair, read: Callable[[int, Pair], Pair] | None = None):
        self._pair, self._read = pair, read

    def __len__(self) -> int:
        return len(self._pair[0])

    def __getitem__(self, i: int) -> Pair:
        pair = self._pair[0][i], self._pair[1][i]
        return pair if self._read is None else self._read(i, pair)


def augmented(pair: Pair) -> Pairs:
    """Return a dataset whose examples are others each time."""
    return Pairs(pair, lambda _, one: (one[0] + 0.1 * torch.randn(4), one[1]))


def failing_after(n: int, function: Any, error: BaseException | None = None) -> Any:
    """Return a function that raises after `n` calls, or returns `nan`."""
    calls = iter(range(n))

    def failing(*given: Any) -> Any:
        is_over = next(calls, None) is None
        if is_over and error is not None:
            raise error
        values = function(*given)
        return values * torch.nan if is_over else values

    return failing
