"""Messages to a running turn (`_session/steering`), and images in prompts and answers."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessionmgr.model import NATIVE, UNSUPPORTED, ImageReceived
from sessionmgr.testing import scripted
from sessionmgr.testing.scripted_provider import ALL_IT_DOES, Ask, Emit, Hang, Hear, Say
from tests.acp_server.client import Message, RpcFailed, SchemaClient, serving


def steering(session: str, text: str) -> Message:
    idle = {"steering": {"idleBehavior": "promptRequired"}}
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": idle}


async def test_a_message_reaches_the_running_turn(tmp_path: Path) -> None:
    async with serving() as client:
        answer = await client.initialize()
        assert answer["_meta"]["steering"]["supported"] is True
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hear(), Say(text="end"))
        await client.wait_for(client.text)
        sent = await client.request("_session/steering", steering(session, "psst"))
        assert sent == {"outcome": "injected"}
        assert (await client.answer(prompt))["stopReason"] == "end_turn"
        assert "psst" in client.text()
        assert client.updates("user_message_chunk") == []  # the client knows its own message


async def test_without_a_turn_a_message_needs_a_prompt(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        sent = await client.request("_session/steering", steering(session, "psst"))
        assert sent == {"outcome": "promptRequired"}


async def test_an_agent_that_cannot_steer_says_so(tmp_path: Path) -> None:
    capabilities = msgspec.structs.replace(ALL_IT_DOES, steer=UNSUPPORTED)
    async with serving(scripted("actor", capabilities=capabilities)) as client:
        answer = await client.initialize()
        assert answer["_meta"]["steering"]["supported"] is False
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang())
        await client.wait_for(client.text)
        sent = await client.request("_session/steering", steering(session, "psst"))
        assert sent == {"outcome": "promptRequired"}
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"


async def test_a_message_that_the_turn_refuses_is_a_part_of_it_all_the_same(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang(), append="refuse")
        await client.wait_for(client.text)
        steered = await client.begin("_session/steering", steering(session, "and this"))
        assert await client.answer(steered) == {"outcome": "injected"}
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"


async def test_an_unknown_delivery_is_an_error(tmp_path: Path, autojump_clock: object) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang(), append="hang")
        await client.wait_for(client.text)
        with pytest.raises(RpcFailed, match="it may have the message") as refused:
            await client.request("_session/steering", steering(session, "psst"))
        assert refused.value.code == -32603
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"


async def test_a_message_in_a_run_of_its_own_ends_before_the_prompt_is_answered(
    tmp_path: Path,
) -> None:
    provider = scripted("actor", scripts={"and this": [Say(text="B")]})
    async with serving(provider) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        steps = (Ask(tool="Bash"), Say(text="A"))
        prompt = await client.begin_prompt(session, *steps, append="refuse")
        (asked,) = await client.wait_for(
            lambda: [each for each in client.seen if "method" in each and "id" in each]
        )
        sent = await client.request("_session/steering", steering(session, "and this"))
        assert sent == {"outcome": "injected"}
        allowed = {"outcome": {"outcome": "selected", "optionId": "allow"}}
        await client.send({"id": asked["id"], "result": allowed})
        assert (await client.answer(prompt))["stopReason"] == "end_turn"
        assert client.text() == "AB"


# --- images --------------------------------------------------------------------------------------

PIXEL = b"\x89PNG\r\n\x1a\n pixel"


async def test_an_image_of_a_prompt_is_a_file_until_the_turn_ends(tmp_path: Path) -> None:
    capabilities = msgspec.structs.replace(ALL_IT_DOES, images_in=NATIVE)
    seen: list[list[bytes]] = []

    class Looks(scripted("actor", capabilities=capabilities)):  # type: ignore[misc]
        async def run(self, run: Any) -> None:
            seen.append([Path(each).read_bytes() for each in run.images])  # noqa: ASYNC240
            self.paths = run.images
            await super().run(run)

    async with serving(Looks) as client:
        answer = await client.initialize()
        assert answer["agentCapabilities"]["promptCapabilities"]["image"] is True
        session = await client.new(tmp_path)
        data = base64.b64encode(PIXEL).decode()
        blocks: list[Message] = [
            {"type": "text", "text": "What is this?"},
            {"type": "image", "data": data, "mimeType": "image/png"},
            {
                "type": "resource",
                "resource": {"uri": "file:///a.png", "blob": data, "mimeType": "image/png"},
            },
        ]
        await client.request("session/prompt", {"sessionId": session, "prompt": blocks})
        assert seen == [[PIXEL, PIXEL]]
        await _refused(client, session, {"data": "%%", "mimeType": "image/png"}, "not valid base64")
        await _refused(client, session, {"data": data, "mimeType": "image/x"}, "type 'image/x'")
        with pytest.raises(RpcFailed, match="takes no images"):
            await client.request("_session/steering", {"sessionId": session, "prompt": blocks})


async def _refused(client: SchemaClient, session: str, image: Message, why: str) -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image", **image}]
    with pytest.raises(RpcFailed, match=why):
        await client.request("session/prompt", {"sessionId": session, "prompt": blocks})


async def test_an_image_of_the_agent_arrives_in_its_place(tmp_path: Path) -> None:
    blob = hashlib.sha256(PIXEL).hexdigest()
    made = ImageReceived(media_type="image/png", blob=blob, bytes=len(PIXEL))
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        image = Emit(event=made, blobs=(PIXEL,))
        await client.prompt(session, Say(text="a"), image, Say(text="b"))
        contents = [each["content"] for each in client.updates("agent_message_chunk")]
        assert [each["type"] for each in contents] == ["text", "image", "text"]
        assert base64.b64decode(contents[1]["data"]) == PIXEL
        assert contents[1]["mimeType"] == "image/png"
