"""Resuming paused or interrupted runs, and the notice to the agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.errors import NotResumable
from sessionmgr.manager.asked import asked_before
from sessionmgr.manager.plan import RunWish
from sessionmgr.manager.withheld import give_back
from sessionmgr.model import Snapshot
from sessionmgr.model.value import known_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sessionmgr.manager.plan import Wishes
    from sessionmgr.model import Json, Run

CONTINUE: Final = "continue"


def snapshot_of(body: bytes) -> Snapshot:
    """Read a snapshot as it is stored."""
    return msgspec.convert(known_part(msgspec.json.decode(body), Snapshot), Snapshot)


def wish_to_go_on(
    snapshot: Snapshot, run: Run, message: str | None, wishes: Wishes, known: Mapping[str, Json]
) -> RunWish:
    """Return what is asked for: the same as before, but for what `wishes` say.

    Secret options, which are not stored, come from those that are `known`.

    Raises:
        NotResumable: A precondition does not hold.
    """
    _require_resumable(snapshot, run)
    asked = asked_before(snapshot.asked)
    given = wishes.get("options", {})
    if not isinstance(given, msgspec.Struct):
        restored = give_back(asked.options, asked.withheld, known)
        wishes = {**wishes, "options": {**restored, **given}}
    wish = RunWish(
        prompt=message_to_resume([run], message or snapshot.message),
        permission_mode=snapshot.permission.asked if snapshot.permission else None,
        provider_session_id=snapshot.provider_session_id,
        resumed_from=snapshot.run_id,
        metadata=run.metadata,
    )
    return msgspec.structs.replace(wish, **asked.wishes(run.id, wishes))


def _require_resumable(snapshot: Snapshot, run: Run) -> None:
    if snapshot.provider_session_id is None:
        raise NotResumable(run.id, "the provider's session is not known")
    if not Path(snapshot.cwd).is_dir():
        raise NotResumable(run.id, f"its directory {snapshot.cwd} is not there any more")


def message_to_resume(runs: Iterable[Run], message: str | None = None) -> str:
    """Return the message to an agent whose session is resumed after these runs, newest first.

    An agent that was cut inside a tool call must not assume that it succeeded or failed.
    """
    cut = _cut_tools(runs)
    if not cut:
        return message or CONTINUE
    notice = (
        f"You were interrupted while a tool call was running ({', '.join(cut)}). Its outcome is "
        "unknown: it may have completed, in part or in full, or not at all. Check what it has done "
        "before you repeat it."
    )
    return f"{notice} {'Then continue.' if message is None else message}"


def _cut_tools(runs: Iterable[Run]) -> list[str]:
    """Return the tools whose calls were cut, unless the agent has worked since."""
    for run in runs:
        if run.open_tools or run.interrupted_tools:
            return list(dict.fromkeys([*run.open_tools.values(), *run.interrupted_tools]))
        if run.turns or run.text or run.tool_calls.count:
            return []
    return []
