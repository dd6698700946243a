"""Pausing a run: the request, and the snapshot that is stored with the run's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sessionmgr.model import Snapshot as SnapshotValue, encode_json
from sessionmgr.store import SnapshotRow

if TYPE_CHECKING:
    from sessionmgr.model import Json, Run
    from sessionmgr.store import Redactor


class PauseRequest(msgspec.Struct, frozen=True):
    """A request to pause a run, with the contents of its snapshot."""

    snapshot_id: str
    node: str | None
    state: Json
    message: str | None
    asked: dict[str, Json]


def make_snapshot(
    request: PauseRequest, run: Run, *, cwd: str, redactor: Redactor, created_at: str, at: int
) -> SnapshotRow:
    """Make the snapshot of a paused run from its request and its record."""
    value = SnapshotValue(
        id=request.snapshot_id,
        run_id=run.id,
        session_id=run.session_id,
        provider=run.provider,
        provider_session_id=run.provider_session_id,
        cwd=run.cwd or cwd,
        permission=run.permission,
        node=request.node,
        state=request.state,
        message=request.message,
        asked=request.asked,
        created_at=created_at,
    )
    return SnapshotRow(
        snapshot_id=value.id,
        session_id=run.session_id,
        run_id=run.id,
        at=at,
        body=redactor.redact(encode_json(value)),
    )
