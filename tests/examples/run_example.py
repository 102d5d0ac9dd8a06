"""Run an example as the gallery does, and save its pictures: EXAMPLE FOLDER."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl


def main(example: str, folder: str) -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    def keep(*_: Any, **__: Any) -> None:
        """Stay with the figures: there is nobody to show them to."""

    plt.show = keep  # on some systems it warns
    sys.argv = [example]
    runpy.run_path(example, run_name="__main__")
    for number in plt.get_fignums():
        plt.figure(number).savefig(Path(folder) / f"{number}.png", dpi=60)


if __name__ == "__main__":
    main(*sys.argv[1:])
