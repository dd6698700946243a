"""Plain threads that share one portal, and start, await and cancel runs in it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from sessionmgr import Allow, ApprovalRequest, Decision, Portal, open_portal
from sessionmgr.testing.scripted_provider import Ask, Hang, Say, Script, scripted, write_script

asked_in: list[str] = []


def approve(request: ApprovalRequest) -> Decision:
    asked_in.append(threading.current_thread().name)
    return Allow()


def work(portal: Portal, number: int) -> str:
    name = threading.current_thread().name
    script = write_script(Script(steps=(Ask(tool=name), Say(text=f"{number} "))))
    result = portal.ask("actor", script, approve=approve)
    assert result.tool_calls.count == {name: 1}
    return result.text


def main() -> None:
    with open_portal(adapters={"actor": scripted("actor")}) as portal:
        with ThreadPoolExecutor(8, thread_name_prefix="worker") as pool:
            texts = list(pool.map(partial(work, portal), range(40)))
        print("texts", "".join(texts) == "".join(f"{number} " for number in range(40)))
        print("asked", len(asked_in), all(name.startswith("worker") for name in asked_in))
        hanging = portal.start("actor", write_script(Script(steps=(Hang(),))))
        waiting = threading.Thread(target=lambda: print("waited", hanging.result().status))
        waiting.start()
        hanging.cancel()
        waiting.join()
    print("threads", [each.name for each in threading.enumerate() if not each.daemon])


main()
