"""`dszog.torch.update`: learn new examples so that no known one gets worse."""

from __future__ import annotations

import inspect
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from dszog.contract.arrays import IntArray
from dszog.contract.validation import (
    check_callable,
    check_choice,
    check_count,
    check_nonnegative,
    check_positive_number,
    shown,
)
from dszog.errors import DszogError, InputError, InputTypeError
from dszog.methods.named import PointName
from dszog.run.result import Result
from dszog.show.plot import plot_update
from dszog.status import Status
from dszog.torch.descent import descend
from dszog.torch.doors import (
    OTHERS,
    about_mode,
    check_callbacks,
    check_names,
    evaluating,
    minimize,
    unharmed,
)
from dszog.torch.first_order import check_optimizer
from dszog.torch.functions import (
    N_CHECKED,
    TorchConstraints,
    TorchLosses,
    n_checked,
    one_for_each,
)
from dszog.torch.passes import device_failure, in_parts
from dszog.torch.space import chosen_parameters, digest_of
from dszog.torch.start import seed_of, take_start

Rule = Literal["right", "loss"]
NOT_OURS = {"losses", "constraints", "max_queries"}  # `update` gives them itself
CROSS_ENTROPY = partial(cross_entropy, reduction="none")
MARGIN = 0.1  # by which an example that was right shall lead
BACK = (0.98, 0.95, 0.9, 0.8, 0.65)  # of the way, to where no kept example got worse
NOT_LEFT = "No point was better than the start, where the network still is."
UNFINISHED = "The run was ended before there could be one."
FLAT_LOSSES = (
    "The losses are flat: hardly any changed when the weights did. Use losses that "
    "change by degrees, such as the cross-entropy."
)
MORE_PASSES = "Raise max_forwards, or use gradients=True."
WENT_BACK = (
    "The end was no better than the start, where the network is again: {why}. Lower "
    "the rate of the optimiser, or give more passes."
)
MANY = 0.1  # of the kept examples, if more got worse than new ones were learned
FOR_BACK = 0.05  # of the passes, at most, to look for such a point


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How a network does."""

    new_loss: float
    new_accuracy: float = math.nan  # where the outputs are no classes
    kept_accuracy: float = math.nan


@dataclass(frozen=True, eq=False, kw_only=True)
class UpdateReport:
    """What an update did, from a look at every example before and after.

    Parameters
    ----------
    regressions : ndarray of int
        The kept examples that got worse, by their number in `keep`.
    n_kept : int
        Examples under a constraint; under the rule "right", those that were right.
    n_wrong_before : int
        Examples of `keep` that were wrong before: nothing is asked of them.
    groups : dict
        For each group, how many examples were kept and how many of them got worse.
    before, after : Scores
    kept_values : pair of ndarrays
        Of each example under a constraint, before and after: its loss, or less the lead
        of its class.
    kept_is_worse : ndarray of bool
        Which of these got worse.
    n_forwards : int
        Examples that went through the network, at any weights; a backward pass counts
        as two.
    note : str
        What was done with a network in training mode, and whether it went back some of
        the way at the end, to where no kept example is worse.
    result : Result or None
        Of the run; None where gradients were used.
    """

    regressions: IntArray
    n_kept: int
    n_wrong_before: int
    groups: Mapping[str, tuple[int, int]]
    before: Scores
    after: Scores
    kept_values: tuple[Any, Any] = field(repr=False)
    kept_is_worse: Any = field(repr=False)
    n_forwards: int
    seed: int
    note: str = ""
    result: Result | None = field(default=None, repr=False)

    @property
    def certificate(self) -> str:
        """What is known of the kept examples, and what is not known of others."""
        return (
            f"{len(self.regressions):,} of {self.n_kept:,} kept examples got worse; "
            "each was checked before and after. Old examples that the update has not "
            "seen may get worse too: hold some out and count"
        )

    def plot(self, *, figure: Any = None) -> Any:
        """Draw before and after, and each kept example; needs the extra ``viz``.

        Returns a figure of matplotlib: ``report.plot().savefig("update.png")``.
        """
        return plot_update(self, figure=figure)

    def __str__(self) -> str:
        lines = [f"{'':<22}{'before':>10}{'after':>10}"]
        for name, words, form in (
            ("new_loss", "loss, new examples", ".4g"),
            ("new_accuracy", "right, new examples", ".2%"),
            ("kept_accuracy", "right, all of `keep`", ".2%"),
        ):
            before, after = getattr(self.before, name), getattr(self.after, name)
            if math.isfinite(before):
                lines.append(f"{words:<22}{before:>10{form}}{after:>10{form}}")
        lines.append(f"evidence  {self.certificate}.")
        for group, (n, bad) in self.groups.items():
            lines.append(f"          {group}: {bad:,} of {n:,} got worse")
        if self.n_wrong_before:
            lines.append(
                f"          {self.n_wrong_before:,} more of `keep` were wrong before "
                "and have no constraint."
            )
        run = f"run       {self.n_forwards:,} examples went through the network"
        if self.result is not None:
            ended = self.result.message.partition(". ")[0]
            ended = ended.replace("The query budget", "max_forwards")
            run += f", {self.result.nit:,} iterations. {ended}"
        lines.append(f"{run}.")
        if self.note:
            lines.append(f"note      {self.note}")
        return "\n".join(lines)


def update(
    model: Any,
    new: Any,
    keep: Any,
    loss: Callable[[Any, Any], Any] | None = None,
    *,
    rule: Rule = "right",
    slack: float = 0.0,
    groups: Sequence[Any] | None = None,
    params: Any = "all",
    gradients: bool = False,
    optimizer: Any = None,
    max_forwards: int | float = 10**6,
    max_time: float | None = None,
    autocast: Any = None,
    options: dict[str, Any] | None = None,
    seed: int | None = 0,
    **others: Any,
) -> UpdateReport:
    """Update a network on new examples, with one constraint for each example to keep.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place; as it was if an exception leaves. It is in evaluation mode
        during the update.
    new, keep : (inputs, targets) or map-style datasets of such pairs
        What to learn, and what must not get worse.
    loss : callable, optional
        ``loss(outputs, targets)`` with one value for each example; the cross-entropy
        if not given.
    rule : {"right", "loss"}
        What it means to get worse: an example that was classified rightly is not any
        more; or its loss is above the old one plus `slack`.
    slack : float
        For the rule "loss": with 0 every rise counts, however small.
    groups : sequence, optional
        The group of each example of `keep`, for the report.
    params : "all", or parts of names, layers or parameters
        Which weights may change.
    gradients : bool
        Use them, with `optimizer` (Adam if not given).
    max_forwards : int
        Examples that may go through the network, at any weights, all looks included;
        with gradients a backward pass counts as two.
    max_time : float, optional
        Seconds, the looks before and after included.
    autocast : torch.dtype, optional
        Compute in it, such as ``torch.bfloat16``; losses in float32.
    options : dict, optional
        Settings, as for :func:`dszog.torch.minimize`; with gradients those of
        :class:`dszog.torch.DSZOG` with an optimiser.
    seed : int
    **others
        `checkpoint`, `resume`, `progress` and `callback`; without gradients also
        others of :func:`dszog.torch.minimize`.

    Returns
    -------
    UpdateReport
        Print it.
    """
    check_choice("dszog.torch.update", "rule", rule, get_args(Rule))
    slack = check_nonnegative("dszog.torch.update", "slack", slack)
    limit = check_count("dszog.torch.update", "max_forwards", max_forwards)
    if max_time is not None:
        max_time = check_positive_number("dszog.torch.update", "max_time", max_time)
    if slack and rule != "loss":
        raise InputError(
            f"dszog.torch.update: `slack` goes with rule='loss', got slack={slack} and "
            f"rule={rule!r}. Leave one out."
        )
    if loss is not None:
        check_callable("dszog.torch.update", "loss", loss, "loss(outputs, targets)", 2)
    if autocast is not None and not isinstance(autocast, torch.dtype):
        raise InputTypeError(
            f"dszog.torch.update: `autocast` must be a torch.dtype, got "
            f"{shown(autocast)}. Pass torch.bfloat16."
        )
    check_callbacks("dszog.torch.update", others.get("callback"))
    named = chosen_parameters(model, params)
    changing = list(named.values())
    _check_others(others, changing, optimizer, gradients)
    device, folder = changing[0].device, others.get("checkpoint")
    look = _Network(model, loss or CROSS_ENTROPY, device, autocast, rule)
    fresh, old = _Examples("new", new, device), _Examples("keep", keep, device)
    if groups is not None and len(groups) != len(old):
        raise InputError(
            f"dszog.torch.update: `groups` must name one for each of {len(old)} "
            f"examples to keep, got {len(groups)}. Leave it out, or give all."
        )
    # Before and after at all, and more than once at some.
    n_whole = 2 * (len(fresh) + len(old))
    n_looks = n_whole + n_checked(len(fresh)) + n_checked(len(old))
    notes = [about_mode(model)]
    if limit <= n_looks:
        raise InputError(
            f"dszog.torch.update: a look at all examples before and after takes "
            f"{n_looks:,} forward passes, got max_forwards={limit:,}. Raise it."
        )
    with unharmed(model, changing), evaluating(model, gradients=gradients):
        folder = None if folder is None else Path(folder)
        seed = seed_of(seed, take_start(folder, bool(others.get("resume")), named))
        begun = time.perf_counter()
        with torch.no_grad():
            first = look.all_of(old)
            old.check_finite(first)
            checks = others.get("on_failure", "raise") == "raise"
            before = look.scores(fresh, first, checks=checks)
        bound, kept = look.kept(first, slack)
        if not len(kept):
            raise InputError(
                "dszog.torch.update: no example of `keep` was right before, so there "
                "is nothing to keep. Check the order of targets, or use rule='loss'."
            )
        losses = TorchLosses(lambda i: look.losses(*fresh.at(i)), len(fresh))
        values = TorchConstraints(
            lambda j: look.values(*old.at(kept[j])) + bound[j], len(kept)
        )
        for functions, examples in ((losses, fresh), (values, old)):
            functions.owner = f"dszog.torch.update: `{examples.name}`"
            functions.about = examples.about()
        if look.gives_tensors and fresh.fits(old):
            values.with_losses = lambda i, j: look.both(
                fresh.at(i), old.at(kept[j]), bound[j]
            )
        n_back = min(int(FOR_BACK * (limit - n_looks)) // len(old), len(BACK))
        n_left, result = limit - n_looks - n_back * len(old), None
        if max_time is not None:  # the last looks take as long as the first ones
            seconds = time.perf_counter() - begun
            n_back = min(n_back, int(FOR_BACK * max_time / seconds))
            others["max_time"] = max(max_time - (2 + n_back) * seconds, 1e-3)
        start = [one.detach().cpu().clone() for one in changing]
        n_checks = n_checked(len(losses)) + n_checked(len(values))
        if gradients:
            n_used, ended = descend(
                model,
                named,
                losses,
                values,
                optimizer=optimizer,
                n_forwards=n_left,
                options=options or {},
                seed=seed,
                **others,
            )
            n_used += n_checks
            notes.append(ended)
        else:
            try:
                result = minimize(
                    model,
                    losses,
                    values,
                    params=changing,
                    options=options,
                    max_queries=n_left + n_checks,
                    seed=seed,
                    **others,
                )
            except InputError as error:
                if "got max_queries" not in str(error):
                    raise
                needs = "one iteration and a check take"
                if "has used" in str(error):
                    needs = "the saved run has used"
                raise InputError(  # in the words of this call
                    f"dszog.torch.update: max_forwards={limit:,} leaves {n_left:,} "
                    f"beside the looks before and after, less than {needs}. Raise it."
                ) from error
            n_used = result.n_forwards
            if not PointName.of(result.x).n_moves:
                cut = Status.INTERRUPTED, Status.STOPPED_BY_CALLBACK
                notes += [NOT_LEFT, UNFINISHED if result.status in cut else MORE_PASSES]
            if result.are_losses_flat:
                notes = [one for one in notes if one != MORE_PASSES] + [FLAT_LOSSES]
        with torch.no_grad():

            def looked() -> tuple[Any, Any]:
                values = look.all_of(old)
                return values, look.worse(first, values, slack)

            last, worse, share, n_tried = _back(looked, changing, start, BACK[:n_back])
            n_used += n_tried * len(old)
            after = look.scores(fresh, last)
            why = _why_worse(before, after, int(worse.sum()) / len(kept))
            if gradients and why:
                for one, was in zip(changing, start, strict=True):
                    one.copy_(was)
                last, worse, after = first, torch.zeros_like(worse), before
                notes.append(WENT_BACK.format(why=why))
            elif share < 1.0:
                notes.append(
                    f"It went back to {share} of the way: none is worse there."
                )
            elif bool(worse.any()):
                cures = ["more passes"]
                if not (gradients or FLAT_LOSSES in notes):
                    cures.append("gradients=True")
                cures += ["more slack"] if rule == "loss" else []
                notes.append(f"Some are worse: {' or '.join(cures)} may mend that.")
    where = np.flatnonzero(worse.cpu().numpy())
    return UpdateReport(
        regressions=where,
        n_kept=len(kept),
        n_wrong_before=len(old) - len(kept),
        groups=_by_group(groups, kept.cpu().numpy(), where),
        before=before,
        after=after,
        kept_values=tuple(one[kept].double().cpu().numpy() for one in (first, last)),
        kept_is_worse=worse[kept].cpu().numpy(),
        n_forwards=n_whole + n_used,
        seed=seed,
        note=" ".join(filter(None, notes)),
        result=result,
    )


# ------------------------------------------------------------------ what is looked at


class _Examples:
    """Pairs of inputs and targets, by index, on a device."""

    def __init__(self, name: str, given: Any, device: Any) -> None:
        self.name, self._device = name, device
        self._pair = None
        if isinstance(given, (tuple, list)) and len(given) == 2:
            inputs, targets = given
            if not all(isinstance(one, torch.Tensor) for one in given):
                raise InputTypeError(
                    f"dszog.torch.update: `{name}` must be two tensors or a dataset, "
                    f"got {type(inputs).__name__} and {type(targets).__name__}. Make "
                    "them: torch.as_tensor(...), several inputs of an example one "
                    "tensor that the network takes apart."
                )
            if len(inputs) != len(targets):
                raise InputError(
                    f"dszog.torch.update: `{name}` has {len(inputs)} inputs and "
                    f"{len(targets)} targets. Give one target for each."
                )
            if "meta" in (inputs.device.type, targets.device.type):
                raise InputError(
                    f"dszog.torch.update: `{name}` is on the device 'meta', where "
                    "tensors have shapes and no values. Give tensors with values."
                )
            self._pair = inputs.to(device), targets.to(device)
            self._n = len(inputs)
        elif (
            hasattr(given, "__getitem__")
            and hasattr(given, "__len__")
            and not isinstance(given, torch.utils.data.IterableDataset)
        ):
            self._given, self._n = given, len(given)
        else:
            raise InputTypeError(
                f"dszog.torch.update: `{name}` must be two tensors or a map-style "
                f"dataset with len(), got {type(given).__name__}. Examples are drawn "
                "by their number: a stream will not do; of a DataLoader pass .dataset."
            )
        if not self._n:
            raise InputError(f"dszog.torch.update: `{name}` is empty. Give examples.")

    def __len__(self) -> int:
        return self._n

    def at(self, indices: Any) -> tuple[Any, Any]:
        """Return the inputs and targets of some."""
        if self._pair is not None:
            return self._pair[0][indices], _long(self._pair[1][indices])
        pairs = [self._read(i) for i in indices.tolist()]
        if not isinstance(pairs[0], (tuple, list)) or len(pairs[0]) != 2:
            raise InputTypeError(
                f"dszog.torch.update: an example of `{self.name}` must be a pair of "
                f"input and target, got {type(pairs[0]).__name__}. Wrap the dataset in "
                "one that returns pairs."
            )
        try:
            inputs, targets = torch.utils.data.default_collate(pairs)
        except (RuntimeError, TypeError) as error:
            raise InputTypeError(
                f"dszog.torch.update: examples of `{self.name}` cannot be stacked: "
                f"{error}. Wrap the dataset in one that returns tensors of one shape."
            ) from error
        for one, what in ((inputs, "input"), (targets, "target")):
            if not isinstance(one, torch.Tensor):
                raise InputTypeError(
                    f"dszog.torch.update: the {what} of an example of `{self.name}` "
                    f"must be a tensor or a number, got {type(one).__name__}. Wrap the "
                    "dataset in one that returns such."
                )
        return inputs.to(self._device), _long(targets.to(self._device))

    def _read(self, i: int) -> Any:
        try:
            return self._given[i]
        except Exception as error:  # code of the user's
            raise InputError(
                f"dszog.torch.update: example {i} of `{self.name}` cannot be read: "
                f"{type(error).__name__}: {error}. Mend it, or leave it out: "
                "torch.utils.data.Subset."
            ) from error

    def about(self) -> str:
        """Return what tells these examples from others, by a look at some."""
        n = min(self._n, N_CHECKED)
        some = torch.arange(n, device=self._device) * self._n // n
        inputs, targets = self.at(some)
        first, again = digest_of((inputs, targets)), digest_of(self.at(some))
        shown = first[:12] if first == again else "others each time"
        return f"{self._n} of {inputs.dtype} {tuple(inputs.shape[1:])} #{shown}"

    def fits(self, other: _Examples) -> bool:
        """Whether one pass can take examples of both together."""
        first = torch.zeros(1, dtype=torch.long, device=self._device)
        own, others = self.at(first)[0], other.at(first)[0]
        return bool(own.shape == others.shape and own.dtype == others.dtype)

    def check_finite(self, values: Any) -> None:
        """Refuse values of all examples, of which some are no numbers."""
        bad = (~values.isfinite()).nonzero().squeeze(1)
        if not len(bad):
            return
        given = self.at(bad[:1])[0]
        others = given[~given.isfinite()]
        why = (
            "Its input is finite. Check its target and the network, and compute losses "
            "in float32."
        )
        if len(others):
            why = f"Its input holds {float(others[0])}. Mend it, or leave it out."
        n_more = len(bad) - 1
        more = f" (and {n_more:,} more: {bad[1:4].tolist()})" if n_more else ""
        raise InputError(
            f"dszog.torch.update: example {int(bad[0])} of `{self.name}`{more} gives "
            f"a value that is not finite. {why}"
        )


class _Network:
    """What a network gives for examples: losses, margins, and by how much worse."""

    def __init__(
        self, model: Any, loss: Any, device: Any, autocast: Any, rule: Rule
    ) -> None:
        self._model, self._loss, self._rule = model, loss, rule
        self._device, self._autocast = device, autocast
        self.gives_tensors = True  # else only the loss knows what to do with outputs

    def _outputs(self, inputs: Any) -> Any:
        context: Any = nullcontext()
        if self._autocast is not None:
            context = torch.autocast(self._device.type, self._autocast)
        try:
            with context:
                outputs = self._model(inputs)
        except RuntimeError as error:
            kind = next(self._model.parameters()).dtype
            if inputs.dtype == kind or "type" not in str(error):
                raise
            raise InputTypeError(
                "dszog.torch.update: the network cannot take inputs of "
                f"{inputs.dtype}: {error}. Its weights are {kind}: pass "
                f"inputs.to({kind})."
            ) from error
        if not isinstance(outputs, torch.Tensor):
            self.gives_tensors = False
            if self._rule == "loss" and self._loss is not CROSS_ENTROPY:
                return outputs
            raise InputTypeError(
                "dszog.torch.update: the network must return a tensor, got "
                f"{type(outputs).__name__}. Use rule='loss' with a loss that takes "
                "such; or wrap the network in a module that returns its part."
            )
        if self._rule == "right" and (outputs.ndim != 2 or outputs.shape[1] < 2):
            raise InputError(
                "dszog.torch.update: rule='right' needs one output for each class, got "
                f"outputs of shape {tuple(outputs.shape)}. Use rule='loss'; or, of one "
                "logit z, have the network return torch.cat([-z, z], 1)."
            )
        return outputs.double() if outputs.dtype == torch.float64 else outputs.float()

    def losses(self, inputs: Any, targets: Any) -> Any:
        """Return the loss of each of some examples."""
        return self._each(self._outputs(inputs), targets)

    def values(self, inputs: Any, targets: Any) -> Any:
        """Return what must not rise: less the margin, or the loss."""
        return self._value(self._outputs(inputs), targets)

    def both(self, new: Any, old: Any, bound: Any) -> tuple[Any, Any]:
        """Return losses and constraints by one pass."""
        outputs, n = self._outputs(torch.cat([new[0], old[0]])), len(new[0])
        return self._each(outputs[:n], new[1]), self._value(outputs[n:], old[1]) + bound

    def _each(self, outputs: Any, targets: Any) -> Any:
        return one_for_each(
            self._loss(outputs, targets), targets, "dszog.torch.update: `loss`"
        )

    def _value(self, outputs: Any, targets: Any) -> Any:
        if self._rule == "loss":
            return self._each(outputs, targets)
        places = targets.unsqueeze(-1)
        own = outputs.gather(-1, places).squeeze(-1)
        return outputs.scatter(-1, places, -torch.inf).amax(-1) - own

    def all_of(self, examples: _Examples) -> Any:
        """Return the values of all examples."""
        return torch.cat(self._looked(examples, self._value))

    def _looked(self, examples: _Examples, see: Callable[[Any, Any], Any]) -> list[Any]:
        """Return what is seen in outputs and targets, checked, of all examples."""

        def look(some: Any) -> Any:
            inputs, targets = examples.at(some)
            try:
                outputs = self._outputs(inputs)
            except DszogError:
                raise
            except (RuntimeError, IndexError, ValueError) as error:
                if device_failure(error) is not None:
                    raise
                raise InputError(
                    f"dszog.torch.update: the network cannot take inputs of shape "
                    f"{tuple(inputs.shape)} of `{examples.name}`: "
                    f"{type(error).__name__}: {error}. Give inputs as in training."
                ) from error
            if self._rule == "right":
                _check_classes(examples.name, some, targets, outputs.shape[1])
            return see(outputs, targets)

        return in_parts(look, torch.arange(len(examples), device=self._device))

    def kept(self, first: Any, slack: float) -> tuple[Any, Any]:
        """Return what to add to values for constraints, and the examples they are."""
        if self._rule == "loss":
            return -first - slack, torch.arange(len(first), device=first.device)
        kept = (first < 0.0).nonzero().squeeze(1)
        return torch.full_like(first[kept], MARGIN), kept

    def worse(self, first: Any, last: Any, slack: float) -> Any:
        """Return which examples got worse; a value that is no number is worse."""
        if self._rule == "loss":
            return ~(last <= first + slack)
        return (first < 0.0) & ~(last < 0.0)

    def scores(self, new: _Examples, kept: Any, *, checks: bool = False) -> Scores:
        """Return how the network does on all examples; of `keep`, by their values."""
        classes = self._rule == "right"

        def see(outputs: Any, targets: Any) -> tuple[Any, int]:
            each = self._each(outputs, targets)
            right = int((self._value(outputs, targets) < 0).sum()) if classes else 0
            return each, right

        seen = self._looked(new, see)
        if checks:
            new.check_finite(torch.cat([each for each, _ in seen]))
        loss = sum(float(each.double().sum()) for each, _ in seen) / len(new)
        if not classes:
            return Scores(new_loss=loss)
        right = sum(n for _, n in seen) / len(new)
        kept_right = float((kept < 0).double().mean())
        return Scores(new_loss=loss, new_accuracy=right, kept_accuracy=kept_right)


def _why_worse(before: Scores, after: Scores, share: float) -> str:
    """Return why an end is no better than the start; nothing if it may be.

    `share` is that of kept examples that got worse.
    """
    learned = after.new_accuracy - before.new_accuracy  # perhaps `nan`
    has_less_loss = after.new_loss < before.new_loss
    if not learned > 0.0 and (not has_less_loss or (learned <= 0.0 and share > 0.0)):
        right = f", {after.new_accuracy:.2%} of them right" if learned <= 0.0 else ""
        return f"new examples had a loss of {after.new_loss:.4g}{right}"
    if learned < share > MANY:
        return f"{share:.2%} of the kept examples had got worse"
    return ""


def _check_classes(name: str, which: Any, targets: Any, n: int) -> None:
    """Refuse targets that are no numbers of classes."""
    if targets.ndim != 1 or targets.dtype != torch.long:
        advice = "Use" if targets.ndim > 1 else "Pass targets.long(), or use"
        if targets.ndim == 2 and targets.shape[1] in (1, n):
            part = "squeeze(1)" if targets.shape[1] == 1 else "argmax(1)"
            advice = f"Pass targets.{part}.long(), or use"
        raise InputError(
            "dszog.torch.update: rule='right' needs the number of a class as target, "
            f"got targets of {targets.dtype} and shape {tuple(targets.shape)}. "
            f"{advice} rule='loss'."
        )
    wrong = ((targets < 0) | (targets >= n)).nonzero().squeeze(1)
    if len(wrong):
        raise InputError(
            f"dszog.torch.update: targets must be between 0 and {n - 1}, as the "
            f"network has {n} outputs, got {int(targets[wrong[0]])} for example "
            f"{int(which[wrong[0]])} of `{name}`. Check them."
        )


def _check_others(
    others: Mapping[str, Any], changing: Sequence[Any], optimizer: Any, gradients: bool
) -> None:
    """Refuse arguments that do not exist, or do not go together."""
    known = {*inspect.signature(minimize).parameters, *OTHERS} - NOT_OURS
    check_names("dszog.torch.update", others, update, known)
    for name in others:
        if gradients and name not in ("checkpoint", "resume", "progress", "callback"):
            raise InputError(
                f"dszog.torch.update: {name!r} goes with gradients=False. "
                "Leave it out, or write the loop with dszog.torch.DSZOG."
            )
    if others.get("resume") and others.get("checkpoint") is None:
        raise InputError(
            "dszog.torch.update: `resume` needs the folder of the checkpoints, got "
            "none. Give it: checkpoint='folder'; or leave the other out."
        )
    if optimizer is None:
        coarse = {one.dtype for one in changing} - {torch.float32, torch.float64}
        if gradients and coarse:
            raise InputError(
                "dszog.torch.update: Adam needs weights in float32, as its steps are "
                f"lost in {coarse.pop()}. Call model.float() and pass autocast="
                "torch.bfloat16; or give an optimizer for such weights."
            )
        return
    if not gradients:
        raise InputError(
            "dszog.torch.update: an optimiser needs gradients, got optimizer= with "
            "gradients=False. Set gradients=True."
        )
    check_optimizer("dszog.torch.update", optimizer, changing)


def _long(targets: Any) -> Any:
    """Return whole numbers as PyTorch takes them for classes; others as they are."""
    others = targets.is_floating_point() or targets.is_complex()
    return targets if others or targets.dtype == torch.bool else targets.long()


def _back(
    looked: Callable[[], tuple[Any, Any]],
    changing: Sequence[Any],
    start: Sequence[Any],
    shares: Sequence[float],
) -> tuple[Any, Any, float, int]:
    """Go back to the first of some shares of the way where nothing got worse, if any.

    Return what a look at the kept examples says there, the share, and how many were
    tried.
    """
    end = [one.detach().cpu().clone() for one in changing]
    found = looked()
    if not bool(found[1].any()):
        return *found, 1.0, 0
    for n, share in enumerate(shares, 1):
        for one, a, b in zip(changing, start, end, strict=True):
            one.copy_(a + share * (b - a))
        there = looked()
        if not bool(there[1].any()):
            return *there, share, n
    for one, b in zip(changing, end, strict=True):
        one.copy_(b)
    return *found, 1.0, len(shares)


def _by_group(
    groups: Sequence[Any] | None, kept: IntArray, worse: IntArray
) -> dict[str, tuple[int, int]]:
    if groups is None:
        return {}
    values = groups.tolist() if hasattr(groups, "tolist") else groups
    names = [str(one) for one in values]
    n_kept = Counter(names[i] for i in kept.tolist())
    n_worse = Counter(names[i] for i in worse.tolist())
    order = sorted(n_kept, key=lambda name: (name.isdigit() and int(name), name))
    return {name: (n_kept[name], n_worse[name]) for name in order}
