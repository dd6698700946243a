"""One append under construction: its numbered events, and the run records that include them.

Nothing here waits, and nothing outside changes before the store has committed the append.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

import msgspec

from sessionmgr.adapter import StopReason
from sessionmgr.manager.terminal_events import PROVIDER_CAUSES, late_end_event, terminal_event
from sessionmgr.model import (
    EVENT_TYPES,
    STATUS_EVENTS,
    TERMINAL,
    TRANSITIONS,
    EndCause,
    Event,
    MessageSent,
    MessageStreamed,
    ReasoningStreamed,
    RunEnded,
    RunStarted,
    RunStatus,
    SessionCreated,
    TokenUsageUpdated,
    ToolCallUpdated,
    decode_event,
    encode_event,
    encode_events,
    reduce_all,
    stamp,
)
from sessionmgr.store import EventRow, LedgerRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import AnyEvent, Run
    from sessionmgr.store import Redactor

log: Final = logging.getLogger("sessionmgr.manager")

_NO_FOLDS: Final[Mapping[RunState, Run]] = {}
# Previews change only the text of a record, which is not written again for them.
_PREVIEWS: Final = frozenset({MessageStreamed, ReasoningStreamed, ToolCallUpdated})
_BEFORE_START: Final = TRANSITIONS[RunStatus.PENDING]
_NAMES: Final[dict[type[Event], str]] = {of: name for name, of in EVENT_TYPES.items()}
_NANO: Final = 10**9
# The bytes around the envelope of every record: there is nothing to redact in them.
_FRAME: Final = len(encode_event(SessionCreated())) - len("session_created0null}")


class AppendBatch:
    """One batch on its way to the store, reused for the session's next one.

    The garbage collector runs when many more objects were allocated than freed, and each group has
    a batch of every session. So the batch and its lists are reused, and the rest is allocated on
    first use.
    """

    __slots__ = (
        *("_effects", "_provider", "_redactor", "_rows", "_streaming"),
        *("_unfolded", "_unsealed", "_was_closed", "at", "blobs", "closes", "first"),
        *("folds", "ledger", "reopens", "seq", "session_id", "size", "touched", "written"),
    )

    def __init__(
        self,
        *,
        last_seq: int,
        at: str,
        session_id: str,
        provider: str,
        redactor: Redactor,
        closed: bool = False,
    ) -> None:
        self.session_id: Final = session_id
        self._provider: Final = provider
        self._rows: Final[list[EventRow]] = []
        self.written: Final[list[AnyEvent]] = []
        """The events of the rows, as readers of the rows decode them."""
        self._effects: list[Callable[[], None]] | None = None
        self.clear()
        self.begin(last_seq, at, redactor, closed=closed)

    def begin(self, last_seq: int, at: str, redactor: Redactor, *, closed: bool = False) -> None:
        """Begin the next batch, after `clear`."""
        self.first = last_seq + 1
        self.seq = last_seq
        self.at = at
        self._was_closed = closed
        self._redactor = redactor

    def clear(self) -> Sequence[Callable[[], None]]:
        """Drop the stored batch; return its effects."""
        effects, self._effects = self._effects or (), None
        self._rows.clear()
        self.written.clear()
        self._unsealed: list[tuple[RunState | None, Sequence[Event]]] | None = None
        """The events without rows; `_seal` makes rows of all of them."""
        self._streaming: RunState | None = None
        """The run whose text is all that was written, if so."""
        self._unfolded: dict[RunState, list[AnyEvent]] | None = None
        self.folds: Mapping[RunState, Run] = _NO_FOLDS
        self.touched: tuple[RunState, ...] = ()
        """The runs with other events than previews."""
        self.ledger: list[LedgerRow] | None = None
        self.size = 0
        self.blobs: tuple[bytes, ...] = ()
        """The images that its events refer to."""
        self.closes = False
        """Whether it closes the session."""
        self.reopens = False
        """Whether it reopens the closed session."""
        return effects

    @property
    def is_text(self) -> bool:
        """Whether it consists of text of one run."""
        return self._streaming is not None and not self._unsealed

    @property
    def rows(self) -> Sequence[EventRow]:
        """The rows of all written events."""
        if self._unsealed:
            self._seal()
        return self._rows

    @property
    def effects(self) -> list[Callable[[], None]]:
        """The functions to call after the commit."""
        if self._effects is None:
            self._effects = []
        return self._effects

    @property
    def previews(self) -> Iterable[tuple[RunState, Sequence[AnyEvent]]]:
        """The preview events by run: they change only a record's text, so no fold includes them."""
        if self._streaming is not None:
            return ((self._streaming, self.written),)
        return () if self._unfolded is None else self._unfolded.items()

    @property
    def is_over(self) -> bool:
        """Whether the session is closed: no reader reads further events."""
        return self.closes or (self._was_closed and not self.reopens)

    def fold(self, entry: RunState) -> Run:
        """Return a run's record including this batch."""
        self._seal()
        run = self.folds.get(entry) or entry.run
        events = None if self._unfolded is None else self._unfolded.pop(entry, None)
        if events is not None:
            run = reduce_all(run, events)
            self.folds = {**self.folds, entry: run}
        return run

    def fold_all(self) -> None:
        """Update all records, except where only previews were written."""
        if self._unsealed:
            self._seal()
        for entry in self.touched:
            self.fold(entry)

    def write(self, entry: RunState | None, *events: Event) -> None:
        """Add events, unless the session is closed."""
        if self.is_over:
            types = ",".join(event.type for event in events)
            log.warning(
                "Events arrived too late to be stored. session=%s types=%s", self.session_id, types
            )
            return
        kinds = set(map(type, events))  # usually one kind
        if entry is not None:
            passed = entry.streams.redact(events, kinds, self._redactor)
            if passed is not events:
                events, kinds = tuple(passed), set(map(type, passed))
        if not events:  # the redaction holds back all of them
            return
        self.seq += len(events)
        if self._unsealed is None:
            self._unsealed = []
        self._unsealed.append((entry, events))
        if entry is None:
            return
        if not kinds <= _PREVIEWS and entry not in self.touched:
            self.touched += (entry,)
        if TokenUsageUpdated in kinds:
            self._add_ledger_row(entry, events)

    def _seal(self) -> None:
        """Number and encode at once the events that were written since the last time."""
        if self._streaming is not None:
            self._defer(self._streaming, self.written)
            self._streaming = None
        if not self._unsealed:
            return
        unsealed, self._unsealed = self._unsealed, None
        at, session_id, provider = self.at, self.session_id, self._provider
        first, stamped = self.first + len(self.written), list[Event]()
        runs: list[str | None] = []
        for entry, events in unsealed:
            run_id = None if entry is None else entry.run_id
            seq = first + len(stamped)
            stamped += stamp(events, seq, at, session_id, run_id, provider)
            runs += [run_id] * len(events)
        plain, exact = encode_events(stamped)
        names = [_NAMES[type(event)] for event in stamped]
        ours = 0
        if exact:  # an event with unknown fields may begin with them
            ours = _FRAME + min(map(len, names)) + len(str(first))
            ours += len(at) + len(session_id) + len(provider)
            ours += min([0 if run_id is None else len(run_id) for run_id in runs])
        bodies = self._redactor.redact_all(plain, ours)
        rows = list(map(EventRow, range(first, self.seq + 1), runs, names, bodies))
        # Results are made of stored events, so of the redacted ones.
        seen = (
            cast("list[AnyEvent]", stamped)
            if exact and bodies is plain
            else list(map(decode_event, bodies))
        )
        self._rows.extend(rows)
        self.written.extend(seen)
        begin = 0
        for entry, events in unsealed:
            end = begin + len(events)
            if entry is not None:
                own = seen if end - begin == len(seen) else seen[begin:end]
                self._defer(entry, own)
            begin = end

    def _defer(self, entry: RunState, events: Sequence[AnyEvent]) -> None:
        if self._unfolded is None:
            self._unfolded = {}
        self._unfolded.setdefault(entry, []).extend(events)

    def write_text(self, entry: RunState, events: Sequence[Event]) -> None:
        """Add pieces of text, which can nearly always be stored unchanged."""
        found = None if self.is_over else entry.streams.pass_text(events, self._redactor)
        if found is None:
            self.write(entry, *events)
            return
        is_first = not (self._rows or self._unsealed)
        self._seal()
        first, run_id = self.seq + 1, entry.run_id
        message_id = found[0].message_id
        at, session_id, provider = self.at, self.session_id, self._provider
        stamped = [
            MessageStreamed(
                delta=event.delta,
                message_id=message_id,
                seq=seq,
                at=at,
                session_id=session_id,
                run_id=run_id,
                provider=provider,
            )
            for seq, event in enumerate(found, first)
        ]
        bodies, exact = encode_events(stamped)
        self.seq += len(found)
        rows = [
            EventRow(seq, run_id, "message_streamed", body)
            for seq, body in enumerate(bodies, first)
        ]
        seen = cast("list[AnyEvent]", stamped) if exact else list(map(decode_event, bodies))
        if is_first:
            self._streaming = entry
        else:
            self._defer(entry, seen)
        self._rows.extend(rows)
        self.written.extend(seen)

    def _add_ledger_row(self, entry: RunState, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, TokenUsageUpdated):
                if self.ledger is None:
                    self.ledger = []
                self.ledger.append(_ledger_row(event, entry.id, self.fold(entry)))

    def changed_runs(self) -> list[Run]:
        """Return the changed records; unfinished messages are left to the events."""
        return [
            msgspec.structs.replace(run, partial=(), partial_id=None) if run.partial else run
            for run in map(self.fold, self.touched)
        ]

    def end(self, entry: RunState, stop: StopReason) -> None:
        """Write the terminal event for `stop`, unless there is one."""
        run = self.fold(entry)
        if run.status in TERMINAL:
            return
        made = terminal_event(stop, run)
        if run.status is RunStatus.PENDING and STATUS_EVENTS[made.type] not in _BEFORE_START:
            self.write(entry, complete_run_started(entry, RunStarted(synthetic=True)))
            made = terminal_event(stop, self.fold(entry))  # with the session that the start names
        made = msgspec.structs.replace(made, interrupted_tools=entry.stopped_in)
        self._leave_open(entry)
        self.write(entry, made)

    def _leave_open(self, entry: RunState) -> None:
        """Write that the delivery of pending messages is unknown; a later event may correct it."""
        for message_id, state in self.fold(entry).open_messages.items():
            content = entry.undelivered.get(message_id)
            if state == "queued" and content is not None:
                message = MessageSent(
                    message_id=message_id, content=content, follow_up=True, state="unknown"
                )
                self.write(entry, message)

    def ended_by_provider(self, entry: RunState, event: RunEnded) -> bool:
        """Write the provider's terminal event if it may end the run; return whether it did."""
        run = self.fold(entry)
        entry.conclude(StopReason(cause=EndCause.PROVIDER))  # an end that arrived as a plain event
        stop = entry.stop
        if run.status in TERMINAL or stop is None or stop.cause not in PROVIDER_CAUSES:
            self.write(entry, *late_end_event(event))
            return False
        if run.status is RunStatus.PENDING:
            self.write(entry, complete_run_started(entry, RunStarted(synthetic=True)))
        self._leave_open(entry)
        run = self.fold(entry)
        self.write(entry, msgspec.structs.replace(event, usage=run.usage, cost=run.cost))
        return True

    def has_ended(self, entry: RunState) -> bool:
        """Return whether the run ends with this batch."""
        return entry.run.status not in TERMINAL and self.fold(entry).status in TERMINAL


def complete_run_started(entry: RunState, event: RunStarted) -> RunStarted:
    """Complete the provider's start event with the data of the manager."""
    spec = entry.spec
    return msgspec.structs.replace(
        event,
        permission=event.permission or spec.permission,
        negotiation=event.negotiation or entry.negotiation,
        cwd=event.cwd or spec.cwd,
        model=event.model or spec.model,
        provider_session_id=event.provider_session_id or spec.provider_session_id,
        resumed_from=spec.resumed_from,
        metadata=entry.plan.wish.metadata,
        asked=entry.plan.asked,
    )


def _ledger_row(event: TokenUsageUpdated, run_id: str, run: Run) -> LedgerRow:
    return LedgerRow(
        run_id=run_id,
        provider_session_id=run.provider_session_id,
        nano_usd=None if event.cost is None else round(event.cost * _NANO),
        provenance=event.provenance.value,
        **msgspec.structs.asdict(event.usage),
    )
