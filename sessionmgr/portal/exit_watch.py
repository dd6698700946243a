"""Closes the portals that are still open when the program ends, as in a notebook.

The interpreter waits for a portal's thread at its exit. One watching thread per process stops the
open portals then: after the main thread and all threads of the program that are no daemons have
ended, since these may still use a portal.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sessionmgr.portal.loop_thread import LoopThread

_OPEN: Final[set[LoopThread]] = set()
_LOCK: Final = threading.Lock()
_WATCH: Final[list[threading.Thread]] = []
"""The watching thread, once there was a portal."""


def add(portal: LoopThread) -> None:
    """Stop this portal when the program ends."""
    with _LOCK:
        _OPEN.add(portal)
        if not _WATCH:
            watch = threading.Thread(target=_watch, name="sessionmgr-portals", daemon=True)
            _WATCH.append(watch)
            watch.start()


def remove(portal: LoopThread) -> None:
    """Forget a portal that has ended."""
    with _LOCK:
        _OPEN.discard(portal)


def _watch() -> None:
    threading.main_thread().join()
    while threads := _users():
        for thread in threads:
            thread.join()
    with _LOCK:
        portals = list(_OPEN)
    for portal in portals:
        portal.request_stop()


def _users() -> list[threading.Thread]:
    """Return the threads of the program that the interpreter waits for."""
    with _LOCK:
        portals = list(_OPEN)
    main = threading.main_thread()
    return [
        thread
        for thread in threading.enumerate()
        if not (thread.daemon or thread is main or any(each.is_of(thread) for each in portals))
    ]
