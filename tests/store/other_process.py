"""Another process on the same store: for each line read it appends an event, and reports when."""

import sys
import time

import trio

from sessionmgr.store import Append, EventRow, open_sqlite_store


async def serve(path: str, session_id: str) -> None:
    """Append one event a line until the end of input."""
    async with open_sqlite_store(path) as store:
        print("ready", flush=True)
        while await trio.to_thread.run_sync(sys.stdin.readline):
            number = (await store.session(session_id)).last_seq + 1
            row = EventRow(number, None, "from_afar", b"{}")
            append = Append(
                session_id=session_id, fence=1, batch=f"n{number}", first=number, at=1, rows=(row,)
            )
            await store.append(append)
            print(time.monotonic(), flush=True)


if __name__ == "__main__":
    trio.run(serve, sys.argv[1], sys.argv[2])
