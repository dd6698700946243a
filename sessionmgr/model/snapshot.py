"""Snapshot of a paused run, from which this process or another resumes it."""

from __future__ import annotations

import msgspec

from sessionmgr.model.json_codec import Json
from sessionmgr.model.permission import Permission
from sessionmgr.model.value import Value


class Snapshot(Value, frozen=True, kw_only=True):
    """A paused run: the provider's session, and the permissions of the run."""

    id: str
    run_id: str
    session_id: str
    provider: str
    provider_session_id: str | None
    cwd: str
    permission: Permission | None = None
    node: str | None = None
    """The caller's own name for the interrupted step."""
    state: Json = None
    """The caller's own state."""
    message: str | None = None
    """Message with which the run resumes, unless the caller gives another."""
    asked: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """The other parts of the request: timeouts, budget, options, ..."""
    created_at: str = ""
