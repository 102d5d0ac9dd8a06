"""Checkpoints: what a run needs to go on, in files that are whole or not there."""

from dszog.save.encoding import settings_of, with_settings
from dszog.save.recorder import Recorder, ReplayOverError
from dszog.save.sizes import SizeNote
from dszog.save.store import Store

__all__ = [
    "Recorder",
    "ReplayOverError",
    "SizeNote",
    "Store",
    "settings_of",
    "with_settings",
]
