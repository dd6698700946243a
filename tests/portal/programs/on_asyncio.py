"""A program on asyncio: several runs at once, streaming, cancellation and approval."""

import asyncio  # noqa: TID251  # a program that is not on trio
import threading
import time

from sessionmgr import Allow, ApprovalRequest, Decision, Portal, open_portal
from sessionmgr.model import AnyEvent
from sessionmgr.portal import PortalRun
from sessionmgr.testing.scripted_provider import (
    Ask,
    Flood,
    Hang,
    Say,
    Script,
    scripted,
    write_script,
)

SCRIPTS = {
    "talk": Script(steps=(Say(text="Hello from asyncio", deltas=3),)),
    "flood": Script(steps=(Flood(events=500, size=3), Say(text="over"))),
    "ask": Script(steps=(Ask(tool="Bash", input="ls"), Say(text="allowed"))),
    "hang": Script(steps=(Hang(),)),
}


def prompt(name: str) -> str:
    return write_script(SCRIPTS[name])


async def several(portal: Portal) -> None:
    futures = [portal.submit("shell", f"printf {number}") for number in range(8)]
    results = await asyncio.gather(*map(asyncio.wrap_future, futures))
    print("several", "".join(result.text for result in results))


async def read(run: PortalRun) -> list[AnyEvent]:
    events: list[AnyEvent] = []
    event = await asyncio.wrap_future(run.next_event())
    while event is not None:
        events.append(event)
        event = await asyncio.wrap_future(run.next_event(after=event))
    return events


async def stream(portal: Portal) -> None:
    run = await asyncio.wrap_future(portal.submit_start("actor", prompt("flood")))
    first, second = await asyncio.gather(read(run), read(run))
    assert first == second == await asyncio.to_thread(list, run)
    print("stream", first[0].type, first[-1].type)


async def stream_with_timeouts(portal: Portal) -> None:
    """Read with a timeout that strikes at any moment."""
    run = await asyncio.wrap_future(portal.submit_start("actor", prompt("flood")))
    seen: list[AnyEvent] = []
    patience = 0.0
    while not seen or seen[-1].type != "run_completed":
        last = seen[-1] if seen else None
        try:
            async with asyncio.timeout(patience):
                event = await asyncio.wrap_future(run.next_event(after=last))
        except TimeoutError:
            patience += 0.0001
            continue
        assert event is not None
        seen.append(event)
        patience = max(0.0, patience - 0.00005)
    assert seen == await asyncio.to_thread(list, run)
    print("timeouts", "every event once")


async def cancel(portal: Portal) -> None:
    run = await asyncio.wrap_future(portal.submit_start("actor", prompt("hang")))

    async def wait() -> None:
        await asyncio.wrap_future(run.future)

    task = asyncio.create_task(wait())
    await asyncio.wrap_future(run.next_event())
    task.cancel()
    await asyncio.wait([task])
    result = await asyncio.to_thread(run.result)
    print("cancel", task.cancelled(), result.status, result.detail)


async def approve(request: ApprovalRequest) -> Decision:
    await asyncio.sleep(0)  # only a task of asyncio can do this
    return Allow(reason=f"{request.tool_name}, in {threading.current_thread().name}")


async def ask(portal: Portal) -> None:
    result = await asyncio.wrap_future(portal.submit("actor", prompt("ask"), approve=approve))
    print("approval", result.text, result.tool_calls.denied)


async def stay_free(portal: Portal) -> None:
    """Run agents while the loop goes on."""
    longest, ends = 0.0, asyncio.create_task(several(portal))
    while not ends.done():
        began = time.monotonic()
        await asyncio.sleep(0)
        longest = max(longest, time.monotonic() - began)
    assert longest < 60, longest  # the loop was never blocked until a run was over


async def main() -> None:
    loop = asyncio.get_running_loop()
    with open_portal(
        adapters={"actor": scripted("actor")},
        call_approve=lambda function, request: asyncio.run_coroutine_threadsafe(
            function(request), loop
        ),
    ) as portal:
        await stay_free(portal)
        await stream(portal)
        await stream_with_timeouts(portal)
        await cancel(portal)
        await ask(portal)


asyncio.run(main())
print("threads", [each.name for each in threading.enumerate() if not each.daemon])
