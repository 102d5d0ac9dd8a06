"""All measures, by the name that the command takes."""

from __future__ import annotations

from dszog_bench.a9a import whole_a9a
from dszog_bench.costs import (
    a9a_timing,
    against_plain,
    comforts,
    memory,
    over_constraints,
    slow_black_box,
)
from dszog_bench.families import FIRST_SEED as FIRST_OF_FAMILIES
from dszog_bench.families import families
from dszog_bench.grid.measure import FIRST_SEED as FIRST_OF_GRID
from dszog_bench.grid.measure import grid
from dszog_bench.peers import peers
from dszog_bench.records import Measure
from dszog_bench.suites import suites, suites_choosing
from dszog_bench.wall import wall

BY_DEFAULT: dict[str, Measure] = {
    "a9a": whole_a9a,
    "iteration": a9a_timing,
    "slow-black-box": slow_black_box,
    "constraints": over_constraints,
    "plain": against_plain,
    "memory": memory,
    "comforts": comforts,
}
"""Those that are made if none is named: what the library costs, in minutes."""

MEASURES: dict[str, Measure] = {
    **BY_DEFAULT,
    "peers": peers,
    "grid": grid,
    "suites": suites,
    "suites-choosing": suites_choosing,
    "families": families,
    "wall": wall,
}

FIRST_SEEDS = {"grid": FIRST_OF_GRID} | dict.fromkeys(
    ("peers", "families", "wall"), FIRST_OF_FAMILIES
)
"""Of measures that are made with several seeds; all others have the seed 0."""
