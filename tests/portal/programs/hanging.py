"""A program with a run that never ends, which it leaves as its argument says."""

import sys
import threading
import time

from sessionmgr import Portal, open_portal

HANGING = "sh -c 'echo $$; exec sleep 100000'"


def start(portal: Portal) -> None:
    run = portal.start("shell", HANGING, permission_mode="full_auto", options={"timeout": None})
    print("run", run.id)
    print("pid", next(run.text()).strip())


def in_block(store: str) -> None:
    """Wait for the run until Ctrl-C."""
    try:
        with open_portal(store=store) as portal:
            run = portal.start(
                "shell", HANGING, permission_mode="full_auto", options={"timeout": None}
            )
            print("run", run.id)
            print("pid", next(run.text()).strip())
            run.result()
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
    ways = {"block": in_block, "sleep": in_sleep, "unclosed": unclosed, "after": after_main}
    ways[sys.argv[1]](sys.argv[2])


main()
