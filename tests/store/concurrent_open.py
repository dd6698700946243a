"""Concurrent opening: many processes open one store at the same moment and write into it.

`concurrent_open.py PATH PROCESSES BATCHES`: each writes its own session and all of them a shared
one. The program prints each failure, and then exits with 1.
"""

import os
import sys
import traceback
from functools import partial

import outcome
import trio

from sessionmgr.store import (
    Append,
    EventRow,
    NewSession,
    NumberTaken,
    SqliteStore,
    open_sqlite_store,
)

SHARED = "ses_shared"


def batch(session_id: str, number: int, who: int) -> Append:
    """Return a batch of three events."""
    rows = tuple(
        EventRow(number + place, None, "a", f"{who}:{number + place}".encode())
        for place in range(3)
    )
    return Append(session_id=session_id, fence=1, batch=f"by_{who}", first=number, at=1, rows=rows)


async def write(store: SqliteStore, who: int, batches: int) -> None:
    """Write all batches to the own session, and as many to the shared one."""
    own = f"ses_{who}"
    for session_id in (own, SHARED):
        new = NewSession(session_id=session_id, provider="p", at=1, body=b"")
        await store.create_session(new)
    last = 0
    for place in range(batches):
        await store.append(batch(own, 3 * place + 1, who))
        stored = False
        while not stored:
            try:
                last = (await store.append(batch(SHARED, last + 1, who))).last_seq
                stored = True
            except NumberTaken as error:
                last = error.last


async def race(path: str, who: int, batches: int) -> None:
    """Open, write, close."""
    async with open_sqlite_store(path) as store:
        await write(store, who, batches)


def main(path: str, processes: int, batches: int) -> int:
    """Start all of them at once; return 1 if one failed."""
    starting, start = os.pipe()
    pids: list[int] = []
    for who in range(processes):
        pid = os.fork()
        if not pid:
            os.close(start)
            os.read(starting, 1)  # waits for the end of the pipe: the start signal
            raced = outcome.capture(trio.run, partial(race, path, who, batches))
            if isinstance(raced, outcome.Error):
                traceback.print_exception(raced.error)
            os._exit(int(isinstance(raced, outcome.Error)))
        pids.append(pid)
    os.close(starting)
    os.close(start)
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
