"""Checks at the door. Every message says what is wrong, what was got, what to do.

And names of variables and functions: what people read where there would be an index.
"""

from __future__ import annotations

import difflib
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from typing import Any, TypeAlias

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.errors import InputError, InputTypeError

_FLOATS = (float, np.floating)
MIN_BEGINNING = 3  # letters that may stand for a whole word
MOST_MEANT = 3  # words that are offered


def refused(
    owner: object,
    name: str,
    must: str,
    value: Any,
    cure: str,
    error: type[InputError | InputTypeError] = InputError,
) -> InputError | InputTypeError:
    """Return the error for an argument: what is wrong, what was got, what to do."""
    return error(f"{_name(owner)}: `{name}` must {must}, got {shown(value)}. {cure}")


def check_positive(owner: object, **advice: str) -> None:
    """Refuse fields of `owner` that are not positive, finite numbers."""
    for name, what_to_do in advice.items():
        check_positive_number(owner, name, getattr(owner, name), what_to_do)


def check_share(owner: object, **advice: str) -> None:
    """Refuse fields of `owner` that are not in the interval (0, 1]."""
    for name, what_to_do in advice.items():
        value = check_number(owner, name, getattr(owner, name))
        if not 0 < value <= 1:
            raise refused(owner, name, "lie in (0, 1]", value, what_to_do)


def check_number(owner: object, name: str, value: Any) -> float:
    """Return `value` as a float; refuse what is not a real number."""
    real = (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, real):
        cure = "Pass an int or a float."
        raise refused(owner, name, "be a number", value, cure, InputTypeError)
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_positive_number(
    owner: object, name: str, value: Any, advice: str = "Pass a number above 0."
) -> float:
    """Return `value` as a float; refuse what is not positive and finite."""
    number = check_number(owner, name, value)
    if not (math.isfinite(number) and number > 0):
        raise refused(owner, name, "be positive and finite", value, advice)
    return number


def check_nonnegative(owner: object, name: str, value: Any) -> float:
    """Return `value` as a float; refuse what is negative or not finite."""
    number = check_number(owner, name, value)
    if not (math.isfinite(number) and number >= 0):
        raise refused(owner, name, "be at least 0 and finite", value, "Try 1e-2.")
    return number


def check_seed(owner: object, seed: Any) -> int:
    """Return `seed` as an int that fits the random streams."""
    advice = "Pass an int such as 0, or None."
    if hasattr(seed, "integers"):  # a generator of NumPy's
        advice = "Pass a number that it draws: rng.integers(2**32)."
    value = check_count(owner, "seed", seed, least=0, advice=advice)
    if value >= 2**64:
        raise refused(owner, "seed", "be below 2**64", value, "Pass a smaller int.")
    return value


def check_weights(
    owner: object, weights: Any, n_constraints: int
) -> tuple[IntArray, FloatArray]:
    """Return weights over some constraints as ascending indices and their values."""
    try:
        indices, values = weights
    except (TypeError, ValueError):
        must = "be a pair (indices, weights)"
        cure = "Pass result.weights of an earlier run."
        raise refused(owner, "weights", must, weights, cure, InputTypeError) from None
    values = check_floats(owner, "weights", values)
    try:
        indices = np.asarray(indices)
    except ValueError:  # ragged
        indices = np.asarray(None)
    fits = (
        indices.dtype.kind in "iu"
        and indices.ndim == values.ndim == 1
        and len(indices) == len(values)
    )
    if fits and len(indices):
        fits = bool(
            indices.min() >= 0
            and indices.max() < n_constraints
            and len(np.unique(indices)) == len(indices)
            and values.min() >= 0
            and values.sum() <= 1 + 1e-9
        )
    if not fits:
        must = f"be distinct indices below {n_constraints} and weights >= 0 with a sum "
        must += "of at most 1"
        cure = "Pass result.weights of an earlier run on the same constraints."
        raise refused(owner, "weights", must, weights, cure)
    order = np.argsort(indices)
    return frozen_ints(indices[order]), frozen_floats(values[order])


def check_count(
    owner: object, name: str, value: Any, *, least: int = 1, advice: str = ""
) -> int:
    """Return `value` as an int; refuse what is not a whole number >= `least`.

    A float that is a whole number will do, as in ``max_queries=1e6``. Not where `owner`
    is a dataclass, whose field would stay a float: there is `check_count_fields`.
    """
    count = _whole(value)
    if count is None or (is_dataclass(owner) and isinstance(value, _FLOATS)):
        cure = advice or "Pass an int."
        raise refused(owner, name, "be a whole number", value, cure, InputTypeError)
    if count < least:
        cure = advice or "Pass a larger number."
        raise refused(owner, name, f"be at least {least}", count, cure)
    return count


def check_count_fields(
    owner: object,
    *names: str,
    least: int = 1,
    optional: bool = False,
    advice: str = "",
) -> None:
    """Make whole numbers of fields of a dataclass; None stays if `optional`."""
    for name in names:
        value = getattr(owner, name)
        if value is None and optional:
            continue
        count = check_count(_name(owner), name, value, least=least, advice=advice)
        object.__setattr__(owner, name, count)


def _whole(value: Any) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, _FLOATS):
        return int(value) if value.is_integer() else None
    try:
        return operator.index(value)
    except TypeError:
        return None


def check_choice(owner: object, name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the names on offer."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"{_name(owner)}: `{name}` must be one of {', '.join(map(repr, choices))}, "
            f"got {shown(value)}.{did_you_mean(value, choices)}"
        )


def check_flag(owner: object, name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        must = "be True or False"
        raise refused(owner, name, must, value, "Pass a bool.", InputTypeError)


def check_tag(owner: object, tag: Any) -> str:
    """Return a name for functions; refuse what is no text."""
    if not isinstance(tag, str):
        cure = "Give a name, for example tag='data of May'."
        raise refused(owner, "tag", "be a string", tag, cure, InputTypeError)
    return tag


def check_indices(owner: object, indices: Any, n: int) -> IntArray:
    """Return indices as int64; refuse what is not a whole number in ``range(n)``."""
    array = np.asarray(indices)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InputTypeError(
            f"{_name(owner)}: indices must be a vector of whole numbers, got "
            f"{shown(indices)}. Pass an int64 array."
        )
    wrong = array[(array < 0) | (array >= n)]
    if len(wrong):
        listed = ", ".join(map(str, wrong[:5].tolist()))
        raise InputError(
            f"{_name(owner)}: indices must lie between 0 and {n - 1}, got {listed}. "
            "Indices count from 0."
        )
    return frozen_ints(array)


def check_callable(
    owner: object, name: str, value: Any, signature: str, n_arguments: int | None = None
) -> None:
    """Refuse what cannot be called, or not with this many positional arguments."""
    cure = f"Pass a callable {signature}."
    if not callable(value):
        raise refused(owner, name, "be a function", value, cure, InputTypeError)
    if n_arguments is None:
        return
    try:
        taken = inspect.signature(value)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    try:
        taken.bind(*range(n_arguments))
    except TypeError:
        plural = "" if n_arguments == 1 else "s"
        raise InputTypeError(
            f"{_name(owner)}: `{name}` must take {n_arguments} argument{plural}, "
            f"got {getattr(value, '__name__', shown(value))}{taken}. {cure}"
        ) from None


def check_vector(owner: object, name: str, value: Any) -> FloatArray:
    """Return a read-only float64 copy of a vector of finite numbers."""
    vector = check_floats(owner, name, value)
    if vector.ndim != 1 or not vector.size:
        cure = (
            f"Pass a vector: {name}.ravel()."
            if vector.size and vector.ndim > 1
            else "Pass a vector with one entry per variable."
        )
        raise InputError(f"{_name(owner)}: `{name}` has shape {vector.shape}. {cure}")
    return vector


def check_floats(owner: object, name: str, value: Any) -> FloatArray:
    """Return a read-only float64 copy of an array of finite numbers."""
    array = as_numbers(owner, name, value)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = ", ".join(str(tuple(map(int, place))) for place in bad[:5])
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        first = array[tuple(bad[0])]
        raise InputError(
            f"{_name(owner)}: `{name}` must be finite, got {first} at position "
            f"{where}{more}. Replace these entries by numbers."
        )
    return array


def as_numbers(owner: object, name: str, value: Any) -> FloatArray:
    """Return a read-only float64 copy; refuse text, objects and complex numbers."""
    if np.ma.isMaskedArray(value):
        raise InputTypeError(
            f"{_name(owner)}: `{name}` must hold a number everywhere, got a masked "
            "array. Fill it first: array.filled(...)."
        )
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)  # ragged: refused below, as an object
    except (TypeError, RuntimeError) as error:
        if not is_tensor(value):
            raise
        raise InputTypeError(
            f"{_name(owner)}: `{name}` must be an array, got a tensor that "
            f"{ABOUT_TENSORS}. Pass {name}.detach().cpu().numpy()."
        ) from error
    if array.dtype.kind not in "fiub":
        raise InputTypeError(
            f"{_name(owner)}: `{name}` must hold real numbers, got {shown(value)} "
            f"(dtype {array.dtype}). Pass an array that converts to float64."
        )
    return frozen_floats(np.array(array, dtype=np.float64))


ABOUT_TENSORS = "has gradients or is on another device"


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, as far as one can see without it."""
    return hasattr(value, "detach") and hasattr(value, "cpu")


def check_bounds(owner: object, bounds: Any, dim: int) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds as two vectors; ``None`` is no bound."""
    if bounds is None:
        return np.broadcast_to(-np.inf, dim), np.broadcast_to(np.inf, dim)  # one number
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        pair: Sequence[Any] = (bounds.lb, bounds.ub)
    else:
        pair = _transposed(owner, bounds, dim)
    lower, upper = (as_numbers(owner, "bounds", side) for side in pair)
    if not all(side.shape in ((), (1,), (dim,)) for side in (lower, upper)):
        raise InputError(
            f"{_name(owner)}: `bounds` must have an entry for each of {dim} variables, "
            f"got {lower.shape} lower and {upper.shape} upper ones. Give one number, "
            "or one per variable."
        )
    lower, upper = (
        frozen_floats(np.broadcast_to(side, dim).copy()) for side in (lower, upper)
    )
    wrong = np.flatnonzero(~(lower <= upper) | (lower == np.inf) | (upper == -np.inf))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(
            f"{_name(owner)}: `bounds` must have lower <= upper and room for a number, "
            f"got ({lower[i]}, {upper[i]}) for variable {i}. Swap or correct them."
        )
    return lower, upper


def _transposed(owner: object, bounds: Any, dim: int) -> tuple[list[Any], list[Any]]:
    try:
        pairs = [(low, high) for low, high in bounds]
    except (TypeError, ValueError):
        pairs = []
    if len(pairs) != dim:
        must = f"be {dim} pairs (low, high), one per variable"
        cure = "Use None for a side without a bound, or pass scipy.optimize.Bounds."
        raise refused(owner, "bounds", must, bounds, cure)
    return (
        [-np.inf if low is None else low for low, _ in pairs],
        [np.inf if high is None else high for _, high in pairs],
    )


def did_you_mean(word: Any, choices: Iterable[str]) -> str:
    """Return a sentence that names the nearest choice, or nothing.

    A beginning stands for what begins so.

    Examples
    --------
    >>> did_you_mean("fare", ["pairwise", "fair"])
    " Did you mean 'fair'?"
    >>> did_you_mean("pair", ["pairwise", "fair"])
    " Did you mean 'pairwise'?"
    >>> did_you_mean("step", ["step_size", "step_eps", "penalty"])
    " Did you mean 'step_size' or 'step_eps'?"
    """
    text, listed = str(word), list(choices)
    near = [text] if text in listed else []
    if not near and len(text) >= MIN_BEGINNING:
        near = [choice for choice in listed if choice.startswith(text)]
    if not 1 <= len(near) <= MOST_MEANT:
        near = difflib.get_close_matches(text, listed, n=1)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


NUMPYS = re.compile(r"np\.\w+\(([-+.\w]+)\)")  # numbers as NumPy writes them


def shown(value: Any, width: int = 60) -> str:
    """Return a short representation of a value for a message."""
    text = NUMPYS.sub(r"\1", " ".join(repr(value).split()))
    return text if len(text) <= width else text[: width - 3] + "..."


def printable(text: str, keep: str = "") -> str:
    """Return text in which nothing steers a terminal or hides what follows.

    Control characters, escapes and marks that turn the direction of writing appear as
    Python writes them, but for those in `keep`.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def _name(owner: object) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__


Names: TypeAlias = Sequence[str] | Callable[[int], str]

MOST_SHOWN = 8  # variables of a point


def check_names(owner: str, names: Any, n: int) -> tuple[str, ...]:
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    given = tuple(names) if is_list else ()
    if len(given) != n or not all(isinstance(name, str) for name in given):
        number = f" ({len(given):,} in all)" if is_list and len(given) != n else ""
        raise InputTypeError(
            f"{owner}: `names` must be a list of {n:,} strings, got "
            f"{shown(names)}{number}. Give one for each."
        )
    return tuple(map(str, given))


def check_naming(owner: str, names: Any, n: int) -> Names:
    """Return `n` names, or a function that makes the name of an index."""
    if not callable(names):
        return check_names(owner, names, n)
    check_callable(owner, "names", names, "names(index) -> str", 1)
    return names  # type: ignore[no-any-return]


def name_in(names: Names, index: int) -> str:
    """Return a name that fits into a line; empty if there is none."""
    try:
        name = names(index) if callable(names) else names[index] if names else ""
    except Exception:  # noqa: BLE001  (the user's code: no result is lost for a name)
        return ""
    return printable(str(name))


def shown_point(x: Any, names: Sequence[str]) -> str:
    """Return a point with its variables by name, the middle of many left out."""
    numbers = np.asarray(x).tolist()
    parts = [f"{name} = {at:.6g}" for name, at in zip(names, numbers, strict=True)]
    if len(parts) > MOST_SHOWN:
        parts[3:-3] = [f"... ({len(numbers):,} in all) ..."]
    return printable(", ".join(parts))
