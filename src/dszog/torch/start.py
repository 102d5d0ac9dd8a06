"""What a saved run began with: its weights, and all else that its numbers rest on.

A run that goes on takes its weights from there. Examples, functions, frozen weights and
buffers must be those it began with: some are looked at, which takes no pass over all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dszog.contract.validation import check_seed
from dszog.errors import CheckpointError, InputError, OtherRunError
from dszog.maths.random_stream import fresh_seed
from dszog.torch.functions import TorchConstraints, TorchLosses
from dszog.torch.moves import load_tensors, save_tensors
from dszog.torch.space import digest_of

FILE = "start.safetensors"
CLOSE = 1e-2  # of the largest value: other devices round otherwise


def take_start(
    folder: Path | None, resume: bool, named: Mapping[str, Any]
) -> dict[str, Any]:
    """Put weights to where a saved run began; return what else it began with."""
    if folder is None:
        return {}
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"dszog.torch: `checkpoint` must be a folder, got {str(folder)!r}, which "
            "is a file. Give another."
        )
    if not resume and folder.exists() and any(folder.iterdir()):
        raise InputError(
            f"dszog.torch: `checkpoint` must be an empty folder, got {str(folder)!r}, "
            "which holds a run. Go on with it: resume=True; or give another."
        )
    if not (folder / FILE).exists():
        return {}
    tensors, known = load_tensors(folder / FILE)
    there = {name: one.shape for name, one in tensors.items()}
    here = {name: one.shape for name, one in named.items()}
    if there != here:
        only_there = sorted(there.items() - here.items())[:3]
        only_here = sorted(here.items() - there.items())[:3]
        told = ", ".join(
            [f"{name!r} {tuple(shape)} there" for name, shape in only_there]
            + [f"{name!r} {tuple(shape)} here" for name, shape in only_here]
        )
        raise CheckpointError(
            "The network has other weights than the one that the run began with, or "
            f"`params` names others: {told}. Build it as it was and give the same "
            "params, or use an empty folder."
        )
    with torch.no_grad():
        for name, one in named.items():
            one.copy_(tensors[name])
    return known


def seed_of(seed: Any, known: Mapping[str, Any]) -> int:
    """Return the seed of a run: as given, or that of a saved one, or a fresh one."""
    if seed is None:
        seed = known.get("seed", fresh_seed())
    return check_seed("dszog.torch", seed)


def facts_of(
    model: Any,
    named: Mapping[str, Any],
    losses: TorchLosses,
    constraints: TorchConstraints,
    *,
    may_vary: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """Return what decides how a run goes; look at some values for that, and twice."""
    device, were = next(iter(named.values())).device, _buffers_of(model)
    try:
        return {
            **settings,
            "precision": ", ".join(sorted({str(one.dtype) for one in named.values()})),
            "examples of `new`": losses.about,
            "examples of `keep`": constraints.about,
            "constraints at the start": constraints.check(device),
            "losses at the start": losses.check(device, may_vary=may_vary),
        }
    finally:  # it tells more than that values vary
        now = _buffers_of(model)
        if changed := [name for name, was in were.items() if now.get(name) != was]:
            raise InputError(
                f"dszog.torch: a forward pass in evaluation mode changes the network's "
                f"{changed[0]}, and so what is to be kept. Have it changed in training "
                "mode alone: `if self.training:`."
            )


def _buffers_of(model: Any) -> dict[str, str]:
    """Return a print of each buffer."""
    named = model.named_buffers()
    return {f"buffer {name!r}": f"#{digest_of([one])[:16]}" for name, one in named}


def begin(
    folder: Path,
    model: Any,
    tensors: dict[str, Any],
    known: dict[str, Any],
    facts: dict[str, Any],
) -> None:
    """Save what a run begins with, or refuse to go on with another one."""
    facts |= _buffers_of(model)
    for name, one in model.named_parameters():
        if name not in tensors:
            facts[f"frozen weight {name!r}"] = f"#{digest_of([one])[:16]}"
    if not known:
        folder.mkdir(parents=True, exist_ok=True)
        save_tensors(folder / FILE, tensors, facts)
        return
    other = {
        name: f"{name}{_told(known.get(name), facts.get(name))}"
        for name in {**known, **facts}
        if not _are_same(known.get(name), facts.get(name))
    }
    if "optimizer" in other:  # another kind has other settings
        other = {k: v for k, v in other.items() if not k.startswith("optimizer ")}
    if other:
        told = "; ".join([*other.values()][:6])
        raise OtherRunError(
            f"The run in {str(folder)!r} began otherwise, it differs in: {told}. Load "
            "the network that it began with, buffers included, and give the same "
            "examples and settings; or use an empty folder."
        )


def _are_same(there: Any, here: Any) -> bool:
    if not (isinstance(there, list) and isinstance(here, list)):
        return bool(there == here)
    scale = max(map(abs, there), default=0.0)
    return len(there) == len(here) and np.allclose(there, here, CLOSE, CLOSE * scale)


def _told(there: Any, here: Any) -> str:
    if isinstance(there, list) and isinstance(here, list):
        pairs = zip(there, here, strict=False)
        there, here = max(pairs, key=lambda two: abs(two[0] - two[1]), default=(0, 0))
        return f" (one was {there:.4g}, it is {here:.4g})"
    there, here = (str(one).partition("#")[0].strip() for one in (there, here))
    return "" if there == here else f" ({there} there, {here} here)"
