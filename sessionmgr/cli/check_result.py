"""One thing that `doctor` has looked at."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

State: TypeAlias = Literal["ok", "skip", "fail"]


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """How it is; where it is not well, `next` is what to do."""

    name: str
    state: State = "ok"
    detail: str = ""
    next: str = ""
