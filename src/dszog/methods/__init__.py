"""The methods: frozen dataclasses of hyper-parameters that ask and are told."""

from dszog.methods.base import Info, Method, State
from dszog.methods.dszog import DSZOG, DSZOGState

METHODS: dict[str, type[Method]] = {
    "dszog": DSZOG,
}
"""Every method by the name `minimize(method=...)` knows it by."""

__all__ = ["DSZOG", "METHODS", "DSZOGState", "Info", "Method", "State"]
