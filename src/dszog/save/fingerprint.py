"""What has to be the same for a run to go on, and what should be."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from typing import Any

import numpy as np
import scipy

from dszog import kernels
from dszog._version import VERSION
from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import printable
from dszog.problem import Problem
from dszog.save.encoding import default_settings, settings_of

MOST_SHOWN = 60  # characters of a value in a message
_HASH = re.compile(r"(^'| ?#)[0-9a-f]{16}'?$")  # which tells values apart, not people


def fingerprint(
    problem: Problem,
    method: Any,
    *,
    constraint_tol: float,
    on_failure: str,
    weights: tuple[IntArray, FloatArray] | None,
) -> dict[str, str]:
    """Return all that decides how a run goes, but for the functions themselves."""
    given = facts_of(problem.size, method) | {
        "x0": print_of(problem.x0),
        "lower bounds": print_of(problem.lower),
        "upper bounds": print_of(problem.upper),
        "x_scale": print_of(problem.x_scale),
        "tag": problem.tag,
        "constraint_tol": constraint_tol,
        "on_failure": on_failure,
        "weights": "none" if weights is None else print_of(*weights),
    }
    return {name: _short(repr(value)) for name, value in given.items()}


def facts_of(size: ProblemSize, method: Any) -> dict[str, Any]:
    """Return what is the same for a run and for a state of a method, its arrays aside.

    InputError if the method is none of the library.
    """
    return {
        "dim": size.dim,
        "number of losses": size.n_losses,
        "number of constraints": size.n_constraints,
        "gradient of the losses": size.has_gradient,
        "jacobian of the constraints": size.has_jacobian,
        **{f"method {name}": value for name, value in settings_of(method).items()},
    }


def defaults(method: Any) -> dict[str, str]:
    """Return what the fingerprint of an earlier version means where it lacks a word."""
    known = default_settings(method).items()
    return {f"method {name}": _short(repr(value)) for name, value in known}


def surroundings() -> dict[str, str]:
    """Return what the bits of a run may depend on beside that."""
    return {
        "dszog": VERSION,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "kernels": kernels.chosen().NAME,
        "Python": platform.python_version(),
        "machine": f"{sys.platform} {platform.machine()} {platform.node()}",
        "rounding": rounding(),
    }


def rounding() -> str:
    """Return a short text that two machines share only if they round alike."""
    # Of what they may round differently, by processor, BLAS and number of threads:
    # sums, products of matrices small and large, and elementary functions. Exact
    # numbers go in, so that only the operations themselves tell.
    numbers = np.arange(1, 40_001) * 0.6180339887498949 % 1.0 + 0.5
    wide, square = numbers.reshape(10, 4000), numbers[:16_384].reshape(128, 128)
    digest = hashlib.sha256()
    for found in (
        wide @ wide[0],
        wide[:, 0] @ wide,
        square @ square,
        square[:8, :8] @ square[:8, :8],
        numbers @ numbers,
        numbers.sum(),
        np.exp(wide[0]),
        np.log(wide[0]),
        np.sin(wide[0]),
    ):
        digest.update(found.tobytes())
    return f"#{digest.hexdigest()[:16]}"


def differences(there: dict[str, str], here: dict[str, str]) -> list[str]:
    """Return what differs, in words; what is there may be anybody's words."""
    return [
        f"{printable(name[:MOST_SHOWN])} "
        f"({_told(_said(there, name), _said(here, name))})"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]


def _said(facts: dict[str, str], name: str) -> str:
    """Return a fact as a person reads it, without the hash that it ends with."""
    text = facts.get(name, "nothing")
    if name == "tag" and len(text) <= MOST_SHOWN:  # whole, and maybe a hash of data
        return printable(text)
    said = _HASH.sub("", text)
    said = said if said == text else said.lstrip("'")  # whose other quote is gone
    return printable(said[: 2 * MOST_SHOWN])


def _told(there: str, here: str) -> str:
    if there != here:
        return f"{there} there, {here} here"
    if not there:
        return "others there than here"
    return f"{there} there and here, but they differ in what is not shown"


def _short(text: str) -> str:
    """Return a text that is short, and differs wherever the long one does."""
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}... #{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def print_of(*arrays: Any) -> str:
    """Return a short text that two arrays share only if they are the same bits."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    head = ", ".join(f"{entry:.6g}" for entry in arrays[0][:3])
    more = ", ..." if len(arrays[0]) > 3 else ""
    return f"[{head}{more}] #{digest.hexdigest()[:16]}"
