"""The server of requests from other processes, which arrive through the store.

The manager that owns a target run handles the request; other managers on the same store ignore it.
Each request has a task of its own, so that none waits for another.
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
    "error": "the request handler crashed; the outcome is unknown",
}


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request; which fields count depends on the request's kind."""

    detail: str | None = None
    content: str = ""
    approval_id: str | None = None
    allow: bool = False
    node: str | None = None
    message: str | None = None


class RequestServer:
    """The server of the requests that concern this manager's runs."""

    def __init__(
        self, manager_state: ManagerState, session_of: Callable[[RunState], SessionHandle]
    ) -> None:
        self._state: Final = manager_state
        self._session_of: Final = session_of
        self._begun: Final[set[str]] = set()
        """The requests that were begun, including those whose handling crashed."""
        self._at_work: Final[set[trio.CancelScope]] = set()

    async def serve(self) -> None:
        """Handle requests as they arrive."""
        last = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._finish_open_requests)
            while True:
                try:
                    newest = await self._state.store.wait_request(after=last)
                    while page := await self._state.store.requests(after=last):
                        for stored in page:
                            last = stored.number
                            await self._accept(stored, nursery)
                    last = max(last, newest)  # completed requests are not listed
                except (StoreClosed, StoreUnusable) as error:
                    log.warning(
                        "Requests cannot be read from the store; trying again. error=%s", error
                    )
                    await trio.sleep(AGAIN)

    async def _finish_open_requests(self) -> None:
        """Give the requests in progress the grace to be answered, because the manager closes.

        Their callers wait in other processes, and learn of the end only by an answer.
        """
        try:
            await trio.sleep_forever()
        finally:
            soon = trio.current_time() + self._state.clocks.of("close")
            for scope in self._at_work:
                scope.deadline = soon

    async def _accept(self, stored: StoredRequest, nursery: trio.Nursery) -> None:
        request = stored.request
        if request.request_id in self._begun:  # its handling crashed: it is not repeated
            nursery.start_soon(self._store_answer, request, encode_json(_INTERRUPTED))
            return
        entries = self._target_runs(request.target)
        if entries and await self._state.store.claim_request(request.request_id, self._state.owner):
            self._begun.add(request.request_id)
            nursery.start_soon(self._handle, request, entries)

    def _target_runs(self, target: str) -> list[RunState]:
        """Return the runs that a request targets: one, or all of a session."""
        entry = self._state.runs.get(target)
        if entry is not None:
            return [entry]
        live = self._state.live_sessions.get(target)
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
        """Store the answer to a request as soon as the store accepts it."""
        with trio.move_on_after(self._state.clocks.of("store") or float("inf")) as scope:
            await self._complete(request, answer)
            self._begun.discard(request.request_id)
        if scope.cancelled_caught:
            log.warning(
                "The answer to a request was not stored in time. request=%s", request.request_id
            )

    async def _complete(self, request: Request, answer: bytes) -> None:
        while True:  # noqa: ASYNC913  # each turn waits for the store
            try:
                await self._state.store.complete(request.request_id, answer)
            except (StoreClosed, StoreUnusable):
                await trio.sleep(AGAIN)
            except StoreError as error:
                log.warning(
                    "The answer to a request could not be stored. request=%s error=%s",
                    request.request_id,
                    error,
                )
                return
            else:
                return

    async def _execute(
        self, kind: str, order: RequestBody, entries: list[RunState]
    ) -> dict[str, Json]:
        runs = [RunHandle(self._state, entry, self._session_of(entry)) for entry in entries]
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
                return {"ok": False, "error": f"unknown request {kind!r}"}

    def _approve(self, order: RequestBody, entries: list[RunState]) -> bool:
        for entry in entries:
            for approval_id, question in list(entry.questions.items()):
                if question.ruled is not None or approval_id not in entry.run.open_approvals:
                    continue  # the mode decides it, or it is not stored yet
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
