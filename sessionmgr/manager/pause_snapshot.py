"""The pause of a run: the order, and the snapshot that is stored with the run's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sessionmgr.model import Snapshot as SnapshotValue, encode_json
from sessionmgr.store import SnapshotRow

if TYPE_CHECKING:
    from sessionmgr.model import Json, Run
    from sessionmgr.store import Redactor


class PauseOrder(msgspec.Struct, frozen=True):
    """The order to pause a run, with the contents of its snapshot."""

    snapshot_id: str
    node: str | None
    state: Json
    message: str | None
    asked: dict[str, Json]


def make_snapshot(
    order: PauseOrder, run: Run, *, cwd: str, redactor: Redactor, created_at: str, at: int
) -> SnapshotRow:
    """Make the snapshot of a paused run from its order and its record."""
    value = SnapshotValue(
        id=order.snapshot_id,
        run_id=run.id,
        session_id=run.session_id,
        provider=run.provider,
        provider_session_id=run.provider_session_id,
        cwd=run.cwd or cwd,
        permission=run.permission,
        node=order.node,
        state=order.state,
        message=order.message,
        asked=order.asked,
        created_at=created_at,
    )
    return SnapshotRow(
        snapshot_id=value.id,
        session_id=run.session_id,
        run_id=run.id,
        at=at,
        body=redactor.redact(encode_json(value)),
    )
