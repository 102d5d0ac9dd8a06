"""Pictures of runs and of updates of networks. Needs the extra ``viz``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dszog.contract.validation import check_choice, refused
from dszog.errors import InputError, InputTypeError, MissingExtraError
from dszog.show.plot.series import AXES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_run(
    result: Any, against: str = "queries", *, figure: Figure | None = None
) -> Figure:
    """Draw one run; the same as ``result.plot()``, where it is described."""
    check_choice("plot", "against", against, AXES)
    if not len(result["history"]["iteration"]):
        raise InputError(
            "plot: there is nothing to draw, got an empty history: the run ended "
            "before its first iteration. print(result) shows what is known."
        )
    figure = _figure((12.0, 7.5), figure)
    from dszog.show.plot.one import draw_run

    draw_run(figure, result, against)
    return figure


def plot_update(report: Any, *, figure: Figure | None = None) -> Figure:
    """Draw an update of a network; the same as ``report.plot()``."""
    figure = _figure((10.0, 4.5), figure)
    from dszog.show.plot.update import draw_update

    draw_update(figure, report)
    return figure


def _figure(size: tuple[float, float], given: Figure | None) -> Figure:
    try:
        from matplotlib.figure import Figure

        from dszog.show.plot.panels import Picture
    except ImportError as error:
        raise MissingExtraError.of("plot", "matplotlib", "viz") from error
    if given is None:
        return Picture(figsize=size)
    if not isinstance(given, Figure):
        must = "be a matplotlib Figure"
        cure = "For example matplotlib.pyplot.figure(figsize=(12, 7.5))."
        raise refused("plot", "figure", must, given, cure, InputTypeError)
    if given.axes or given.subfigs:
        raise InputError(
            "plot: `figure` must be empty, got one with axes. Make a new one."
        )
    return given
