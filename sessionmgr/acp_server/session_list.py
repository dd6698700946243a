"""The stored sessions of a provider, in pages, newest first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.acp_server.errors import INVALID_PARAMS, AcpRequestRefused
from sessionmgr.acp_server.updates import title_of
from sessionmgr.model import MessageSent

if TYPE_CHECKING:
    from sessionmgr.acp_server.params import JsonObject, ListSessionsParams
    from sessionmgr.manager import Manager, SessionSummary
    from sessionmgr.model import Json

PAGE: Final = 50
PATIENCE: Final = 1.0
"""Seconds for the title of one session."""


async def list_sessions(manager: Manager, provider: str, params: ListSessionsParams) -> JsonObject:
    """Return a page of sessions; the cursor is the id of the last session of the page before.

    Raises:
        AcpRequestRefused: The cursor is unknown.
    """
    limit = 2 * PAGE
    while True:
        stored = await manager.sessions(provider=provider, limit=limit)
        page = _page(stored, params)
        if (page is not None and len(page) > PAGE) or len(stored) < limit:
            break
        limit *= 4
    if page is None:
        raise AcpRequestRefused(INVALID_PARAMS, f"cursor: unknown session {params.cursor!r}")
    sessions: list[Json] = [await _session_info(manager, each) for each in page[:PAGE]]
    result: JsonObject = {"sessions": sessions}
    if len(page) > PAGE:
        result["nextCursor"] = page[PAGE - 1].id
    return result


def _page(stored: list[SessionSummary], params: ListSessionsParams) -> list[SessionSummary] | None:
    """Return the sessions after the cursor, in the directory; None without the cursor's session."""
    if params.cursor is not None:
        ids = [each.id for each in stored]
        if params.cursor not in ids:
            return None
        stored = stored[ids.index(params.cursor) + 1 :]
    if params.cwd is None:
        return stored
    directory = os.path.realpath(params.cwd)
    return [each for each in stored if os.path.realpath(each.cwd) == directory]


async def _session_info(manager: Manager, session: SessionSummary) -> JsonObject:
    info: JsonObject = {"sessionId": session.id, "cwd": session.cwd}
    if session.created_at:
        info["updatedAt"] = session.created_at
    with trio.move_on_after(PATIENCE):
        async for event in manager.subscribe(session.id, types=["message_sent"]):
            if isinstance(event, MessageSent):
                info["title"] = title_of(event.content)
            break
    return info
