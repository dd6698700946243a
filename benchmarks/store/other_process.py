"""Another process, which appends an event with its time for each line that it reads."""

import sys
import time

import trio
from msgspec.structs import replace

from benchmarks.store.store_files import batch
from sessionmgr.store import EventRow, open_sqlite_store


async def serve(path: str, session_id: str) -> None:
    """Append one event per line until the end of input."""
    async with open_sqlite_store(path) as store:
        while await trio.to_thread.run_sync(sys.stdin.readline):
            number = (await store.session(session_id)).last_seq + 1
            row = EventRow(number, None, "made", str(time.monotonic()).encode())
            await store.append(replace(batch(session_id, number, 1), rows=(row,)))


if __name__ == "__main__":
    trio.run(serve, sys.argv[1], sys.argv[2])
