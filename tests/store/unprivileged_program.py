"""Child that opens a store as an unprivileged user: `unprivileged_program.py PATH [LIMIT]`.

It prints the class and the text of the error. With a limit, none of its files may grow beyond.
"""

import os
import resource
import sys
from pathlib import Path

import trio

from sessionmgr.store import Append, EventRow, NewSession, StoreError, open_sqlite_store

NOBODY = 65534


async def fill(path: str) -> None:
    """Append until an error is raised."""
    async with open_sqlite_store(path) as store:
        await store.create_session(NewSession(session_id="ses_a", provider="p", at=1, body=b""))
        number = 0
        while True:
            number += 1
            row = EventRow(number, None, "a", bytes(10_000))
            append = Append(
                session_id="ses_a", fence=1, batch=f"b{number}", first=number, at=1, rows=(row,)
            )
            await store.append(append)
            print("acknowledged", number, flush=True)


def main(path: str, limit: int | None) -> None:
    """Drop all privileges, and append."""
    Path("/").as_uri()  # Python 3.13 imports a module for it, which an ordinary user may not read
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        trio.run(fill, path)
    except StoreError as error:
        print(type(error).__name__, error)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
