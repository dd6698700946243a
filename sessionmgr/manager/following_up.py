"""Follow-ups: runs that continue the session of a finished run.

A follow-up is a new run of the same session. It has the directory, model, permission mode, tools,
options and limits of the followed run, unless the caller overrides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.errors import NotResumable
from sessionmgr.manager.asked import Asked, asked_before
from sessionmgr.manager.plan import RunWish
from sessionmgr.manager.resuming import message_to_resume
from sessionmgr.model import TERMINAL, RunStarted, decode_event

if TYPE_CHECKING:
    from sessionmgr.manager.plan import Wishes
    from sessionmgr.model import Run
    from sessionmgr.store import Store

FOLLOWS: Final = "follow_up_of"
"""The metadata key under which a follow-up stores the id of the followed run."""


async def asked_in(store: Store, run: Run) -> Asked | None:
    """Return a run's recorded wishes; None if an older version has recorded it."""
    page = await store.events(run.session_id, run_id=run.id, types=["run_started"], limit=1)
    for row in page.rows:
        event = decode_event(row.body)
        if isinstance(event, RunStarted) and isinstance(event.asked, dict):
            return asked_before(event.asked)
    return None


def wish_to_follow_up(
    run: Run, asked: Asked | None, message: str | None, wishes: Wishes
) -> RunWish:
    """Return the wish of a follow-up; `asked` is that of the followed run.

    Raises:
        NotResumable: A precondition does not hold; the error names it.
    """
    if run.status not in TERMINAL:
        raise NotResumable(run.id, f"it is {run.status}: wait for its end, or append to it")
    if run.provider_session_id is None:
        raise NotResumable(run.id, "the provider's session is not known")
    asked = asked or Asked()
    wish = RunWish(
        prompt=message_to_resume([run], message),
        permission_mode=run.permission.asked if run.permission else None,
        provider_session_id=run.provider_session_id,
        resumed_from=run.id,
        metadata=run.metadata,
    )
    wish = msgspec.structs.replace(wish, **asked.wishes(run.id, wishes))
    return msgspec.structs.replace(wish, metadata={**wish.metadata, FOLLOWS: run.id})
