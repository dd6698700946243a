"""Images are stored with the events that refer to them, before these can be read."""

import hashlib
from typing import ClassVar

import pytest
from trio.testing import MockClock

from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.model import (
    NATIVE,
    Capabilities,
    FailureKind,
    ImageReceived,
    MessageStreamed,
    RunStarted,
)
from tests.manager.harness import open_harness

DATA = b"\x89PNG\r\n"
SHA256 = hashlib.sha256(DATA).hexdigest()


class ImageAdapter(ProviderAdapter):
    name = "painter"
    capabilities: ClassVar[Capabilities] = Capabilities(streaming=NATIVE)

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id="p"))
        event = ImageReceived(media_type="image/png", blob=SHA256, bytes=len(DATA))
        if run.prompt == "wrong":
            run.emit_nowait(event, blobs=[bytearray(DATA)])  # type: ignore[list-item]
        elif run.prompt == "nowait":
            run.emit_nowait(event, size=len(DATA), blobs=[DATA])
            await run.room()
        elif run.prompt == "beside text":
            await run.emit(MessageStreamed(delta="Look: "), blobs=[DATA])
            await run.emit(event)
        elif run.prompt == "unnamed":
            await run.emit(blobs=[DATA])
        else:
            await run.emit(event, blobs=[DATA])
        await run.finish()


@pytest.mark.parametrize("prompt", ["wait", "nowait", "beside text"])
async def test_an_image_is_stored_when_the_event_that_names_it_is_seen(
    autojump_clock: MockClock, prompt: str
) -> None:
    async with open_harness(others={"painter": ImageAdapter}) as house:
        session = await house.manager.open_session("painter")
        async for event in await session.submit(prompt):
            if event.type == "image_received":
                assert await house.store.blob(SHA256) == DATA
                break
        else:
            pytest.fail("no event names the image")


@pytest.mark.parametrize(
    ("prompt", "why"),
    [("wrong", "a blob must be bytes"), ("unnamed", "blobs without an event that names them")],
)
async def test_an_image_that_cannot_be_stored_crashes_only_its_run(
    autojump_clock: MockClock, prompt: str, why: str
) -> None:
    async with open_harness(others={"painter": ImageAdapter}) as house:
        session = await house.manager.open_session("painter")
        result = await (await session.submit(prompt)).result()
        assert result.failure is not None
        assert result.failure.kind is FailureKind.ADAPTER_CRASHED
        assert why in result.failure.message
        neighbour = await house.manager.open_session("painter")
        assert (await (await neighbour.submit("wait")).result()).failure is None
