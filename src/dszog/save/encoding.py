"""Runs, states and settings as JSON and arrays, by a list of what may occur.

A float travels as text in hexadecimal, an array beside the text. Of objects only the
dataclasses and named tuples listed here are written or made, with exactly their fields.
What a method was given from outside and does not change (its feasible set, the sizes of
the problem) is not written: it comes from the call that resumes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from dszog.contract import Failure, ProblemSize
from dszog.contract.arrays import freeze
from dszog.errors import CheckpointError, DszogError, InputError
from dszog.evidence.certificate import CallCounts, Certificate, Feasibility
from dszog.evidence.stationarity import Stationarity
from dszog.maths.distribution import (
    DenseDistribution,
    Distribution,
    SparseDistribution,
    UniformDistribution,
)
from dszog.methods import METHODS, DSZOGState, FeasibleState, SampledSQPState, State
from dszog.methods.accszofw import AcceleratedState
from dszog.methods.base import FirstOrder, Noise
from dszog.methods.linearised import LinearisedMethod, LinearisedState
from dszog.methods.named import NamedDSZOG, NamedState
from dszog.methods.sampled_sqp.state import PARTS as SQP_PARTS
from dszog.methods.slope_models import SlopesState
from dszog.methods.slopes import SlopesDSZOG
from dszog.methods.start import StartPass
from dszog.run.accounting import Costs, Traffic
from dszog.run.failures import FailureReport
from dszog.run.history import Counts, FailureCounts, History, Rows, SubproblemCounts
from dszog.run.loop import N_SEEN, Position
from dszog.run.meter import Limits
from dszog.run.run import Ending, Run, SizeNote
from dszog.save.container import dump_json, load_json, pack
from dszog.save.journal import failure_from_json, failure_to_json

STATES = (
    *(DSZOGState, NamedState, SlopesState),
    *(FeasibleState, AcceleratedState),
    *(LinearisedState, SampledSQPState),
)
DISTRIBUTIONS = (DenseDistribution, SparseDistribution, UniformDistribution)
WEIGHT_ERROR = 1e-6  # of the sum of all weights, which is 1
COUNTS = (Counts, FailureCounts, SubproblemCounts)
EVIDENCE = (
    *(Certificate, Feasibility, CallCounts, Stationarity, FirstOrder, Noise),
    *(FailureReport, Costs, Traffic),
)
TYPES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Run, Limits, Position, Rows, Ending, SizeNote, *COUNTS),
        *(*STATES, StartPass, *SQP_PARTS, *DISTRIBUTIONS, *EVIDENCE),
    )
}
"""Every class that a checkpoint or a result may hold, by name."""

FROM_OUTSIDE = ("domain", "constraints", "method")  # fields that are not settings
NO_SIZE = ProblemSize(
    dim=0, n_losses=0, n_constraints=0, lower=np.empty(0), upper=np.empty(0)
)
ALONG_X = ("x", "velocity", "gradient", "previous", "long_point")  # (dim,) in a state

Arrays = list[np.ndarray[Any, Any]]


def pack_value(facts: dict[str, Any], value: Any) -> list[bytes]:
    """Return the pieces of a file that holds facts (of JSON) and a value."""
    arrays: Arrays = []
    tree = np.frombuffer(dump_json(encode(value, arrays)), dtype=np.uint8)
    return pack(facts, [tree, *arrays])


def value_in(arrays: Arrays, size: ProblemSize) -> Any:
    """Return the value that the arrays of such a file hold."""
    if not arrays or arrays[0].dtype != np.uint8:
        raise CheckpointError("it has no content")
    return decode(load_json(arrays[0].tobytes()), arrays[1:], size)


def field_in(arrays: Arrays, size: ProblemSize, kind: str, name: str) -> Any:
    """Return one field of the object in such a file, whatever the others hold."""
    tree: Any = load_json(arrays[0].tobytes()) if arrays else None
    try:
        found, items = tree["object"]
        value = decode(dict(items)[name], arrays[1:], size)
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"it has no {name}") from error
    if found != kind or not _fits(value, FIELDS[kind][name]):
        raise CheckpointError(f"its {name} makes no sense")
    return value


def encode(value: Any, arrays: Arrays) -> Any:
    """Return a value as JSON; arrays are appended to the list and numbered."""
    kind = type(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if TYPES.get(kind.__name__) is kind:
        made = [
            [name, encode(getattr(value, name), arrays)]
            for name in FIELDS[kind.__name__]
        ]
        return {"object": [kind.__name__, made]}
    if kind is np.float64:
        return {"float64": float(value).hex()}
    if isinstance(value, float):
        return {"float": value.hex()}
    if kind is np.int64:
        return {"int64": int(value)}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if kind in (list, tuple):
        return {kind.__name__: [encode(item, arrays) for item in value]}
    if kind in (dict, Counter):
        return {kind.__name__: [[k, encode(v, arrays)] for k, v in value.items()]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is Failure:
        return {"failure": failure_to_json(value)}
    if kind is ProblemSize:
        return {"size": True}
    raise CheckpointError(
        f"A {kind.__name__} cannot be written to a checkpoint. Run without "
        "checkpoint=, or list it in save/encoding.py."
    )


def decode(tree: Any, arrays: Arrays, size: ProblemSize) -> Any:
    """Return what :func:`encode` was given; raise on anything it cannot have made."""
    try:
        return _Decoder(arrays, size).value(tree)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"its content makes no sense ({error!s:.80})") from error
    except RecursionError as error:
        raise CheckpointError("its content is nested too deeply") from error


class _Decoder:
    """Builds values for a problem of some size, from a tree and its arrays."""

    def __init__(self, arrays: Arrays, size: ProblemSize) -> None:
        self._arrays = arrays
        self._size = size
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "float": float.fromhex,
            "float64": lambda content: np.float64(float.fromhex(content)),
            "int64": self._int64,
            "array": self._array,
            "list": self._list,
            "tuple": lambda content: tuple(self._list(content)),
            "dict": self._dict,
            "Counter": lambda content: Counter(self._dict(content)),
            "bytes": bytes.fromhex,
            "failure": failure_from_json,
            "size": lambda content: size,
            "object": self._object,
        }

    def value(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, (bool, int, str)):
            return tree
        items = list(tree.items()) if isinstance(tree, dict) else []
        if len(items) != 1 or items[0][0] not in self._kinds:
            raise CheckpointError("its content has unknown parts")
        kind, content = items[0]
        return self._kinds[kind](content)

    def _int64(self, content: Any) -> np.int64:
        if type(content) is not int:
            raise CheckpointError("a number in it is no integer")
        return np.int64(content)

    def _array(self, content: Any) -> Any:
        if type(content) is not int or not 0 <= content < len(self._arrays):
            raise CheckpointError("it names an array that it does not hold")
        return freeze(self._arrays[content])

    def _list(self, content: Any) -> list[Any]:
        if not isinstance(content, list):
            raise CheckpointError("its content has unknown parts")
        return [self.value(item) for item in content]

    def _dict(self, content: Any) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, item in content:
            if type(key) not in (str, int) or key in made:
                raise CheckpointError("a name in it stands twice or is no text")
            made[key] = self.value(item)
        return made

    def _object(self, content: Any) -> Any:
        name, items = content
        if not isinstance(name, str) or name not in TYPES:
            raise CheckpointError(f"it holds an object of unknown type {name!r:.40}")
        made, kind = self._dict(items), TYPES[name]
        if kind in COUNTS:  # of an earlier version, which counted less
            made = {field: getattr(kind(), field) for field in FIELDS[name]} | made
        hints = FIELDS[name]
        if set(made) != set(hints):
            raise CheckpointError(f"a {name} in it has other fields than it should")
        for field, hint in hints.items():
            if not _fits(made[field], hint):
                raise CheckpointError(f"`{field}` of a {name} in it has a wrong type")
        found = kind(**made)
        if not _hangs_together(found, self._size):
            raise CheckpointError(f"a {name} in it does not fit the problem")
        return found


# ------------------------------------------------------------------- types and shapes


def _fields_of(kind: Any) -> dict[str, Any]:
    """Return the fields of a listed class, and their types."""
    hints = get_type_hints(kind)
    names = getattr(kind, "_fields", None) or [item.name for item in fields(kind)]
    return {name: hints[name] for name in names}


FIELDS = {name: _fields_of(kind) for name, kind in TYPES.items()}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that a field is said to have."""
    kind, parts = get_origin(hint), get_args(hint)
    alias = getattr(kind or hint, "__value__", None)  # of NumPy, from 2.5 on
    if alias is not None:
        return _fits(value, alias[parts] if parts else alias)
    if hint is Any:
        return True
    if hint is int:
        return isinstance(value, (int, np.int64)) and not isinstance(value, bool)
    if hint is Distribution:
        return isinstance(value, DISTRIBUTIONS)
    if kind is None:
        return isinstance(value, hint)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if not isinstance(value, kind):
        return False
    if kind is np.ndarray:
        return bool(value.dtype == get_args(parts[1])[0])
    if kind in (dict, Counter):
        of_key, of_item = parts if kind is dict else (*parts, int)
        return all(_fits(k, of_key) and _fits(v, of_item) for k, v in value.items())
    if kind is tuple and parts[-1] is not Ellipsis:
        return len(value) == len(parts) and all(map(_fits, value, parts))
    return all(_fits(item, parts[0]) for item in value)


def _hangs_together(made: Any, size: ProblemSize) -> bool:
    """Whether the parts of an object fit each other and the problem."""
    if isinstance(made, Run):
        has_round = 0 <= made.round < len(made.ends) and made.attempt >= 0
        return has_round and made.start.shape in ((size.dim,), (0,))  # (0,): at x0
    if isinstance(made, Position):
        indices, values = made.worst_seen
        return (
            made.average.shape == (size.dim,)
            and len(made.seen) < 2 * N_SEEN
            and bool(((indices >= 0) & (indices < size.n_constraints)).all())
            and bool(np.isfinite(values).all())
            and made.n_done >= 0
        )
    if isinstance(made, Rows):
        shape = made.table.shape
        return made.stride > 0 and shape == (len(made.table), len(History.COLUMNS))
    if isinstance(made, (Limits, *COUNTS, *EVIDENCE)):
        return True
    if isinstance(made, Ending):
        return _alike(made.indices, made.weights)
    if isinstance(made, SizeNote):
        is_known = all(width > 0 for width in made.widths)
        return is_known and len(made.widths) <= made.n_calls < 2**63
    if isinstance(made, StartPass):
        return _alike(made.indices, made.penalties) and made.n_seen >= 0
    if isinstance(made, DISTRIBUTIONS):
        return made.n_constraints == size.n_constraints and _is_distribution(made)
    if isinstance(made, SQP_PARTS):
        return made.fits(size)
    along = [getattr(made, name) for name in ALONG_X if hasattr(made, name)]
    fits = all(vector.shape == (size.dim,) for vector in along)
    if isinstance(made, DSZOGState):  # directions that are named need no average
        fits = made.x.shape == (size.dim,) and made.velocity.shape in (
            (size.dim,),
            (0,),
        )
    if isinstance(made, LinearisedState):
        fits &= made.values.ndim == made.at_origin.ndim == 1
        fits &= made.jacobian.shape == (len(made.jacobian), size.dim)
    if isinstance(made, SampledSQPState):
        fits &= len(made.looks) > 0 and made.fits(size)
    fits &= isinstance(made, State) and 0 <= made.seed < 2**64
    return fits and 0 <= made.iteration < 2**62


def _is_distribution(made: Any) -> bool:
    if isinstance(made, DenseDistribution):
        return _alike(made.weights, made.gradient, made.memory)
    if not isinstance(made, SparseDistribution):
        return True
    indices = made.indices
    return _alike(indices, made.weights, made.gradient, made.memory) and bool(
        (np.diff(indices) > 0).all()
        and (indices >= 0).all()
        and (indices < made.n_constraints).all()
    )


def _alike(*vectors: np.ndarray[Any, Any]) -> bool:
    first = vectors[0].shape
    return len(first) == 1 and all(vector.shape == first for vector in vectors)


def check_weights_of(state: State) -> None:
    """Refuse weights that are no distribution."""
    if isinstance(state, DSZOGState) and state.distribution is not None:
        total = _total_weight(state.distribution)
        if not abs(total - 1.0) <= WEIGHT_ERROR:
            raise CheckpointError(
                f"its weights are no distribution, their sum is {total:.6g}"
            )


def _total_weight(distribution: Any) -> float:
    """Return the sum of all weights, `nan` if one is negative."""
    if isinstance(distribution, UniformDistribution):
        return 1.0
    weights, rest = distribution.weights, 0.0
    if isinstance(distribution, SparseDistribution):
        rest = distribution.background_weight
        weights = np.append(weights, distribution.n_background * rest)
    return float(weights.sum()) if (weights >= 0.0).all() else math.nan


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
    if type(method) not in (*METHODS.values(), NamedDSZOG, SlopesDSZOG):
        raise InputError(
            f"minimize: `checkpoint` needs a method of the library, got "
            f"{type(method).__name__}, of which nothing is known. Leave it out."
        )
    return {"type": type(method).__name__} | {
        item.name: getattr(method, item.name)
        for item in fields(method)
        if item.name not in FROM_OUTSIDE
    }


def default_settings(method: Any) -> dict[str, Any]:
    """Return the defaults of a method: what a version without a setting did."""
    if isinstance(method, LinearisedMethod):
        inner = default_settings(method.method)
        return {f"method.{name}": value for name, value in inner.items()}
    return {
        item.name: item.default
        for item in fields(method)
        if item.name not in FROM_OUTSIDE and item.default is not MISSING
    }


def with_settings(method: Any, settings: Any) -> Any:
    """Return a method of the same type with other settings."""
    mine, new = settings_of(method), default_settings(method)
    known = isinstance(settings, dict) and set(settings) <= set(mine)
    if not known or not set(mine) - set(settings) <= set(new):
        raise CheckpointError("it holds settings of another method")
    if isinstance(method, LinearisedMethod):
        inner = {
            name.removeprefix("method."): value
            for name, value in settings.items()
            if name.startswith("method.")
        }
        return replace(method, method=with_settings(method.method, inner))
    if not isinstance(settings["type"], str) or settings["type"] != mine["type"]:
        raise CheckpointError("it holds settings of another method")
    changes = {name: value for name, value in settings.items() if name != "type"}
    try:
        return replace(method, **changes)
    except (DszogError, TypeError, ValueError) as error:
        raise CheckpointError(f"it holds settings that cannot be ({error})") from error
