"""The commands, and what each of them takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

import dszog
from dszog.cli.demo import run_demo
from dszog.errors import DszogError

app = App(
    name="dszog",
    help=(
        "Minimise what can only be evaluated, under more constraints than one can "
        "look at."
    ),
    version=dszog.__version__,
)


@app.command
def demo(
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("dszog-demo"),
    seed: int = 0,
    max_queries: int = 3_000_000,
) -> None:
    """Solve a problem with 62,000 constraints from start to end.

    Trains a classifier on generated data so that no positive row scores more than 0.3
    below any negative one, by evaluations alone. Takes well under a minute and needs
    no data. Writes a picture and the figures into the output folder.

    Parameters
    ----------
    output
        Folder for the picture and the figures.
    seed
        Of the data and of the run.
    max_queries
        Values of losses and constraints that may be evaluated in all.
    """
    console = Console()
    try:
        code = run_demo(console, output, seed, max_queries)
    except DszogError as error:
        console.print(str(error), style="red", markup=False)
        sys.exit(1)
    sys.exit(code)
