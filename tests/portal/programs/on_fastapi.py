"""A FastAPI application on uvicorn, whose lifespan holds a portal."""

import asyncio  # noqa: TID251  # a program that is not on trio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from sessionmgr import Portal, PortalRun, open_portal
from sessionmgr.model import MessageStreamed

HANGING = "sh -c 'echo $$; exec sleep 100000'"


class State:
    portal: Portal
    runs: ClassVar[dict[str, PortalRun]] = {}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    with open_portal(store=sys.argv[1]) as State.portal:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/ask")
async def ask(word: str) -> str:
    result = await asyncio.wrap_future(State.portal.submit("shell", f"printf {word}"))
    return result.text


@app.get("/ask-in-thread")
def ask_in_thread(word: str) -> str:
    return State.portal.ask("shell", f"printf {word}").text


@app.get("/hang")
async def hang() -> StreamingResponse:
    """Stream the text of a run that never ends: its id, and the number of its process."""
    run = await asyncio.wrap_future(
        State.portal.submit_start(
            "shell", HANGING, permission_mode="full_auto", options={"timeout": None}
        )
    )

    State.runs[run.id] = run

    async def text() -> AsyncIterator[str]:  # noqa: ASYNC900  # of asyncio
        yield f"{run.id}\n"
        try:
            event = await asyncio.wrap_future(run.next_event())
            while event is not None:
                if isinstance(event, MessageStreamed):
                    yield event.delta
                event = await asyncio.wrap_future(run.next_event(after=event))
        finally:
            run.cancel("the client has gone")

    return StreamingResponse(text())


@app.get("/result")
async def result(run_id: str) -> str:
    result = await asyncio.wrap_future(State.runs[run_id].future)
    return f"{result.status}: {result.detail}"


class Server(uvicorn.Server):
    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        print("port", self.servers[0].sockets[0].getsockname()[1])


config = uvicorn.Config(
    app, host="127.0.0.1", port=0, timeout_graceful_shutdown=1, log_level="warning"
)
Server(config).run()
