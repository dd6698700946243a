"""The desk for other processes: it takes their requests out of the store and sees to them.

Whoever holds the run that a request is about takes it; other managers on the same store leave it
alone. Each is seen to by a task of its own, so that none waits for another.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter import Allow, Deny
from sessionmgr.errors import SessionmgrError
from sessionmgr.manager.handles import RunHandle
from sessionmgr.model import Json, encode_json
from sessionmgr.store import StoreClosed, StoreError, StoreUnusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.manager.handles import SessionHandle
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.store import Request, StoredRequest

log: Final = logging.getLogger("sessionmgr.manager")

AGAIN: Final = 1.0
"""Seconds to wait for a store that does not answer."""


_INTERRUPTED: Final[dict[str, Json]] = {
    "ok": False,
    "error": "the manager stumbled over it, and cannot tell what came of it",
}


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a request's body says; which fields count depends on its kind."""

    detail: str | None = None
    content: str = ""
    approval_id: str | None = None
    allow: bool = False
    node: str | None = None
    message: str | None = None


class RequestServer:
    """Serves the requests that concern this manager's runs."""

    def __init__(
        self, tables: ManagerState, session_of: Callable[[RunState], SessionHandle]
    ) -> None:
        self._tables: Final = tables
        self._session_of: Final = session_of
        self._begun: Final[set[str]] = set()
        """Requests that are being seen to; or were, when the desk crashed."""
        self._at_work: Final[set[trio.CancelScope]] = set()

    async def serve(self) -> None:
        """See to requests as they come."""
        last = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._finish_open_requests)
            while True:
                try:
                    newest = await self._tables.store.wait_request(after=last)
                    while page := await self._tables.store.requests(after=last):
                        for stored in page:
                            last = stored.number
                            await self._accept(stored, nursery)
                    last = max(last, newest)  # completed ones are not shown
                except (StoreClosed, StoreUnusable) as error:
                    log.warning("event=requests_not_read why=%s", error)
                    await trio.sleep(AGAIN)

    async def _finish_open_requests(self) -> None:
        """At the end, give the requests that are being handled the grace to be answered.

        Their callers wait in other processes, and do not learn of our end otherwise.
        """
        try:
            await trio.sleep_forever()
        finally:
            soon = trio.current_time() + self._tables.clocks.of("close")
            for scope in self._at_work:
                scope.deadline = soon

    async def _accept(self, stored: StoredRequest, nursery: trio.Nursery) -> None:
        request = stored.request
        if request.request_id in self._begun:  # by one that crashed: it is not done twice
            nursery.start_soon(self._store_answer, request, encode_json(_INTERRUPTED))
            return
        entries = self._target_runs(request.target)
        if entries and await self._tables.store.claim_request(
            request.request_id, self._tables.owner
        ):
            self._begun.add(request.request_id)
            nursery.start_soon(self._handle, request, entries)

    def _target_runs(self, target: str) -> list[RunState]:
        """Return the runs that a request is about: one, or all of a session."""
        entry = self._tables.runs.get(target)
        if entry is not None:
            return [entry]
        live = self._tables.live_sessions.get(target)
        return list(live.runs.values()) if live is not None else []

    async def _handle(self, request: Request, entries: list[RunState]) -> None:
        answer: dict[str, Json]
        with trio.CancelScope(shield=True) as scope:
            self._at_work.add(scope)
            try:
                try:
                    order = msgspec.json.decode(request.body or b"{}", type=RequestBody)
                    answer = {"ok": True, **await self._execute(request.kind, order, entries)}
                except (SessionmgrError, msgspec.MsgspecError) as error:
                    answer = {"ok": False, "error": str(error)}
                await self._store_answer(request, encode_json(answer))
            finally:
                self._at_work.discard(scope)

    async def _store_answer(self, request: Request, answer: bytes) -> None:
        """Write down what came of a request, as soon as the store lets us."""
        with trio.move_on_after(self._tables.clocks.of("store") or float("inf")) as scope:
            await self._complete(request, answer)
            self._begun.discard(request.request_id)
        if scope.cancelled_caught:
            log.warning("event=request_not_answered request=%s", request.request_id)

    async def _complete(self, request: Request, answer: bytes) -> None:
        while True:  # noqa: ASYNC913  # each turn waits for the store
            try:
                await self._tables.store.complete(request.request_id, answer)
            except (StoreClosed, StoreUnusable):
                await trio.sleep(AGAIN)
            except StoreError as error:
                log.warning("event=request_lost request=%s why=%s", request.request_id, error)
                return
            else:
                return

    async def _execute(
        self, kind: str, order: RequestBody, entries: list[RunState]
    ) -> dict[str, Json]:
        runs = [RunHandle(self._tables, entry, self._session_of(entry)) for entry in entries]
        match kind:
            case "cancel":
                await trio.lowlevel.checkpoint()
                return {"cancelled": sum(run.cancel(order.detail) for run in runs)}
            case "pause":
                snapshot = await runs[0].pause(node=order.node, message=order.message)
                return {"snapshot": snapshot.id}
            case "append":
                follow_up = await runs[0].append(order.content)
                return {"state": follow_up.state, "run": follow_up.run.id}
            case "approve":
                await trio.lowlevel.checkpoint()
                return {"answered": self._approve(order, entries)}
            case _:
                await trio.lowlevel.checkpoint()
                return {"ok": False, "error": f"there is no request {kind!r}"}

    def _approve(self, order: RequestBody, entries: list[RunState]) -> bool:
        for entry in entries:
            for approval_id, question in list(entry.questions.items()):
                if question.ruled is not None or approval_id not in entry.run.open_approvals:
                    continue  # the mode answers it, or it is not stored yet
                if order.approval_id in {None, approval_id}:
                    question.scope.cancel()
                    decision = (
                        Allow(reason=order.detail, by="request")
                        if order.allow
                        else Deny(reason=order.detail, by="request")
                    )
                    entry.session_state.commands.decide_approval(entry, question, decision)
                    return True
        return False
