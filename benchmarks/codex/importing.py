"""Time to import the modules that a session with Codex needs."""

import time
from importlib import import_module

from benchmarks.effort import Effort, Figures


def importing(effort: Effort) -> Figures:
    """Import the manager and the adapter; ms."""
    del effort  # a process imports once
    began = time.perf_counter()
    for each in ("sessionmgr.manager", "sessionmgr_adapters.codex"):
        import_module(each)
    return {"import": (time.perf_counter() - began) * 1000}
