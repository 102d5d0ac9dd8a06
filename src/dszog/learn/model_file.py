"""Models on disk: numbers and names in a checked file, nothing that could run.

The file is a container of :mod:`dszog.save.container` with a dictionary in it, as
:mod:`dszog.save.encoding` writes values.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dszog.contract.validation import shown
from dszog.errors import CheckpointError, CheckpointWriteError, InputError
from dszog.learn.base import ConstrainedClassifier
from dszog.learn.fair import FairClassifier
from dszog.learn.pairwise import PairwiseClassifier
from dszog.learn.sensitive import SensitiveColumn
from dszog.save.container import read
from dszog.save.encoding import NO_SIZE, pack_value, value_in
from dszog.save.files import write_whole

FACTS = {"kind": "model", "format": 3}
MODELS: dict[str, type[ConstrainedClassifier]] = {
    kind.__name__: kind for kind in (PairwiseClassifier, FairClassifier)
}
CLASS_KINDS = (str, int, float, bool)
NOT_SAVED = ("options", "random_state")
ARRAYS = ("intercept_", "mean_", "scale_", "coef_", "dual_coef_", "centres_")
SPARSE_PARTS = ("data", "indices", "indptr")


def save(model: ConstrainedClassifier, path: str | PathLike[str]) -> None:
    if type(model) not in MODELS.values():
        raise InputError(
            f"save: the model must be one of {', '.join(MODELS)}, got "
            f"{type(model).__name__}. Save subclasses in a way of their own."
        )
    arrays: dict[str, NDArray[Any]] = {}
    for name in ARRAYS:
        value = model.__dict__.get(name)
        if sparse.issparse(value):
            for part in SPARSE_PARTS:
                arrays[f"{name}.{part}"] = _plain(getattr(value, part))
        elif value is not None:
            arrays[name] = _plain(value)
    names = model.__dict__.get("feature_names_in_")
    gamma = model.__dict__.get("gamma_")
    content = {
        "model": type(model).__name__,
        "parameters": _parameters(model),
        "classes": _classes(model.classes_),
        "classes_are_objects": model.classes_.dtype.kind == "O",
        "positive": model.classes_.tolist().index(model.pos_label_),
        "slope": float(model.probability_slope_),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "gamma": None if gamma is None else float(gamma),
        "n_iter": model.n_iter_,
        "certificate": str(getattr(model, "certificate_", "")),
        "sensitive": [vars(column) for column in getattr(model, "sensitive_", ())],
        "constraint_names": list(getattr(model, "constraint_names_", ())),
        "unconstrained": list(getattr(model, "unconstrained_groups_", ())),
        "reading": dict(getattr(model, "reading_", {})),
        "arrays": arrays,
    }
    try:
        write_whole(Path(path), pack_value(FACTS, content))
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
    cause: Exception
    try:
        return _model(*read(Path(path), own=False))
    except CheckpointError as error:
        if isinstance(error.__cause__, OSError):
            raise CheckpointError(
                f"load: {str(path)!r} cannot be read ({error.__cause__.strerror}). "
                "Give the path of a file that save() wrote."
            ) from error
        wrong, cause = str(error), error
    except (
        *(KeyError, TypeError, ValueError, AttributeError, IndexError),
        *(OverflowError, RecursionError, MemoryError),
    ) as error:
        # The checksum is right and the content is not: nobody's accident.
        wrong, cause = f"{type(error).__name__} ({error!s:.60})", error
    raise CheckpointError(
        f"load: {str(path)!r} is no model that can be used: {wrong}. Give the "
        "file that `save` or dszog fit wrote (model.dszog), or make it again."
    ) from cause


# ----------------------------------------------------------------------- writing parts


def _plain(array: Any) -> NDArray[Any]:
    kind = np.int64 if np.asarray(array).dtype.kind in "iu" else np.float64
    return np.ascontiguousarray(array, dtype=kind)


def _parameters(model: ConstrainedClassifier) -> dict[str, Any]:
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in model.get_params(deep=False).items()
        if name not in NOT_SAVED and (name != "loss" or isinstance(value, str))
    }


def _classes(classes: NDArray[Any]) -> list[Any]:
    values: list[Any] = classes.tolist()
    kinds = set(map(type, values))
    if len(kinds) > 1 or not kinds <= set(CLASS_KINDS):
        raise InputError(
            f"save: classes must be text, whole numbers, floats or booleans, got "
            f"{shown(values)}. Rename them before fitting."
        )
    return values


# ----------------------------------------------------------------------- reading parts


def _model(facts: dict[str, Any], arrays: list[NDArray[Any]]) -> Any:
    _check(facts.get("kind") == FACTS["kind"], "it holds something else, such as a run")
    _check(facts == FACTS, "another version of dszog wrote it: fit the model again")
    found = value_in(arrays, NO_SIZE)
    kind = MODELS[found["model"]]
    model: Any = kind()
    model.loss = None  # unless it was saved
    known = set(model.get_params(deep=False)) - set(NOT_SAVED)
    for name, value in found["parameters"].items():
        _check(name in known, f"it has an unknown parameter {name!r:.40}")
        setattr(model, name, value)
    model.n_features_in_ = _count(found["n_features"])
    _set_arrays(model, dict(found["arrays"]), found["gamma"])
    model.classes_ = _read_classes(found["classes"], found["classes_are_objects"])
    model.pos_label_ = model.classes_[_count(found["positive"])]
    model.probability_slope_ = _positive(found["slope"], "probabilities have no slope")
    if found["feature_names"] is not None:
        features = np.array(_texts(found["feature_names"]), dtype=object)
        _check(len(features) == model.n_features_in_, "names of features are missing")
        model.feature_names_in_ = features
    model.n_iter_ = _count(found["n_iter"])
    reading = found["reading"]  # how `dszog fit` read its file
    model.reading_ = dict(zip(reading, _texts(list(reading.values())), strict=True))
    (model.certificate_text_,) = _texts([found["certificate"]])
    if kind is FairClassifier:
        model.sensitive_ = tuple(map(_read_column, found["sensitive"]))
        model.constraint_names_ = tuple(_texts(found["constraint_names"]))
        model.unconstrained_groups_ = tuple(_texts(found["unconstrained"]))
    return model


def _set_arrays(model: Any, arrays: dict[str, NDArray[Any]], gamma: Any) -> None:
    """Set the arrays of a model that has just these, of the right shapes."""
    for array in arrays.values():
        _check(bool(np.isfinite(array).all()), "an array has a value that is no number")
    d = model.n_features_in_
    shapes: dict[str, tuple[int, ...]] = {"intercept_": (1,), "mean_": (d,)}
    shapes["scale_"] = (d,)
    if "coef_" in arrays:
        shapes["coef_"] = (1, d)
    else:
        model.gamma_ = _positive(gamma, "its kernel has no width")
        n_centres = arrays["dual_coef_"].shape[1]
        shapes["dual_coef_"] = (1, n_centres)
        if "centres_" in arrays:
            shapes["centres_"] = (n_centres, d)
        else:
            parts = [arrays.pop(f"centres_.{part}").copy() for part in SPARSE_PARTS]
            model.centres_ = sparse.csr_array(tuple(parts), shape=(n_centres, d))
            model.centres_.check_format(full_check=True)
    _check(set(shapes) == set(arrays), "its arrays are not those of a model")
    for name, shape in shapes.items():
        array = arrays[name]
        is_right = array.shape == shape and array.dtype == np.float64
        _check(is_right, f"{name} has the wrong shape")
        setattr(model, name, array.copy())  # the user's to write to
    _check(bool((model.scale_ > 0.0).all()), "a feature has no scale")


def _read_classes(values: Any, are_objects: Any) -> NDArray[Any]:
    is_list = isinstance(values, list) and len(values) == 2
    kinds = set(map(type, values)) if is_list else set()
    _check(len(kinds) == 1 and kinds <= set(CLASS_KINDS), "two classes are needed")
    return np.array(values, dtype=object if are_objects is True else None)


def _read_column(found: dict[str, Any]) -> SensitiveColumn:
    (name,) = _texts([found["name"]])
    return SensitiveColumn(
        name=name,
        categories=tuple(_texts(list(found["categories"]))),
        edges=np.array(found["edges"], dtype=float),
    )


def _positive(value: Any, wrong: str) -> float:
    _check(type(value) is float and 0.0 < value < np.inf, wrong)
    return float(value)


def _texts(values: Any) -> list[str]:
    _check(isinstance(values, list), "a list is missing")
    _check(all(isinstance(value, str) for value in values), "a name is no text")
    return list(values)


def _count(value: Any) -> int:
    _check(type(value) is int and value >= 0, "a count is no whole number")
    return int(value)


def _check(holds: bool, wrong: str) -> None:
    if not holds:
        raise CheckpointError(wrong)
