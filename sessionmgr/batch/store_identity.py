"""Check that a batch continues with the store that has its attempts.

Only this store has the outcomes of attempts that ran when a batch was killed, and the sessions to
resume. With another store, those attempts would seem never started, and would be repeated.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from sessionmgr.batch import ledger as states
from sessionmgr.batch.errors import StoreMismatch
from sessionmgr.batch.host import AttemptResult
from sessionmgr.batch.restart import RetryFrom, StartMode
from sessionmgr.model import Failure, FailureKind, RunResult, RunStatus

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.batch.file_executor import FileExecutor
    from sessionmgr.batch.ledger import Ledger
    from sessionmgr.manager import Manager

_MARK: Final = "mark"
STORE_NOTE: Final = "store"
"""The ledger's note with the path of the store."""
_LOOKED_FOR: Final = 100
"""Number of sessions to look up if an older version of the batch has left no mark."""


class StoreIdentity:
    """Compares the store in use with the one that the batch began with."""

    def __init__(
        self,
        manager: Manager,
        executor: FileExecutor,
        ledger: Ledger,
        out: str | Path | None,
        policy: RetryFrom,
    ) -> None:
        self._manager: Final = manager
        self._executor: Final = executor
        self._ledger: Final = ledger
        self._out: Final = "" if out is None else str(out)
        self._policy: Final = policy
        self._mark = ""
        self._path = ""
        self.is_in_use = False
        """Whether the store in use is that of the last run, if there was one."""

    async def compare(self) -> None:
        """Compare the stores; refuse to continue if interrupted attempts would be lost.

        Raises:
            StoreMismatch: Attempts ran when the batch was killed, and the store is another.
        """
        sessions, unsettled = await self._executor.run(self._read)
        if self._mark:
            self.is_in_use = await self._manager.has_mark(self._mark)
        else:
            self.is_in_use = not sessions or await self._manager.has_any_session(sessions)
        if not self.is_in_use and self._policy is not RetryFrom.FRESH:
            self._refuse(sum(state == states.RUNNING for _, _, state in unsettled))

    def _read(self) -> tuple[list[str], list[tuple[str, int, str]]]:
        ledger = self._ledger
        self._mark, self._path = ledger.metadata(_MARK) or "", ledger.metadata(STORE_NOTE) or ""
        return ledger.sessions(_LOOKED_FOR), ledger.interrupted_attempts()

    async def require_known(self) -> None:
        """Refuse to resume sessions that the store does not know.

        Raises:
            StoreMismatch: Selected jobs are to be resumed, and the store does not know the batch.
        """
        if self.is_in_use:
            return
        missing = 0
        for session, basis in await self._executor.run(self._ledger.resumable_sessions):
            if basis.start(self._policy) is StartMode.RESUME:
                missing += not await self._manager.has_any_session([session])
        self._refuse(missing)

    def _refuse(self, jobs: int) -> None:
        if jobs:
            used = self._manager.store_path
            is_elsewhere = self._path and self._path != str(used)
            raise StoreMismatch(self._out, jobs, self._path if is_elsewhere else None)

    async def mark(self) -> None:
        """Mark the store before the first attempt, so that the next run recognizes it."""
        if not self._out or (self._mark and self.is_in_use):
            return
        mark = secrets.token_hex(8)
        await self._manager.put_mark(mark)
        path = self._manager.store_path
        await self._executor.run(lambda: self._write_note(mark, "" if path is None else str(path)))

    def _write_note(self, mark: str, path: str) -> None:
        self._ledger.metadata(_MARK, mark)
        self._ledger.metadata(STORE_NOTE, path)


def unknown_outcome(job: str, attempt: int, provider: str, session: str) -> AttemptResult:
    """Return the result of an attempt recorded in another store: it may have made tool calls."""
    failure = Failure(
        kind=FailureKind.MANAGER_CRASHED,
        message="it was interrupted, and its store is not in use any more",
    )
    result = RunResult(
        id="", session_id=session, provider=provider, status=RunStatus.FAILED, failure=failure
    )
    return AttemptResult(job=job, attempt=attempt, result=result, side_effects=True)
