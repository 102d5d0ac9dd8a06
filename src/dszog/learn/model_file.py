"""Models on disk: numbers and names in a checked file, nothing that could run.

The file is a container of :mod:`dszog.save.container`: its first array is a
document of strict JSON (UTF-8 escaped to ASCII), in which floats are hexadecimal text;
the others are the arrays of the model in the order the document names them.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dszog._version import VERSION
from dszog.contract.validation import shown
from dszog.errors import CheckpointError, CheckpointWriteError, InputError
from dszog.learn.base import ConstrainedClassifier
from dszog.learn.fair import FairClassifier
from dszog.learn.pairwise import PairwiseClassifier
from dszog.learn.sensitive import SensitiveColumn
from dszog.save.container import dump_json, load_json, pack, read
from dszog.save.files import write_whole

KIND = "model"
FORMAT = 1
MODELS: dict[str, type[ConstrainedClassifier]] = {
    "PairwiseClassifier": PairwiseClassifier,
    "FairClassifier": FairClassifier,
}
NOT_SAVED = ("options", "random_state")
ARRAYS = ("intercept_", "mean_", "scale_", "coef_", "dual_coef_", "centres_")
SPARSE_PARTS = ("data", "indices", "indptr")


def save(model: ConstrainedClassifier, path: str | PathLike[str]) -> None:
    """Write a fitted model; see :meth:`ConstrainedClassifier.save`."""
    if type(model).__name__ not in MODELS or type(model) not in MODELS.values():
        raise InputError(
            f"save: the model must be one of {', '.join(MODELS)}, got "
            f"{type(model).__name__}. Save subclasses in a way of their own."
        )
    arrays: list[NDArray[Any]] = []
    names: list[str] = []
    for name in ARRAYS:
        value = model.__dict__.get(name)
        if value is None:
            continue
        if sparse.issparse(value):
            for part in SPARSE_PARTS:
                names.append(f"{name}.{part}")
                arrays.append(_plain(getattr(value, part)))
        else:
            names.append(name)
            arrays.append(_plain(value))
    document = {
        "format": FORMAT,
        "model": type(model).__name__,
        "parameters": _parameters(model),
        "classes": _classes(model.classes_),
        "n_features": int(model.n_features_in_),
        "feature_names": _names(model.__dict__.get("feature_names_in_")),
        "gamma": _float(model.gamma_) if "gamma_" in model.__dict__ else None,
        "n_iter": model.n_iter_,
        "certificate": str(getattr(model, "certificate_", "")),
        "sensitive": [_column(column) for column in getattr(model, "sensitive_", ())],
        "constraint_names": list(getattr(model, "constraint_names_", ())),
        "unconstrained": list(getattr(model, "unconstrained_groups_", ())),
        "arrays": names,
    }
    text = np.frombuffer(dump_json(document), dtype=np.uint8)
    try:
        write_whole(Path(path), pack({"kind": KIND}, [text, *arrays], VERSION))
    except CheckpointWriteError as error:
        raise CheckpointWriteError(
            f"save: the model could not be written to {str(path)!r} "
            f"({error.__cause__}). Give a path in a folder that exists and has room."
        ) from error


def load(path: str | PathLike[str]) -> Any:
    """Read a model that ``save`` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : path

    Returns
    -------
    PairwiseClassifier or FairClassifier
        Fitted. In place of ``result_`` and ``certificate_`` it has
        ``certificate_text_``, the evidence as it printed.

    Raises
    ------
    dszog.CheckpointError
        The file is damaged, or is no model of this library.
    """
    where = Path(path)
    try:
        return _model(*read(where, own=False))
    except CheckpointError as error:
        if isinstance(error.__cause__, OSError):
            raise CheckpointError(
                f"load: {str(path)!r} cannot be read ({error.__cause__.strerror}). "
                "Give the path of a file that save() wrote."
            ) from error
        raise CheckpointError(
            f"load: {str(path)!r} is no model that can be used: {error}. Save it again."
        ) from error
    except (
        *(KeyError, TypeError, ValueError, AttributeError, IndexError),
        *(OverflowError, RecursionError, MemoryError),
    ) as error:
        # The checksum is right and the content is not: nobody's accident.
        raise CheckpointError(
            f"load: {str(path)!r} is no model that can be used: "
            f"{type(error).__name__} ({error!s:.60}). Save it again."
        ) from error


# ----------------------------------------------------------------------- writing parts


def _plain(array: Any) -> NDArray[Any]:
    kind = np.int64 if np.asarray(array).dtype.kind in "iu" else np.float64
    return np.ascontiguousarray(array, dtype=kind)


def _float(value: float) -> str:
    return float(value).hex()


def _parameters(model: ConstrainedClassifier) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name in NOT_SAVED or (name == "loss" and not isinstance(value, str)):
            continue
        if isinstance(value, (bool, np.bool_)):
            value = bool(value)
        elif isinstance(value, (int, np.integer)):
            value = int(value)
        elif isinstance(value, (float, np.floating)):
            value = {"float": _float(float(value))}
        found[name] = value
    return found


def _classes(classes: NDArray[Any]) -> dict[str, Any]:
    kinds = {type(value) for value in classes.tolist()}
    if len(kinds) == 1 and (kind := kinds.pop()) in CLASS_KINDS.values():
        values = classes.tolist()
        if kind is float:
            values = [_float(value) for value in values]
        name = next(name for name, one in CLASS_KINDS.items() if one is kind)
        return {"kind": name, "values": values, "object": classes.dtype.kind == "O"}
    raise InputError(
        f"save: classes must be text, whole numbers, floats or booleans, got "
        f"{shown(classes.tolist())}. Rename them before fitting."
    )


CLASS_KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


def _names(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _column(column: SensitiveColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "categories": list(column.categories),
        "edges": [_float(edge) for edge in column.edges],
        "is_binned": column.is_binned,
    }


# ----------------------------------------------------------------------- reading parts


def _model(facts: dict[str, Any], arrays: list[NDArray[Any]]) -> Any:
    if facts != {"kind": KIND}:
        raise CheckpointError("it holds something else, such as a run")
    document = load_json(arrays[0].tobytes())
    if document["format"] != FORMAT:
        raise CheckpointError("it has a format that this dszog does not read")
    kind = MODELS[document["model"]]
    model: Any = kind()
    model.loss = None  # unless it was saved
    known = set(model.get_params(deep=False)) - set(NOT_SAVED)
    for name, value in document["parameters"].items():
        if name not in known:
            raise CheckpointError(f"it has an unknown parameter {name!r:.40}")
        if isinstance(value, dict):
            value = float.fromhex(value["float"])
        setattr(model, name, value)
    _set_arrays(model, _checked(document, arrays[1:]), document)
    model.classes_ = _read_classes(document["classes"])
    if document["feature_names"] is not None:
        names = np.array(_texts(document["feature_names"]), dtype=object)
        _check(len(names) == model.n_features_in_, "names of features are missing")
        model.feature_names_in_ = names
    model.n_iter_ = _whole(document["n_iter"])
    (model.certificate_text_,) = _texts([document["certificate"]])
    if kind is FairClassifier:
        model.sensitive_ = tuple(map(_read_column, document["sensitive"]))
        model.constraint_names_ = tuple(_texts(document["constraint_names"]))
        model.unconstrained_groups_ = tuple(_texts(document["unconstrained"]))
    return model


def _checked(
    document: dict[str, Any], arrays: list[NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    names = _texts(document["arrays"])
    _check(len(names) == len(arrays) == len(set(names)), "arrays are missing")
    found = dict(zip(names, arrays, strict=True))
    for array in arrays:
        _check(bool(np.isfinite(array).all()), "an array has a value that is no number")
    return found


def _set_arrays(
    model: Any, arrays: dict[str, NDArray[Any]], document: dict[str, Any]
) -> None:
    d = _whole(document["n_features"])
    model.n_features_in_ = d
    shapes: dict[str, Callable[[tuple[int, ...]], bool]] = {
        "intercept_": lambda shape: shape == (1,),
        "mean_": lambda shape: shape == (d,),
        "scale_": lambda shape: shape == (d,),
    }
    if "coef_" in arrays:
        shapes["coef_"] = lambda shape: shape == (1, d)
    else:
        model.gamma_ = float.fromhex(document["gamma"])
        _check(model.gamma_ > 0.0, "its kernel has no width")
        n_centres = arrays["dual_coef_"].shape[1]
        shapes["dual_coef_"] = lambda shape: shape == (1, n_centres)
        if "centres_" in arrays:
            shapes["centres_"] = lambda shape: shape == (n_centres, d)
        else:
            parts = [arrays.pop(f"centres_.{part}") for part in SPARSE_PARTS]
            data, indices, indptr = parts
            centres = sparse.csr_array((data, indices, indptr), shape=(n_centres, d))
            centres.check_format(full_check=True)
            model.centres_ = centres
    _check(set(shapes) == set(arrays), "its arrays are not those of a model")
    for name, fits in shapes.items():
        array = arrays[name]
        right = fits(array.shape) and array.dtype == np.float64
        _check(right, f"{name} has the wrong shape")
        setattr(model, name, array)
    _check(bool((model.scale_ > 0.0).all()), "a feature has no scale")


def _read_classes(found: dict[str, Any]) -> NDArray[Any]:
    kind, values = CLASS_KINDS[found["kind"]], found["values"]
    if kind is float:
        values = [float.fromhex(value) for value in values]
    _check(len(values) == 2 and all(type(v) is kind for v in values), "two classes")
    return np.array(values, dtype=object if found["object"] is True else None)


def _read_column(found: dict[str, Any]) -> SensitiveColumn:
    (name,) = _texts([found["name"]])
    return SensitiveColumn(
        name=name,
        categories=tuple(_texts(found["categories"])),
        edges=np.array([float.fromhex(edge) for edge in found["edges"]], dtype=float),
        is_binned=found["is_binned"] is True,
    )


def _texts(values: Any) -> list[str]:
    _check(isinstance(values, list), "a list is missing")
    for value in values:
        _check(isinstance(value, str), "a name is no text")
    return list(values)


def _whole(value: Any) -> int:
    _check(type(value) is int and value >= 0, "a count is no whole number")
    return int(value)


def _check(holds: bool, wrong: str) -> None:
    if not holds:
        raise CheckpointError(wrong)
