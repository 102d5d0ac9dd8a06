"""`dszog update`: a network and its examples in, an updated one and a report out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from dszog.cli.files import check_output, make_output, write_text
from dszog.cli.loading import load_object
from dszog.cli.options import Count, Flag, Many, OutputFolder
from dszog.cli.talk import DONE, INTERRUPTED, NO_SUCCESS, say
from dszog.errors import InputError, MissingExtraError

WEIGHTS, REPORT, RUN = "weights.safetensors", "report.txt", "run"
PICTURE = "report.png"


def update(
    target: str,
    /,
    *,
    output: OutputFolder = Path("dszog-update"),
    gradients: Flag = False,
    rule: Literal["right", "loss"] = "right",
    slack: float = 0.0,
    params: Many = (),
    max_forwards: Count = 10**6,
    seed: int = 0,
    resume: Flag = False,
) -> int:
    """Update a network on new examples so that no known one gets worse.

    The function in the file returns a network, new examples and examples to keep, and a
    loss if it is not the cross-entropy: `return model, (inputs, targets), old_set`. The
    run is saved in the output folder. Needs PyTorch.

    For example:

    dszog update model.py:factory --max-forwards 1e7

    dszog update model.py:factory --gradients -o updated --resume

    Exit codes: 0 no kept example got worse; 3 some did; 130 Ctrl-C; 2 wrong usage; 1
    other errors.

    Parameters
    ----------
    target
        FILE.py:function. The file is executed.
    output
        Folder for the weights, the report, its picture and the saved run.
    gradients
        Use gradients, where the network has them.
    rule
        What it means to get worse: right is an example that was classified rightly and
        is not any more, loss one whose loss rose by more than --slack.
    slack
        By how much losses may rise.
    params
        Parts of the names of weights that may change; all if not given.
    max_forwards
        Examples that may go through the network, all looks included.
    seed
        Random seed: same seed, same weights.
    resume
        Go on with the run that the output folder holds.
    """
    check_output(output)
    given = load_object(target, "update")
    if not isinstance(given, (tuple, list)) or len(given) not in (3, 4):
        raise InputError(
            f"{target!r} must return (model, new, keep) or (model, new, keep, loss), "
            f"got {type(given).__name__}. Return these."
        )
    try:
        import dszog.torch as networks
        from dszog.torch.moves import save_tensors
    except ImportError as error:
        raise MissingExtraError.of("dszog update", error.name, "torch") from error
    make_output(output)
    report = networks.update(
        *given,
        rule=rule,
        slack=slack,
        gradients=gradients,
        max_forwards=max_forwards,
        seed=seed,
        checkpoint=output / RUN,
        resume=resume,
        params=list(params) or "all",
    )
    tensors = {k: v.cpu().contiguous() for k, v in given[0].state_dict().items()}
    save_tensors(output / WEIGHTS, _apart(tensors))
    write_text(output / REPORT, f"{report}\n")
    with suppress(MissingExtraError):  # without matplotlib there is no picture
        report.plot().savefig(output / PICTURE)
    say(Console(), f"{report}\nweights   {output / WEIGHTS}")
    if "The run was interrupted" in str(report):
        return INTERRUPTED
    return NO_SUCCESS if len(report.regressions) else DONE


def _apart(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return tensors of which none shares memory with another: weights may be tied."""
    seen: set[int] = set()
    for name, one in tensors.items():
        tensors[name] = one.clone() if one.data_ptr() in seen else one
        seen.add(one.data_ptr())
    return tensors
