"""The data of the paper: real, generated, and stand-ins for the real ones.

>>> from dszog_paper.data import generate, paper_split
>>> split = paper_split(generate("gen", seed=1), seed=1)
>>> split.train.X.shape, split.test.X.shape, split.validation.X.shape
((500, 50), (300, 50), (200, 50))
"""

from dszog_paper.data.fetch import fetch, find
from dszog_paper.data.generate import GENERATED, generate
from dszog_paper.data.parsers import load
from dszog_paper.data.samples import Samples, Split, paper_split
from dszog_paper.data.sources import DATA_SETS, DataFile
from dszog_paper.data.stand_ins import load_or_stand_in, stand_in, write_stand_in

__all__ = [
    "DATA_SETS",
    "GENERATED",
    "DataFile",
    "Samples",
    "Split",
    "fetch",
    "find",
    "generate",
    "load",
    "load_or_stand_in",
    "paper_split",
    "stand_in",
    "write_stand_in",
]
