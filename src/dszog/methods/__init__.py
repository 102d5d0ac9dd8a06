"""The methods: frozen dataclasses of hyper-parameters that ask and are told."""

from dszog.maths.random_stream import stream
from dszog.methods.accszofw import AccSZOFW
from dszog.methods.accszofw_storm import AccSZOFWStorm
from dszog.methods.acczomda import AccZOM
from dszog.methods.base import Info, Method, State
from dszog.methods.dszog import DSZOG, DSZOGState
from dszog.methods.fcgs import FCGS
from dszog.methods.feasible import FeasibleMethod, FeasibleState
from dszog.methods.fzcgs import FZCGS
from dszog.methods.fzfw import FZFW
from dszog.methods.sampled_sqp import SampledSQP, SampledSQPState
from dszog.methods.zopsgd import ZOPSGD
from dszog.methods.zoscgd import ZOSCGD

METHODS: dict[str, type[Method]] = {
    "dszog": DSZOG,
    "sampled_sqp": SampledSQP,
    "zoscgd": ZOSCGD,
    "fzfw": FZFW,
    "fzcgs": FZCGS,
    "fcgs": FCGS,
    "accszofw": AccSZOFW,
    "accszofw_storm": AccSZOFWStorm,
    "zopsgd": ZOPSGD,
    "acczomda": AccZOM,
}
"""Every method by the name `minimize(method=...)` knows it by."""

__all__ = [
    "DSZOG",
    "FCGS",
    "FZCGS",
    "FZFW",
    "METHODS",
    "ZOPSGD",
    "ZOSCGD",
    "AccSZOFW",
    "AccSZOFWStorm",
    "AccZOM",
    "DSZOGState",
    "FeasibleMethod",
    "FeasibleState",
    "Info",
    "Method",
    "SampledSQP",
    "SampledSQPState",
    "State",
    "stream",
]
