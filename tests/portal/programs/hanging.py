"""A program with a run that never ends, which it leaves as its argument says."""

import sys
import threading
import time

import trio

from sessionmgr import Clocks, Portal, PortalRun, open_portal

HANGING = "sh -c 'echo $$; exec sleep 100000'"
STUBBORN = "sh -c 'trap \"\" INT TERM; echo $$; while :; do sleep 1; done'"


def start(portal: Portal, command: str = HANGING) -> PortalRun:
    run = portal.start("shell", command, permission_mode="full_auto", options={"timeout": None})
    print("run", run.id)
    print("pid", next(run.text()).strip())
    return run


def in_block(store: str) -> None:
    """Wait for the run until Ctrl-C."""
    try:
        with open_portal(store=store) as portal:
            start(portal).result()
    except KeyboardInterrupt:
        print("left", [each.name for each in threading.enumerate() if not each.daemon])


def in_sleep(store: str) -> None:
    """Do something else until Ctrl-C."""
    try:
        with open_portal(store=store) as portal:
            start(portal)
            time.sleep(100_000)
    except KeyboardInterrupt:
        print("left", [each.name for each in threading.enumerate() if not each.daemon])


async def sleep_for_ever(manager: object) -> None:
    await trio.sleep_forever()


def in_closing(store: str) -> None:
    """Close the portal, which takes a second, until another Ctrl-C and beyond."""
    try:
        with open_portal(store=store, clocks=Clocks(close=1)) as portal:
            waiting = portal.submit_call(sleep_for_ever)
            waiting.add_done_callback(lambda _: print("closing"))
            start(portal, STUBBORN).result()
    except KeyboardInterrupt:
        print("left", [each.name for each in threading.enumerate() if not each.daemon])


def unclosed(store: str) -> None:
    """Forget the portal."""
    start(open_portal(store=store))


def after_main(store: str) -> None:
    """Go on in a thread after the main thread has ended, and forget the portal there."""
    portal = open_portal(store=store)

    def go_on() -> None:
        threading.main_thread().join()
        print("text", portal.ask("shell", "printf hello").text)
        start(portal)

    threading.Thread(target=go_on).start()


def main() -> None:
    ways = {
        "block": in_block,
        "sleep": in_sleep,
        "closing": in_closing,
        "unclosed": unclosed,
        "after": after_main,
    }
    ways[sys.argv[1]](sys.argv[2])


main()
