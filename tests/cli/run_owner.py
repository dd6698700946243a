"""A program that owns a run: `python -m tests.cli.run_owner STORE`, with the script on stdin.

When the run has started, it prints the ids of the session and the run; when the run has ended, it
prints the outcome and exits. With `ask` as second argument it has an approver, which prints
`asked` and never answers.
"""

import sys

import trio

from sessionmgr import Allow, ApprovalRequest, Decision, open_manager
from sessionmgr.testing.scripted_provider import scripted

introduced = trio.Event()


async def never(_: ApprovalRequest) -> Decision:
    await introduced.wait()
    print("asked", flush=True)
    await trio.sleep(1000)
    return Allow()


async def main() -> None:
    store, *asked = sys.argv[1:]
    adapters = {"actor": scripted("actor")}
    async with open_manager(store=store, adapters=adapters) as manager:
        session = await manager.open_session("actor", approve=never if asked else None)
        run = await session.submit(sys.stdin.read())
        async for event in run:
            if event.type == "run_started":
                break
        print(session.id, run.id, flush=True)
        introduced.set()
        result = await run.result()
        print(result.status, result.reason, result.detail, result.text, flush=True)


if __name__ == "__main__":
    trio.run(main)
