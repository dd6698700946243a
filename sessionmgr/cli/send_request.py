"""Requests to the process that owns a run, sent through the store.

The owner takes the request out of the store, carries it out and stores the answer. If there is no
owner, or it does not answer within a few seconds, the request is withdrawn, so that it cannot be
carried out later, and the command fails.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.cli.errors import RemoteRequestFailed, RunNotManaged
from sessionmgr.cli.lookup import resolve_id
from sessionmgr.cli.queries import ALIVE, live_leases, owner_name
from sessionmgr.cli.terminal.safe_text import one_line
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note
from sessionmgr.manager import ManagerOwner
from sessionmgr.model import IdKind as IdKind, Json, encode_json, new_id
from sessionmgr.store import Request

if TYPE_CHECKING:
    from sessionmgr.store import Lease, Store, StoredRun

PATIENCE: Final = 5.0
"""Seconds within which the owner must take a request."""
LONGEST: Final = 120.0
"""Seconds within which the owner must carry out a request that it has taken."""


async def find_active_run(store: Store, text: str, batch: str | None = None) -> StoredRun:
    """Return the run to send a request to; a session or a batch job stands for its active run.

    Raises:
        RunNotManaged: The run has ended, or the session has no active run.
    """
    kind, id = await resolve_id(store, text, "session", "run", batch=batch, is_on=True)
    if kind == "run":
        run = await store.run(id)
        if run.status not in ALIVE:
            raise RunNotManaged(
                f"{id} has already ended ({run.status}); sessionmgr show {id} shows how"
            )
        return run
    page = await store.runs(session_id=id, statuses=ALIVE)
    if not page.rows:
        raise RunNotManaged(f"{id} has no active run; sessionmgr show {id} shows how it ended")
    oldest = page.rows[-1]
    return next((run for run in reversed(page.rows) if run.status == "running"), oldest)


async def send_request(
    store: Store, kind: str, session_id: str, target: str, body: dict[str, Json]
) -> dict[str, Json]:
    """Send a request, and return the answer.

    Raises:
        RunNotManaged: No process takes it.
        RemoteRequestFailed: The owner could not carry it out; the message says why.
    """
    lease = (await live_leases(store, session_id)).get(session_id)
    if lease is None:
        raise RunNotManaged(
            f"no process owns {target} any more; the next run, batch or resume on this store "
            "records how it ended"
        )
    request = Request(
        request_id=f"{kind}-{new_id(IdKind.MESSAGE)}",
        kind=kind,
        target=target,
        at=int(time.time() * 1000),
        body=encode_json(body),
    )
    number = await store.submit(request)
    answer = await _wait_for_answer(store, request, number, lease)
    found = msgspec.json.decode(answer, type=dict[str, Json])
    if not found.pop("ok", False):
        raise RemoteRequestFailed(str(found.get("error", f"{target} could not be reached")))
    return found


async def _wait_for_answer(store: Store, request: Request, number: int, lease: Lease) -> bytes:
    try:
        with trio.move_on_after(PATIENCE):
            return await store.wait_result(request.request_id)
        if await _withdraw_request(store, request):
            raise RunNotManaged(
                f"{owner_name(lease)} owns {request.target} and did not answer within "
                f"{PATIENCE:g} s; the request is withdrawn: try again, or end that process"
            )
        print_note(f"{owner_name(lease)} is working on it")
        with trio.move_on_after(LONGEST):
            return await store.wait_result(request.request_id)
    except BaseException:
        # Above all on Ctrl-C: a request without a waiting sender must not be carried out later.
        with trio.move_on_after(1, shield=True):
            await _withdraw_request(store, request)
        raise
    raise RunNotManaged(
        f"{owner_name(lease)} took the request for {request.target} but did not carry "
        f"it out within {LONGEST:g} s; sessionmgr events {request.target} shows its progress"
    )


async def _withdraw_request(store: Store, request: Request) -> bool:
    """Withdraw a request; return False if the owner has already taken it."""
    owner = ManagerOwner(new_id(IdKind.BATCH)).owner
    if not await store.claim_request(request.request_id, owner):
        return False
    await store.complete(request.request_id, encode_json({"ok": False, "error": "withdrawn"}))
    return True


def print_answer(id: str, answer: dict[str, Json], what: str, *, as_json: bool) -> None:
    """Print the answer to a request."""
    if as_json:
        print_json({"id": id, **answer})
    else:
        print_line(one_line(f"{id}: {what}"))
