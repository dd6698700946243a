"""What must be known to go on with a run that was paused, in this process or another."""

from __future__ import annotations

import msgspec

from sessionmgr.model.json_codec import Json
from sessionmgr.model.permission import Permission
from sessionmgr.model.value import Value


class Snapshot(Value, frozen=True, kw_only=True):
    """A paused run: where the provider finds it, and what it was allowed."""

    id: str
    run_id: str
    session_id: str
    provider: str
    provider_session_id: str | None
    cwd: str
    permission: Permission | None = None
    node: str | None = None
    """The caller's own name for the step it was in."""
    state: Json = None
    """The caller's own state."""
    message: str | None = None
    """What to say when it is resumed, unless the caller says otherwise."""
    asked: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """What else the run was asked for: its clocks, its budget, its options, ..."""
    created_at: str = ""
