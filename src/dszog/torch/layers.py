"""A large network, perturbed layer by layer: no copy of all weights is needed.

While a layer is at work its weights lie in a scratch, perturbed; they are put there
when it is called. A part that is never called (some attention uses its last weights
itself) belongs to what is called above it. Whether a network lets itself be perturbed
so is tried out: it must give what it gives with all weights perturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from dszog.contract.signs import Signs

if TYPE_CHECKING:
    from dszog.torch.space import ModuleSpace

ALIGNED = 512  # bytes at which weights begin in the scratch
FAR = 100.0  # radii at which it is tried out: what is left out shows
CLOSE = 1e-3  # relative, for sums in another order


class Layers:
    """Perturbs each layer when it is called, while a direction is set."""

    def __init__(self, space: ModuleSpace, called: set[Any]) -> None:
        self._space = space
        self._signs: Signs | None = None
        self._hooks: list[Any] = []
        self._own = list(zip(space.named.values(), space.weights, strict=True))
        which = {id(one): i for i, one in enumerate(space.named.values())}
        groups: dict[Any, dict[int, None]] = {}
        for module, owner in _owners(space.model, called, None):
            for one in module.parameters(recurse=False):
                if id(one) in which:
                    groups.setdefault(owner, {})[which[id(one)]] = None
        if None in groups:
            raise LookupError("weights that no layer uses when it is called")
        begins: dict[Any, int] = {}
        end = self._place(space.model, 0, groups, begins)
        self._scratch = torch.empty(end, dtype=torch.uint8, device=space.device)
        for module, group in groups.items():
            self._follow(module, list(group), begins[module])

    def _place(self, module: Any, begin: int, groups: Any, begins: Any) -> int:
        """Say where in the scratch the weights of layers lie: below their parents'."""
        begins[module] = begin = max(begin, begins.get(module, 0))
        begin += sum(_room(self._own[i][1]) for i in groups.get(module, ()))
        ends = [self._place(one, begin, groups, begins) for one in module.children()]
        return max([begin, *ends])

    def _follow(self, module: Any, which: list[int], begin: int) -> None:
        pairs, outs = [self._own[i] for i in which], []
        for _, weights in pairs:
            part = self._scratch[begin : begin + weights.nbytes].view(weights.dtype)
            outs.append(part.view(weights.shape))
            begin += _room(weights)
        mover = self._space.mover(which, outs)

        def come(*_: Any) -> None:
            if self._signs is not None:
                mover(self._signs, (self._signs.radius,))
                for (parameter, _), out in zip(pairs, outs, strict=True):
                    parameter.data = out

        def go(*_: Any) -> None:
            for parameter, weights in pairs:
                parameter.data = weights

        self._hooks.append(module.register_forward_pre_hook(come))
        self._hooks.append(module.register_forward_hook(go))

    def perturb(self, signs: Signs) -> None:
        """Have every layer perturbed from now on, when it is called."""
        self._signs = signs

    def restore(self) -> None:
        """Have every layer as it is, also after one that broke off."""
        self._signs = None
        for parameter, weights in self._own:
            parameter.data = weights

    def close(self) -> None:
        """Leave the network alone."""
        self.restore()
        for hook in self._hooks:
            hook.remove()

    @classmethod
    def of(cls, space: ModuleSpace, look: Callable[[], Any]) -> Layers | None:
        """Return the layers, if a look at the network perturbed so is a true one."""
        called: set[Any] = set()
        hooks = [
            module.register_forward_pre_hook(lambda module, _: called.add(module))
            for module in space.model.modules()
        ]
        look()
        for hook in hooks:
            hook.remove()
        try:
            layers = cls(space, called)
        except LookupError:
            return None
        signs = Signs(space.seed, 0, (0,), space.span, FAR * space.radius)
        layers.perturb(signs)
        seen = look()
        layers.restore()
        kept = [one.to("cpu", copy=True) for one in space.weights]
        space.mover(range(len(kept)), space.weights)(signs, (signs.radius,))
        truth = look()
        for one, before in zip(space.weights, kept, strict=True):
            one.copy_(before)
        scale = float(truth.abs().max())
        if torch.allclose(seen, truth, CLOSE, CLOSE * scale):
            return layers
        layers.close()
        return None


def _owners(module: Any, called: set[Any], above: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all modules, each with the one that was called when it is used."""
    owner = module if module in called else above
    yield module, owner
    for one in module.children():
        yield from _owners(one, called, owner)


def _room(weights: Any) -> int:
    return -(-int(weights.nbytes) // ALIGNED) * ALIGNED
