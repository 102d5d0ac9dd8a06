"""Checkpoints: what a run needs to go on, in files that are whole or not there."""

from dszog.checkpoint.encoding import settings_of, with_settings
from dszog.checkpoint.recorder import Recorder, ReplayOverError
from dszog.checkpoint.sizes import SizeNote
from dszog.checkpoint.store import Store

__all__ = [
    "Recorder",
    "ReplayOverError",
    "SizeNote",
    "Store",
    "settings_of",
    "with_settings",
]
