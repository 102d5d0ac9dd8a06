"""States and settings as JSON and arrays, bit for bit, by a list of what may occur.

A float travels as text in hexadecimal, an array beside the text. Of objects only the
frozen dataclasses listed here are written or made, with exactly their fields. What a
method was given from outside and does not change (its feasible set, the sizes of the
problem) is not written: it comes from the call that resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import freeze
from dszog.errors import CheckpointError, DszogError, InputError
from dszog.maths.distribution import (
    DenseDistribution,
    SparseDistribution,
    UniformDistribution,
)
from dszog.methods import METHODS, DSZOGState, FeasibleState, SampledSQPState, State
from dszog.methods.accszofw import AcceleratedState
from dszog.methods.linearised import LinearisedMethod, LinearisedState
from dszog.methods.sampled_sqp import parts as sampled_sqp
from dszog.methods.start import StartPass

DISTRIBUTIONS = (DenseDistribution, SparseDistribution, UniformDistribution)
TYPES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        DSZOGState,
        FeasibleState,
        AcceleratedState,
        LinearisedState,
        StartPass,
        SampledSQPState,
        *sampled_sqp.PARTS,
        *DISTRIBUTIONS,
    )
}
"""Every dataclass that a checkpoint may hold, by name."""

FROM_OUTSIDE = ("domain", "constraints", "method")  # fields that are not settings
ALONG_X = ("x", "velocity", "gradient", "previous", "long_point")  # (dim,) in a state

Arrays = list[np.ndarray[Any, Any]]


def encode(value: Any, arrays: Arrays) -> Any:
    """Return a value as JSON; arrays are appended to the list and numbered."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.float64):
        return {"float64": float(value).hex()}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, np.int64):
        return {"int64": int(value)}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [encode(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {
            "dict": [[str(key), encode(item, arrays)] for key, item in value.items()]
        }
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, ProblemSize):
        return {"size": True}
    if is_dataclass(value) and TYPES.get(type(value).__name__) is type(value):
        made = [
            [item.name, encode(getattr(value, item.name), arrays)]
            for item in fields(value)
        ]
        return {"object": [type(value).__name__, made]}
    raise CheckpointError(
        f"A {type(value).__name__} cannot be written to a checkpoint. Run without "
        "checkpoint=, or use a method of the library."
    )


def decode(tree: Any, arrays: Arrays, size: ProblemSize) -> Any:
    """Return what :func:`encode` was given; raise on anything it cannot have made."""
    try:
        return _decode(tree, arrays, size)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"its content makes no sense ({error!s:.80})") from error
    except RecursionError as error:
        raise CheckpointError("its content is nested too deeply") from error


def _decode(tree: Any, arrays: Arrays, size: ProblemSize) -> Any:
    if tree is None or isinstance(tree, (bool, int, str)):
        return tree
    (kind, content), *others = tree.items() if isinstance(tree, dict) else [("", None)]
    if others or kind not in _DECODERS:
        raise CheckpointError("its content has unknown parts")
    return _DECODERS[kind](content, arrays, size)


def _float(content: Any, arrays: Arrays, size: ProblemSize) -> float:
    return float.fromhex(content)


def _float64(content: Any, arrays: Arrays, size: ProblemSize) -> np.float64:
    return np.float64(float.fromhex(content))


def _int64(content: Any, arrays: Arrays, size: ProblemSize) -> np.int64:
    if type(content) is not int:
        raise CheckpointError("a number in it is no integer")
    return np.int64(content)


def _array(content: Any, arrays: Arrays, size: ProblemSize) -> Any:
    if type(content) is not int or not 0 <= content < len(arrays):
        raise CheckpointError("it names an array that it does not hold")
    return freeze(arrays[content])


def _list(content: Any, arrays: Arrays, size: ProblemSize) -> list[Any]:
    if not isinstance(content, list):
        raise CheckpointError("its content has unknown parts")
    return [_decode(item, arrays, size) for item in content]


def _tuple(content: Any, arrays: Arrays, size: ProblemSize) -> tuple[Any, ...]:
    return tuple(_list(content, arrays, size))


def _dict(content: Any, arrays: Arrays, size: ProblemSize) -> dict[str, Any]:
    made = {}
    for key, item in content:
        if not isinstance(key, str) or key in made:
            raise CheckpointError("a name in it stands twice or is no text")
        made[key] = _decode(item, arrays, size)
    return made


def _bytes(content: Any, arrays: Arrays, size: ProblemSize) -> bytes:
    return bytes.fromhex(content)


def _size(content: Any, arrays: Arrays, size: ProblemSize) -> ProblemSize:
    return size


def _object(content: Any, arrays: Arrays, size: ProblemSize) -> Any:
    name, items = content
    if not isinstance(name, str) or name not in TYPES:
        raise CheckpointError(f"it holds an object of unknown type {name!r:.40}")
    made = _dict(items, arrays, size)
    kind = TYPES[name]
    if set(made) != {item.name for item in fields(kind)}:
        raise CheckpointError(f"a {name} in it has other fields than it should")
    for item in fields(kind):
        if not _FITS[str(item.type)](made[item.name]):
            raise CheckpointError(f"`{item.name}` of a {name} in it has a wrong type")
    found = kind(**made)
    if not _hangs_together(found, size):
        raise CheckpointError(f"a {name} in it does not fit the problem")
    return found


_DECODERS: dict[str, Callable[[Any, Arrays, ProblemSize], Any]] = {
    "float": _float,
    "float64": _float64,
    "int64": _int64,
    "array": _array,
    "list": _list,
    "tuple": _tuple,
    "dict": _dict,
    "bytes": _bytes,
    "size": _size,
    "object": _object,
}

# ------------------------------------------------------------------- types and shapes


def _holds(kind: type[Any]) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        return isinstance(value, np.ndarray) and value.dtype == kind

    return fits


def _is(*kinds: type[Any]) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        return isinstance(value, kinds) and not isinstance(value, bool)

    return fits


_FITS: dict[str, Callable[[Any], bool]] = {
    "int": _is(int, np.int64),
    "float": _is(float),
    "FloatArray": _holds(np.float64),
    "IntArray": _holds(np.int64),
    "ProblemSize": _is(ProblemSize),
    "Phase": lambda value: value in ("origin", "look", "estimate"),
    "FeasibleState": _is(FeasibleState),
    "StartPass | None": _is(StartPass, type(None)),
    "Distribution | None": _is(*DISTRIBUTIONS, type(None)),
    "SqpPhase": lambda value: value in sampled_sqp.PHASES,
    "tuple[Look, ...]": lambda value: (
        isinstance(value, tuple)
        and len(value) > 0
        and all(isinstance(item, sampled_sqp.Look) for item in value)
    ),
    **{part.__name__: _is(part) for part in sampled_sqp.PARTS},
}
"""How each annotation of a listed dataclass is checked."""


def _hangs_together(made: Any, size: ProblemSize) -> bool:
    """Whether the shapes of an object fit each other and the problem."""
    if isinstance(made, StartPass):
        return _alike(made.indices, made.penalties) and made.n_seen >= 0
    if isinstance(made, DISTRIBUTIONS):
        if made.n_constraints != size.n_constraints:
            return False
        if isinstance(made, DenseDistribution):
            return _alike(made.weights, made.gradient, made.memory)
        if isinstance(made, SparseDistribution):
            indices = made.indices
            return _alike(indices, made.weights, made.gradient, made.memory) and bool(
                (np.diff(indices) > 0).all()
                and (indices >= 0).all()
                and (indices < made.n_constraints).all()
            )
        return True
    if isinstance(made, sampled_sqp.PARTS):
        return made.fits(size)
    along = [getattr(made, name) for name in ALONG_X if hasattr(made, name)]
    fits = all(vector.shape == (size.dim,) for vector in along)
    if isinstance(made, LinearisedState):
        fits &= made.values.ndim == made.at_origin.ndim == 1
        fits &= made.jacobian.shape == (len(made.jacobian), size.dim)
    if isinstance(made, SampledSQPState):
        fits &= made.fits(size)
    fits &= isinstance(made, State) and 0 <= made.seed < 2**64
    return fits and 0 <= made.iteration < 2**62


def _alike(*vectors: np.ndarray[Any, Any]) -> bool:
    first = vectors[0].shape
    return len(first) == 1 and all(vector.shape == first for vector in vectors)


# --------------------------------------------------------------------------- settings


def settings_of(method: Any) -> dict[str, Any]:
    """Return what a method of the library is set to, but for its feasible set."""
    if isinstance(method, LinearisedMethod):
        return {
            "type": "LinearisedMethod",
            "retract": method.retract,
            **{
                f"method.{name}": value
                for name, value in settings_of(method.method).items()
            },
        }
    if type(method) not in METHODS.values():
        raise InputError(
            f"minimize: `checkpoint` needs a method of the library, got "
            f"{type(method).__name__}, of which nothing is known. Leave it out."
        )
    return {"type": type(method).__name__} | {
        item.name: getattr(method, item.name)
        for item in fields(method)
        if item.name not in FROM_OUTSIDE
    }


def with_settings(method: Any, settings: Any) -> Any:
    """Return a method of the same type with other settings."""
    mine = settings_of(method)
    if not isinstance(settings, dict) or set(settings) != set(mine):
        raise CheckpointError("it holds settings of another method")
    if isinstance(method, LinearisedMethod):
        inner = {
            name.removeprefix("method."): value
            for name, value in settings.items()
            if name.startswith("method.")
        }
        return replace(method, method=with_settings(method.method, inner))
    if settings["type"] != mine["type"]:
        raise CheckpointError("it holds settings of another method")
    changes = {name: value for name, value in settings.items() if name != "type"}
    try:
        return replace(method, **changes)
    except (DszogError, TypeError) as error:
        raise CheckpointError(f"it holds settings that cannot be ({error})") from error
