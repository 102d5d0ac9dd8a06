"""The command `dszog`, with all that it can do."""

from __future__ import annotations

from typing import Literal

from cyclopts import App

import dszog
from dszog.cli.bench import bench
from dszog.cli.demo import demo
from dszog.cli.fit import fit
from dszog.cli.paper import paper
from dszog.cli.predict import predict
from dszog.cli.solve import solve

app = App(
    name="dszog",
    help=(
        "Minimise what can only be evaluated, under more constraints than one can "
        "look at."
    ),
    version=dszog.__version__,
    suppress_keyboard_interrupt=False,  # which would end without a word
)


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a completion script for a shell.

    For example:

    dszog completion bash >> ~/.bashrc

    dszog completion zsh > ~/.zfunc/_dszog

    dszog completion fish > ~/.config/fish/completions/dszog.fish

    Parameters
    ----------
    shell
        bash, zsh or fish.
    """
    print(app.generate_completion(prog_name="dszog", shell=shell))


for command in (demo, solve, fit, predict, paper, bench):
    app.command(command)
