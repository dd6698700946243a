"""The result of one check of `doctor`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

State: TypeAlias = Literal["ok", "skip", "fail"]


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check; after a failure, `next` names the next step."""

    name: str
    state: State = "ok"
    detail: str = ""
    next: str = ""
