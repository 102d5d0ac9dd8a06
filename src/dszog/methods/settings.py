"""Settings of methods are given by name; a name that there is not gets an answer."""

from __future__ import annotations

import inspect
from typing import Any, Self

from dszog.contract.hints import RENAMED, about_option
from dszog.contract.validation import shown
from dszog.errors import InputTypeError


class _OfInit:
    """The signature that ``help`` shows: that of ``__init__``, not of ``__new__``."""

    def __get__(self, made: Any, kind: type[Any]) -> inspect.Signature:
        _, *parameters = inspect.signature(kind.__init__).parameters.values()
        return inspect.Signature(parameters)


class Settings:
    """What methods, which are dataclasses of their settings, are derived from.

    The check is made here once for all of them, before the ``__init__`` that the
    dataclass has written.
    """

    __slots__ = ()
    __signature__ = _OfInit()

    def __new__(cls, /, *given: Any, **named: Any) -> Self:
        """Refuse a setting that there is not, with a word on what it may be.

        What there is, ``__init__`` says: that of a subclass may be written by hand.
        """
        known = inspect.signature(cls).parameters
        kinds = {parameter.kind for parameter in known.values()}
        if given and kinds <= {inspect.Parameter.KEYWORD_ONLY}:
            raise InputTypeError(
                f"{cls.__name__}: settings are given by name, got {shown(given[0])}. "
                f"For example {cls.__name__}(step_size=0.01)."
            )
        for name, value in named.items():
            if name in known or inspect.Parameter.VAR_KEYWORD in kinds:
                continue
            hint = about_option(name, known, set(RENAMED.values()))
            raise InputTypeError(
                f"{cls.__name__}: there is no setting {name!r}, got {shown(value)}."
                f"{hint or ' Settings: ' + ', '.join(known) + '.'}"
            )
        return super().__new__(cls)
