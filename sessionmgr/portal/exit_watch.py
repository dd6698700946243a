"""Closes portals that are still open when the program ends, for example in a notebook.

At exit the interpreter waits for a portal's thread, because it is not a daemon. Therefore one
watcher thread per process stops the open portals: after the main thread and all other non-daemon
threads have ended, since these may still use a portal.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_OPEN: Final[dict[threading.Thread, Callable[[], None]]] = {}
"""The threads of the open portals, with the functions that stop them."""
_LOCK: Final = threading.Lock()
_WATCH: Final[list[threading.Thread]] = []
"""The watcher thread; empty before the first portal."""


def add(portal: threading.Thread, stop: Callable[[], None]) -> None:
    """Register a portal's thread: call `stop` if the program ends while the portal is open."""
    with _LOCK:
        _OPEN[portal] = stop
        if not _WATCH:
            watch = threading.Thread(target=_watch, name="sessionmgr-portals", daemon=True)
            _WATCH.append(watch)
            watch.start()


def remove(portal: threading.Thread) -> None:
    """Unregister a portal that has ended."""
    with _LOCK:
        _OPEN.pop(portal, None)


def _watch() -> None:
    threading.main_thread().join()
    while threads := _users():
        for thread in threads:
            thread.join()
    with _LOCK:
        stops = list(_OPEN.values())
    for stop in stops:
        stop()


def _users() -> list[threading.Thread]:
    """Return the non-daemon threads of the program, except the main thread and the portals'."""
    with _LOCK:
        portals = set(_OPEN)
    main = threading.main_thread()
    return [
        thread
        for thread in threading.enumerate()
        if not (thread.daemon or thread is main or thread in portals)
    ]
