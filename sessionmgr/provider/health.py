"""Whether a provider could be used now."""

from __future__ import annotations

import shutil
from typing import Literal

import msgspec
import trio


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a provider could be used now; `detail` says why not, and what to do about it."""

    state: Literal["ok", "skip", "fail"] = "ok"
    detail: str = ""


async def health_of(program: str) -> Health:
    """Say whether a program is there, under its usual name."""
    await trio.lowlevel.checkpoint()
    if shutil.which(program) is None:
        why = f"there is no program {program!r} on PATH; options.command may name another"
        return Health(state="skip", detail=why)
    return Health()
