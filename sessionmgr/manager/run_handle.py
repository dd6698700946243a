"""A run, as its user holds it: an id, a cursor, and ways to have a say in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec
import trio

from sessionmgr.adapter import StopReason
from sessionmgr.manager.argument_checks import MESSAGES, require_arguments
from sessionmgr.manager.commands import TurnMessage
from sessionmgr.manager.cursor import Cursor
from sessionmgr.manager.errors import NotPausable
from sessionmgr.manager.lazy_event import LazyEvent
from sessionmgr.manager.pause_snapshot import PauseOrder
from sessionmgr.manager.resume_spec import storable_options
from sessionmgr.manager.shutdown import wait_until_ended, wait_until_gone
from sessionmgr.manager.text_cursor import TextCursor
from sessionmgr.model import (
    UNSUPPORTED,
    EndCause,
    IdKind,
    RunResult,
    RunStatus,
    Snapshot,
    encode_json,
)
from sessionmgr.store import StoreTimeout

if TYPE_CHECKING:
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.manager.session_handle import SessionHandle
    from sessionmgr.model import Json


class FollowUp(msgspec.Struct, frozen=True):
    """What became of a message to a run: taken into its turn, or queued as the run `run`.

    Or the provider did not answer: then it may have it, and it is not sent again.
    """

    state: Literal["accepted", "queued", "unknown"]
    run: RunHandle

    @property
    def accepted(self) -> bool:
        """Whether the turn that was on has taken it."""
        return self.state == "accepted"


class RunHandle:
    """One run. It goes on whether or not anybody holds or reads this."""

    __slots__ = ("_entry", "_session", "_tables")

    def __init__(self, tables: ManagerState, entry: RunState, session: SessionHandle) -> None:
        self._tables: Final = tables
        self._entry: Final = entry
        self._session: Final = session

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.status}>"

    @property
    def id(self) -> str:
        """Its id."""
        return self._entry.id

    @property
    def session_id(self) -> str:
        """Its session's id."""
        return self._entry.run.session_id

    @property
    def session(self) -> SessionHandle:
        """Its session."""
        return self._session

    @property
    def status(self) -> RunStatus:
        """How it stands in the store."""
        return self._entry.run.status

    def __aiter__(self) -> Cursor:
        """Read its events from the first to the terminal one; each time anew."""
        return self.events()

    def events(self, *, after: int = 0) -> Cursor:
        """Read its events that have a number above `after`, to the terminal one."""
        first = self._entry.run.first_seq or self._entry.session_state.last_seq + 1
        return Cursor(
            self._tables,
            self.session_id,
            after=max(first - 1, after),
            run_id=self.id,
            ended=self._entry.ended,
        )

    def text(self) -> TextCursor:
        """Read the agent's text from its beginning, in pieces, as it arrives; each time anew.

        Each character comes once, whether the provider streams its messages or sends them whole.

        Example:
            ```python
            async def show(run: RunHandle) -> None:
                async for piece in run.text():
                    print(piece, end="", flush=True)
            ```
        """
        return TextCursor(aiter(self))

    async def result(self) -> RunResult:
        """Wait for the end and return what became of it. That it failed is no exception."""
        self._tables.require_own_trio_run()
        entry = self._entry
        await entry.ended.wait()
        # Its own process may still be ending, and has something to add.
        await wait_until_gone(entry)
        return entry.run.result()

    def cancel(self, detail: str | None = None) -> bool:
        """Have it end; False if that is settled already.

        Args:
            detail: The reason, for the record; by default none.
        """
        self._tables.require_own_trio_run()
        return self._entry.end(StopReason.worded(EndCause.CALLER, detail))

    def supersede(self, detail: str | None = None) -> bool:
        """Have it end because a newer attempt at the same has taken over.

        Args:
            detail: The reason, for the record; by default none.
        """
        self._tables.require_own_trio_run()
        return self._entry.end(StopReason(cause=EndCause.NEWER_ATTEMPT, detail=detail))

    async def append(self, content: str) -> FollowUp:
        """Give it another message: into the turn that is on, or else as the session's next run.

        Args:
            content: The message, which must not be empty.
        """
        require_arguments("append", MESSAGES, {"content": content})
        self._tables.require_own_trio_run()
        entry = self._entry
        tree = self._tables.providers.get(entry.run.provider)
        steers = tree is not None and tree.can_append()
        if steers and entry.is_active:
            message_id = self._tables.new_id(IdKind.MESSAGE)
            sent = TurnMessage(entry, message_id, content, LazyEvent())
            entry.session_state.commands.append_message(sent)
            entry.session_state.add_waiter(sent.written)
            await sent.written.wait()
            if sent.fate == "sent":
                return FollowUp("accepted", self)
            if sent.is_begun and sent.fate != "dropped":
                return FollowUp("unknown", self)
        return FollowUp("queued", await self._session.follow_up(entry, content))

    async def pause(
        self, *, node: str | None = None, state: Json = None, message: str | None = None
    ) -> Snapshot:
        """Interrupt it so that it can go on later; `node` and `state` are the caller's own.

        Args:
            node: The caller's own name for the step that the run was in.
            state: JSON of the caller's own, stored in the snapshot.
            message: The prompt with which the run resumes; by default a request to continue.

        Raises:
            NotPausable: It could not be resumed, or has ended.
            StoreSilent: The manager went down, and its store did not answer.
        """
        require_arguments("pause", MESSAGES, {"message": message})
        self._tables.require_own_trio_run()
        entry = self._entry
        encode_json(state)  # what is no JSON is the caller's mistake, here and now
        self._require_pausable()
        snapshot_id = self._tables.new_id(IdKind.SNAPSHOT)
        order = PauseOrder(snapshot_id, node, state, message, entry.plan.asked)
        if not entry.end(StopReason(cause=EndCause.PAUSE), order):
            raise NotPausable(self.id, "it is ending already")
        await entry.ended.wait()
        if entry.run.status is not RunStatus.PAUSED:
            raise NotPausable(self.id, f"it is {entry.run.status}")
        if entry.plan.wish.approve is not None:
            self._tables.approvers[self.session_id] = entry.plan.wish.approve
        if order.asked.get("withheld"):
            self._tables.secret_options[snapshot_id] = storable_options(entry.plan.wish)
        with self._tables.lifetime.cancel_after_end(entry.plan.clocks.of("close")):
            stored = await self._tables.store.snapshot(snapshot_id)
            return msgspec.json.decode(stored.body, type=Snapshot)
        raise StoreTimeout("the store")

    def _require_pausable(self) -> None:
        entry = self._entry
        if entry.is_over:
            raise NotPausable(self.id, f"it is {entry.run.status}")
        if entry.pause is not None:
            raise NotPausable(self.id, "it is being paused already")
        tree = self._tables.providers[entry.run.provider]
        if tree.capabilities_for(entry.spec.options).resume is UNSUPPORTED:
            raise NotPausable(self.id, f"{tree.name} cannot resume")
        if entry.run.provider_session_id is None:
            raise NotPausable(self.id, "the provider has not named its session yet")

    async def leave(self, *, early: bool) -> None:
        """Leave the block of the run: what is not over is cancelled, and its end waited for.

        Args:
            early: Whether an exception leaves the block.
        """
        entry = self._entry
        if not entry.is_over:
            detail = "its block was left by an exception" if early else "its block was left"
            entry.end(StopReason(cause=EndCause.CALLER, detail=detail))
        if not entry.ended.is_set():  # as it usually is
            await wait_until_ended(entry)
        if not early:  # else what leaves the block goes on its way, and no cancel takes its place
            await trio.lowlevel.checkpoint_if_cancelled()
