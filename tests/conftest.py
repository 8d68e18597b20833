"""Property tests try the same cases every time, so that a red run means a change; exploring is on demand."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("explore" if os.environ.get("LEVELWIND_EXPLORE") else "same")
