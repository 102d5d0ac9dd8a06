"""Settings of a method as words: ``penalty=10``, typed as the method has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from dszog.contract.hints import about_method, about_option
from dszog.contract.validation import check_choice, shown
from dszog.errors import InputError
from dszog.methods import METHODS
from dszog.methods.auto import AUTO, OPTIONS, SQP
from dszog.run.scipy_call import is_scipys

_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING = {"none": None, "auto": None}


class _WordReader(NamedTuple):
    """What reads the words of one type."""

    name: str
    read: Callable[[str], Any]
    example: str


def kinds_of(method: str) -> dict[str, Any]:
    """Return the types of the settings that a method takes, by name."""
    # With ``"auto"`` all that one of the methods takes which it chooses from.
    kinds: dict[str, Any] = {}
    for name in OPTIONS if method == AUTO else [method]:
        kind: Any = METHODS[name]
        hints = get_type_hints(kind)
        kinds |= {field.name: hints[field.name] for field in fields(kind)}
    return kinds


def named(method: str) -> str:
    """Return the name of a method as we have it; of SciPy's, that of its stand-in."""
    return SQP if is_scipys(method) else method.lower()


def read_settings(method: str, settings: Sequence[str]) -> dict[str, Any]:
    """Return the options of a method that ``name=value`` words give."""
    name = named(method)
    try:
        check_choice("dszog solve", "--method", name, (AUTO, *METHODS))
    except InputError as error:
        more = "" if "Did you mean" in str(error) else about_method(name)
        raise InputError(f"{error}{more}") from None
    kinds = kinds_of(name)
    options: dict[str, Any] = {}
    for word in settings:
        key, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not key or not text:
            raise InputError(
                f"--set takes name=value, got {shown(word)}. For example --set "
                "penalty=10."
            )
        if key not in kinds:
            known = [key for key in kinds if _readers(kinds[key])]
            listed = ", ".join(map(repr, known))
            hint = about_option(key, known, ()) or f" Options: {listed}."
            raise InputError(f"method {name!r} has no option {shown(key)}.{hint}")
        if key in options:
            raise InputError(
                f"--set {key} is given twice, got {shown(word)} as well. Give it once."
            )
        options[key] = _read(key, text, kinds[key])
    return options


def _read(key: str, text: str, kind: Any) -> Any:
    readers = _readers(kind)
    if not readers:
        raise InputError(
            f"{key!r} cannot be written on a command line, got {shown(text)}. Set it "
            "in Python: dszog.minimize(method=...)."
        )
    for reader in readers:
        try:
            return reader.read(text)
        except (ValueError, KeyError):
            continue
    example = next(one.example for one in readers if one is not _NONE)
    raise InputError(
        f"--set {key} takes {' or '.join(one.name for one in readers)}, got "
        f"{shown(text)}. For example --set {key}={example}."
    )


def _readers(kind: Any) -> list[_WordReader]:
    """Return what reads the words of a type; nothing if it has none."""
    if get_origin(kind) in (Union, UnionType):
        readers = [one for part in get_args(kind) for one in _readers(part)]
        return [] if readers == [_NONE] else readers
    if get_origin(kind) is Literal:
        words = {choice: choice for choice in get_args(kind)}
        name = ", ".join(map(repr, words))
        return [_WordReader(name, words.__getitem__, next(iter(words)))]
    return [_BY_TYPE[kind]] if kind in _BY_TYPE else []


def whole(text: str) -> int:
    """Return the whole number that a text is; 1e6 is one."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def _number(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if "_" in text or not text.isascii():
            raise ValueError(text)
        return convert(text)

    return read


_NONE = _WordReader("none", lambda text: _NOTHING[text.lower()], "none")
_BY_TYPE: dict[Any, _WordReader] = {
    float: _WordReader("a number", _number(float), "0.1"),
    int: _WordReader("a whole number", _number(whole), "10"),
    bool: _WordReader("true or false", lambda text: _FLAGS[text.lower()], "true"),
    str: _WordReader("a word", str, "word"),
    type(None): _NONE,
}
