"""Host in a child process: the child runs the manager and takes its orders over a pipe.

When the child dies, its owners of process trees end everything that it ran. The outcomes are in
the store, which both processes use; the batch reads them there.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter import Allow, Deny, Health
from sessionmgr.batch.errors import HostLost
from sessionmgr.batch.host_messages import (
    ActiveMessage,
    AliveMessage,
    AnswerMessage,
    AskMessage,
    BrokenMessage,
    CancelMessage,
    OpenMessage,
    ReadyMessage,
    RenewMessage,
    ReportedMessage,
    SubmitMessage,
    encode_message,
    from_child,
)
from sessionmgr.process import StderrTail
from sessionmgr.trio_util_types import RepeatedEvent
from sessionmgr.wire import LineDecoder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.adapter import Approve
    from sessionmgr.batch.host import AttemptActivity, AttemptSpec, Report
    from sessionmgr.batch.host_messages import FromChild, HostMessage
    from sessionmgr.batch.job import Job

PROGRAM: Final = "sessionmgr.batch.child_program"
LONGEST: Final = 256 * 1024 * 1024
SILENCE: Final = 60.0
"""Seconds without a message after which the child counts as lost."""
GRACE: Final = 30.0
"""Seconds that the child has to end by itself."""
LOSSES: Final = 5
"""Maximum number of consecutive losses without a report between them."""


class HostProcess:
    """One process that serves as the host."""

    def __init__(self, process: trio.Process) -> None:
        self.process: Final = process
        self.tail: Final = StderrTail(8192)
        self.reports: Final[deque[Report]] = deque()
        self.activities: Final[dict[tuple[str, int], tuple[AttemptActivity, float]]] = {}
        self.number = 0
        self.is_ready = False
        self.lost: str | None = None
        self.changed: Final = RepeatedEvent()
        self.write_lock: Final = trio.Lock()

    async def send(self, message: HostMessage) -> None:
        """Send a whole message to the child: part of a line would corrupt the stream.

        A child that does not read is declared lost after a while, so a send cannot wait forever.

        Raises:
            HostLost: The child does not read any more.
        """
        assert self.process.stdin is not None
        try:
            with trio.CancelScope(shield=True):
                async with self.write_lock:
                    await self.process.stdin.send_all(encode_message(message))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise HostLost(self.lost or "it does not read its orders") from error


class ChildHost:
    """Runs attempts in a process of its own, on the same store.

    `adapters` names classes that the child imports, `{"mine": "package.module:Adapter"}`;
    installed adapters need no entry. `agents` is the registry file of its agents.
    """

    def __init__(
        self,
        store: str | Path,
        *,
        adapters: Mapping[str, str] | None = None,
        agents: str | Path | None = None,
        approve: Approve | None = None,
    ) -> None:
        self._store: Final = str(store)
        self._adapters: Final = dict(adapters or {})
        self._agents: Final = None if agents is None else str(Path(agents).absolute())
        self._approve: Final = approve
        self._nursery: trio.Nursery | None = None
        self._child: HostProcess | None = None
        self._losses = 0

    @property
    def pid(self) -> int:
        """Process number of the current child."""
        assert self._child is not None
        return self._child.process.pid

    def readiness(self, job: Job) -> Health:
        """Report the provider as usable: the child checks its own adapters.

        Args:
            job: The job.
        """
        return Health()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run child processes, one after the other, until cancelled.

        Args:
            task_status: The status by which the caller learns of the start.
        """
        async with trio.open_nursery() as self._nursery:
            await self._start(self._nursery)
            task_status.started()
            await trio.sleep_forever()

    async def _start(self, nursery: trio.Nursery) -> None:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-P", "-m", PROGRAM],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            # The child imports the same modules as this process: -P excludes the working directory.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(each or "." for each in sys.path)},
            start_new_session=True,
        )
        child = self._child = HostProcess(process)
        await nursery.start(self._run_child, child)

    async def restore(self) -> None:
        """Start another child.

        Raises:
            HostLost: It does not start, or children were lost too often.
        """
        assert self._nursery is not None
        assert self._child is not None
        self._losses += 1
        if self._losses > LOSSES:
            raise HostLost(f"it was lost {LOSSES} times in a row: {self._child.lost}")
        await self._start(self._nursery)

    # --- calls of the batch ----------------------------------------------------------------------

    async def submit(self, work: AttemptSpec) -> None:
        """Start an attempt in the child.

        Args:
            work: The attempt and its job.
        """
        await self._send(SubmitMessage(work=work))

    async def cancel(self, job: str, attempt: int, detail: str | None) -> None:
        """Cancel an attempt in the child.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
            detail: The reason, for the record.
        """
        await self._send(CancelMessage(job=job, attempt=attempt, detail=detail))

    async def renew(self, seconds: float) -> None:
        """Renew the child's lease.

        Args:
            seconds: Seconds from now.
        """
        await self._send(RenewMessage(seconds=seconds))

    async def _send(self, message: HostMessage) -> None:
        assert self._child is not None
        await self._child.send(message)

    async def follow(self, after: int) -> Sequence[Report]:
        """Wait for reports; those read before a loss are returned before the loss is raised.

        Args:
            after: The number of the last report that is settled.
        """
        await trio.lowlevel.checkpoint()
        child = self._child
        assert child is not None
        while child.reports and child.reports[0][0] <= after:
            child.reports.popleft()
            self._losses = 0
        while not child.reports:
            if child.lost is not None:
                raise HostLost(child.lost)
            await child.changed.wait()
        return tuple(child.reports)

    def activity(self, job: str, attempt: int) -> AttemptActivity | None:
        """Return the last activity that the child has reported of an attempt.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
        """
        found = self._child.activities.get((job, attempt)) if self._child else None
        if found is None:
            return None
        activity, at = found
        since = activity.doing_for + trio.current_time() - at
        return msgspec.structs.replace(activity, doing_for=since)

    # --- lifetime of the child -------------------------------------------------------------------

    async def _run_child(  # noqa: ASYNC128  # what it calls says that it has started
        self, child: HostProcess, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Read the child's messages until it ends.

        Raises:
            HostLost: The child never became ready.
        """
        begin = OpenMessage(
            store=self._store,
            adapters=self._adapters,
            agents=self._agents,
            asks=self._approve is not None,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._drain, child)
            try:
                with suppress(HostLost):  # the child's own reason is read below
                    await child.send(begin)
                await self._read_messages(child, nursery, task_status)
                child.lost = child.lost or f"it ended: {child.tail.short()}".rstrip(": ")
            finally:
                await self._shut_down_child(child)  # noqa: ASYNC102  # shielded and bounded in there
                child.changed.set()
                nursery.cancel_scope.cancel()
        if not child.is_ready:
            raise HostLost(child.lost or "it was stopped before it was ready")

    async def _read_messages(
        self, child: HostProcess, nursery: trio.Nursery, task_status: trio.TaskStatus[None]
    ) -> None:
        assert child.process.stdout is not None
        lines = LineDecoder(LONGEST)
        while True:
            data: bytes | bytearray = b""
            with trio.move_on_after(SILENCE) as silence:
                data = await child.process.stdout.receive_some()
            if silence.cancelled_caught:
                child.lost = f"it sent no message for {SILENCE:g} s"
            if not data:
                return
            for line in lines.feed(data):
                message = from_child.decode(line if isinstance(line, bytes) else line.head)
                if isinstance(message, ReadyMessage):
                    child.is_ready = True
                    task_status.started()
                else:
                    self._handle_message(child, message, nursery)

    def _handle_message(
        self, child: HostProcess, message: FromChild, nursery: trio.Nursery
    ) -> None:
        match message:
            case ReportedMessage(ended=ended):
                child.number += 1
                child.reports.append((child.number, ended))
                child.activities.pop((ended.job, ended.attempt), None)
                child.changed.set()
            case ActiveMessage(job=job, attempt=attempt, activity=activity):
                child.activities[job, attempt] = activity, trio.current_time()
            case AskMessage():
                nursery.start_soon(self._answer_approval, child, message)
            case BrokenMessage(why=why):
                child.lost = why
            case AliveMessage() | ReadyMessage():
                pass

    async def _answer_approval(self, child: HostProcess, ask: AskMessage) -> None:
        assert self._approve is not None
        try:
            decision = await self._approve(ask.request)
        except Exception as error:  # noqa: BLE001  # a caller's mistake ends no batch
            decision = Deny(reason=f"approve crashed: {type(error).__name__}: {error}")
        given = AnswerMessage(
            question=ask.question,
            allow=decision if isinstance(decision, Allow) else None,
            deny=decision if isinstance(decision, Deny) else None,
        )
        try:
            await child.send(given)
        except HostLost:
            return  # the child is lost, and its question with it

    async def _drain(self, child: HostProcess) -> None:
        assert child.process.stderr is not None
        async for chunk in child.process.stderr:
            child.tail.feed(chunk)

    async def _shut_down_child(self, child: HostProcess) -> None:
        """Close the child's stdin and wait; kill the child if it does not end."""
        process = child.process
        assert process.stdin is not None
        assert process.stdout is not None
        with trio.move_on_after(2 * GRACE, shield=True):
            await process.stdin.aclose()
            with trio.move_on_after(0 if child.lost else GRACE):
                async for _ in process.stdout:
                    pass
                await process.wait()
            process.kill()
            await process.wait()
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                await stream.aclose()
