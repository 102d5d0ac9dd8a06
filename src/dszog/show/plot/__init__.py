"""Pictures of runs: one, or several beside each other. Needs the extra ``viz``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dszog.contract.validation import check_choice, shown
from dszog.errors import InputError, InputTypeError, MissingExtraError
from dszog.show.plot.series import AXES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RUNS = 14  # that colours and dashes can tell apart

__all__ = ["compare", "plot_run"]


def plot_run(
    result: Any, against: str = "queries", *, figure: Figure | None = None
) -> Figure:
    """Draw one run; the same as ``result.plot()``, where it is described."""
    check_choice("plot", "against", against, AXES)
    _check_run("plot", result, "the run")
    figure = _figure("plot", (12.0, 7.5), figure)
    from dszog.show.plot.one import draw_run

    draw_run(figure, result, against)
    return figure


def plot_update(report: Any, *, figure: Figure | None = None) -> Figure:
    """Draw an update of a network; the same as ``report.plot()``."""
    figure = _figure("plot", (10.0, 4.5), figure)
    from dszog.show.plot.update import draw_update

    draw_update(figure, report)
    return figure


def compare(
    results: Sequence[Any],
    labels: Sequence[str] | None = None,
    *,
    against: str = "queries",
    figure: Figure | None = None,
) -> Figure:
    """Draw several runs in the same panels, and table what was found at their ends.

    Parameters
    ----------
    results : sequence of Result
        Of `minimize`, fourteen at most.
    labels : sequence of str, optional
        One for each; the method and the seed if not given.
    against : {"queries", "time", "iterations"}
        What to draw against.
    figure : matplotlib.figure.Figure, optional
        An empty one to draw into.

    Returns
    -------
    matplotlib.figure.Figure
        Lines are running medians of what was seen in batches; the mark at the end of
        each is the returned point, evaluated afresh.
    """
    check_choice("compare", "against", against, AXES)
    if isinstance(results, dict) or not isinstance(results, Sequence):
        raise InputTypeError(
            f"compare: `results` must be a list of results, got a "
            f"{type(results).__name__}. Pass compare([first, second], labels=[...]); "
            "for one run use result.plot()."
        )
    if not 1 <= len(results) <= MOST_RUNS:
        raise InputError(
            f"compare: between 1 and {MOST_RUNS} runs can be told apart, got "
            f"{len(results)}. Draw fewer at a time."
        )
    for number, result in enumerate(results):
        _check_run("compare", result, f"run {number}")
    names = _labels(results, labels)
    figure = _figure("compare", (11.0, 8.0), figure)
    from dszog.show.plot.several import draw_runs

    draw_runs(figure, list(results), names, against)
    return figure


def _labels(results: Sequence[Any], labels: Sequence[str] | None) -> list[str]:
    if labels is None:
        names = [f"{type(r.method).__name__}, seed {r.seed}" for r in results]
        if len(set(names)) == len(names):
            return names
        return [f"{number}: {name}" for number, name in enumerate(names)]
    if isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
        raise InputTypeError(
            f"compare: `labels` must be a list of strings, got {shown(labels)}. "
            "For example labels=['sparse', 'uniform']."
        )
    if len(labels) != len(results):
        raise InputError(
            f"compare: `labels` has {len(labels)} entries, got {len(results)} runs. "
            "Give one for each."
        )
    return list(labels)


def _check_run(owner: str, result: Any, name: str) -> None:
    if not isinstance(result, dict) or "history" not in result:
        raise InputTypeError(
            f"{owner}: {name} must be a result of dszog.minimize, got {shown(result)}. "
            "Pass what minimize returned."
        )
    if not len(result["history"]["iteration"]):
        raise InputError(
            f"{owner}: there is nothing to draw, got an empty history: {name} ended "
            "before its first iteration. print(result) shows what is known."
        )


def _figure(owner: str, size: tuple[float, float], given: Figure | None) -> Figure:
    try:
        from matplotlib.figure import Figure

        from dszog.show.plot.panels import Picture
    except ImportError as error:
        raise MissingExtraError.of(owner, "matplotlib", "viz") from error
    if given is None:
        return Picture(figsize=size)
    if not isinstance(given, Figure):
        raise InputTypeError(
            f"{owner}: `figure` must be a matplotlib Figure, got {shown(given)}. For "
            "example matplotlib.pyplot.figure(figsize=(12, 7.5))."
        )
    if given.axes or given.subfigs:
        raise InputError(
            f"{owner}: `figure` must be empty, got one with axes. Make a new one."
        )
    return given
