"""`codex exec`: features that a run has there as well as on an app-server."""

from __future__ import annotations

import base64
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from sessionmgr.model import (
    ErrorOccurred,
    FailureKind,
    Json,
    MessageReceived,
    ReasoningReceived,
    RunStarted,
    RunStatus,
)
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelRefuse,
    ModelSay,
    ModelScript,
    ModelThink,
)
from sessionmgr_adapters.codex.exec import driver
from tests.real.harness import PATIENCE, RealAgentHarness

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
LONGEST = 1024 * 1024

SCHEMA: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


async def a_run_is_told_whole_and_the_next_goes_on(house: RealAgentHarness) -> None:
    script: ModelScript = [
        [
            ModelThink(text="I look."),
            ModelSay(text="Let me look."),
            ModelCall(tool="shell", input={"command": "echo $((40 + 2)); exit 3"}),
        ],
        [ModelSay(text="It is done.")],
    ]
    session = await house.session("full_auto", cwd=house.place())
    options = house.options(exec=True)
    played = await house.play(script, session, options=options)
    result = played.result
    assert (result.status, result.text, result.exit_code) == ("completed", "It is done.", 0)
    assert (result.tool_calls.count, result.tool_calls.failed) == ({"shell": 1}, 1)
    thought = [each.content for each in played.events if isinstance(each, ReasoningReceived)]
    said = [each.content for each in played.events if isinstance(each, MessageReceived)]
    assert (thought, said) == (["I look."], ["Let me look.", "It is done."])
    again = await house.goes_on(session, options=options)
    assert again.result.provider_session_id == result.provider_session_id
    assert 0 < again.result.usage.input < result.usage.input
    kept = await house.goes_on(session)  # on an app-server
    assert kept.result.provider_session_id == result.provider_session_id


async def a_thread_is_forked(house: RealAgentHarness) -> None:
    session = await house.session()
    options = house.options(exec=True)
    first = await house.goes_on(session, options=options)
    forked = await house.goes_on(session, options=house.options(exec=True, fork=True))
    assert forked.result.provider_session_id != first.result.provider_session_id


async def what_is_wished_reaches_the_model(house: RealAgentHarness) -> None:
    (house.work / "pixel.png").write_bytes(PIXEL)
    word = house.word()
    played = await house.play(
        [[ModelSay(text="seen")]],
        text=word,
        options=house.options(exec=True, base_instructions=f"base {word}"),
        system_prompt=f'system "{word}"\nand more',
        images=("pixel.png",),
        effort="low",
    )
    assert played.result.text == "seen", played.result.failure
    [asked] = house.asked(played.result.provider_session_id)
    body = str(asked.body)
    assert f"base {word}" in body
    assert f'system "{word}"\\nand more' in body
    assert "data:image/png;base64," in body
    assert asked.body["reasoning"] == {"effort": "low"}


async def output_by_a_schema_is_read(house: RealAgentHarness) -> None:
    session = await house.session()
    run = await session.submit("n?", options=house.options(exec=True), schema=SCHEMA)
    result = await run.result()
    assert (result.status, result.structured) == (RunStatus.COMPLETED, {"n": 0}), result.failure


async def a_prompt_may_be_long_and_begin_with_anything(house: RealAgentHarness) -> None:
    prompt = "--help\n" + "é" * 200_000
    session = await house.session()
    run = await session.submit(prompt, options=house.options(exec=True))
    result = await run.result()
    assert result.text == f"You said: {prompt}", result.failure


async def test_it_does_what_an_app_server_does(
    any_house: RealAgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "EXIT_WAIT", PATIENCE)  # each exits by itself, however slowly
    config = any_house.work.parent / "codex" / "config.toml"
    before = config.read_text()
    async with trio.open_nursery() as nursery:
        for case in (
            a_run_is_told_whole_and_the_next_goes_on,
            a_thread_is_forked,
            what_is_wished_reaches_the_model,
            output_by_a_schema_is_read,
            a_prompt_may_be_long_and_begin_with_anything,
        ):
            nursery.start_soon(case, any_house)
    assert config.read_text() == before


async def test_threads_are_forked_at_once_in_a_home_that_has_not_seen_that_before(
    any_house: RealAgentHarness,
) -> None:
    """The first process creates a database of the home, and some versions fail at the same time."""
    house = any_house
    sessions = [await house.session() for _ in range(6)]
    for each in sessions:
        await house.goes_on(each)
    for file in (house.work.parent / "codex").glob("thread_history_*"):
        file.unlink()
    async with trio.open_nursery() as nursery:
        for number, each in enumerate(sessions):
            options = house.options(fork=True, exec=number % 2 == 0)
            server = {"NUMBER": str(number)}  # each in a process of its own
            nursery.start_soon(partial(house.goes_on, each, options=options, env=server))


async def test_a_warning_of_its_own_is_no_failure(house: RealAgentHarness) -> None:
    played = await house.play(
        [[ModelSay(text="well")]], options=house.options(exec=True), model="a-model-of-nobody"
    )
    assert played.result.text == "well"
    warned = [each for each in played.events if isinstance(each, ErrorOccurred)]
    assert [each.severity for each in warned] == ["warning"]


async def test_what_it_would_pass_over_is_refused_as_by_an_app_server(
    any_house: RealAgentHarness,
) -> None:
    house = any_house
    (house.work / "words.txt").write_text("no picture")
    for once in (False, True):
        for home, images, words in (
            (None, ("words.txt",), "words.txt is not a PNG"),
            ("none", (), "options.home: no such directory: none"),
        ):
            options = house.options(exec=once, home=home)
            run = await house.submit(await house.session(), "hi", options=options, images=images)
            failure = (await run.result()).failure
            assert failure is not None
            assert failure.kind is FailureKind.CONFIG_INVALID
            assert failure.message.startswith(words), once
        run = await house.submit(
            await house.session(), "x" * (LONGEST + 1), options=house.options(exec=once)
        )
        failure = (await run.result()).failure
        assert failure is not None
        told = (failure.kind, failure.retryable, failure.resumable, failure.phase)
        assert told == (FailureKind.CONFIG_INVALID, False, False, "start"), once
        assert f"Input exceeds the maximum length of {LONGEST} characters." in failure.message


async def test_what_it_is_shown_and_says_is_as_on_an_app_server(house: RealAgentHarness) -> None:
    (house.work / "a,b.png").write_bytes(PIXEL)
    complaint = ModelRefuse(status=400, message="bad /home/joe/.codex/auth.json")
    for once in (False, True):
        options = house.options(exec=once)
        shown = await house.play([[ModelSay(text="seen")]], options=options, images=("a,b.png",))
        [asked] = house.asked(shown.result.provider_session_id)
        assert "data:image/png;base64," in str(asked.body), once
        failure = (await house.play([[complaint]], options=options)).result.failure
        assert failure is not None
        assert "bad auth.json" in failure.message, once
        named = await house.play([[ModelSay(text="x")]], options=options, model="gpt-5.5")
        [begun] = [each for each in named.events if isinstance(each, RunStarted)]
        assert begun.model == "gpt-5.5", once


async def test_what_is_secret_among_its_settings_reaches_a_server_and_stands_on_no_command_line(
    house: RealAgentHarness,
) -> None:
    token, lines, heard = f"Token {house.word()}", list[str](), bytearray()
    gate = house.gate()  # Codex does not wait for the server: the run waits for its call

    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):  # Codex may exit during the answer
            async for data in stream:
                heard.extend(data)
                if b"\r\n\r\n" in heard:
                    lines.extend(command_lines())
                    gate.touch()
                    await stream.send_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    return

    async with trio.open_nursery() as nursery:
        serves = partial(trio.serve_tcp, serve, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serves)
        port = listener.socket.getsockname()[1]
        url = f"http://127.0.0.1:{port}/mcp"
        servers: Json = {"x": {"url": url, "http_headers": {"Authorization": token}}}
        session = await house.session()
        options = house.options(exec=True, mcp_servers=servers)
        script: ModelScript = [[ModelSay(text="well", deltas=2, until=str(gate))]]
        played = await house.play(script, session, options=options)
        nursery.cancel_scope.cancel()
    again = await house.goes_on(session, options=house.options(exec=True))
    assert again.result.provider_session_id == played.result.provider_session_id
    assert played.result.text == "well", played.result.failure
    assert token in heard.decode()
    assert [line for line in lines if url in line]
    assert not [line for line in lines if token in line]
    assert not list((house.work.parent / "codex").glob("sessionmgr-*"))


def command_lines() -> list[str]:
    """Return the command lines of all processes, which every user can read."""
    lines: list[str] = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(process.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines
