"""A session: one conversation with one provider, in one directory."""

from __future__ import annotations

from typing import Literal

import msgspec

from sessionmgr.model.json_codec import Json
from sessionmgr.model.permission import PermissionMode
from sessionmgr.model.value import Value


class Session(Value, frozen=True, kw_only=True):
    """Record of a session, without its runs."""

    id: str
    provider: str
    cwd: str
    permission_mode: PermissionMode = PermissionMode.DEFAULT
    model: str | None = None
    clocks: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Timeouts that the session was opened with: seconds by name."""
    budget: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Budget of each of its runs, as given when it was opened."""
    provider_session_id: str | None = None
    state: Literal["open", "closed"] = "open"
    created_at: str = ""
    closed_at: str | None = None
    metadata: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
