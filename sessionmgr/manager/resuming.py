"""Going on with a run that was paused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sessionmgr.errors import NotResumable
from sessionmgr.manager.asked import asked_before
from sessionmgr.manager.plan import RunWish
from sessionmgr.model import Snapshot
from sessionmgr.model.value import known_part

if TYPE_CHECKING:
    from sessionmgr.manager.plan import Wishes
    from sessionmgr.model import Run


def snapshot_of(body: bytes) -> Snapshot:
    """Read a snapshot as it is stored."""
    return msgspec.convert(known_part(msgspec.json.decode(body), Snapshot), Snapshot)


def wish_to_go_on(snapshot: Snapshot, run: Run, message: str | None, wishes: Wishes) -> RunWish:
    """Return what is asked for: the same as before, but for what `wishes` say.

    Raises:
        NotResumable: A precondition does not hold.
    """
    _require_resumable(snapshot, run)
    asked = asked_before(snapshot.asked)
    wish = RunWish(
        prompt=message or snapshot.message or "continue",
        permission_mode=snapshot.permission.asked if snapshot.permission else None,
        provider_session_id=snapshot.provider_session_id,
        resumed_from=snapshot.run_id,
        metadata=run.metadata,
        **msgspec.structs.asdict(asked),
    )
    wish = msgspec.structs.replace(wish, **wishes)
    clocks, budget = wish.clocks.over(asked.clocks), wish.budget.over(asked.budget)
    return msgspec.structs.replace(wish, clocks=clocks, budget=budget)


def _require_resumable(snapshot: Snapshot, run: Run) -> None:
    if snapshot.provider_session_id is None:
        raise NotResumable(run.id, "the provider's session is not known")
    if run.open_tools:
        names = ", ".join(run.open_tools.values())
        raise NotResumable(run.id, f"a tool call was cut half way: {names}")
    if not Path(snapshot.cwd).is_dir():
        raise NotResumable(run.id, f"its directory {snapshot.cwd} is not there any more")
