"""How the tests search: `HYPOTHESIS_PROFILE=thorough pytest` looks much further.

The default profile always tries the same examples, so that a red test means a change
in the code. The thorough one tries fresh ones and prints how to reproduce a failure.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, Phase, settings

settings.register_profile("default", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "thorough",
    deadline=None,
    derandomize=False,
    print_blob=True,
    max_examples=2_000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(  # a failure is enough, the smallest one is not needed
    "mutants", deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A job behind the shell (`make unit &`) is started deaf to Ctrl-C, and its children
# inherit that: tests that press it would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
