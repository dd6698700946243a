"""Secret options are never stored, and are passed again at a resume."""

from pathlib import Path

import pytest
import trio
from hypothesis import given, strategies as st
from msgspec import field
from trio.testing import MockClock

from sessionmgr.adapter import Options, RunContext
from sessionmgr.manager import NotResumable, open_manager
from sessionmgr.manager.resume_spec import option_secrets, redact_options, restore_options
from sessionmgr.model import Json, RunStatus, Snapshot
from sessionmgr.process.environment import is_secret_value
from sessionmgr.store import MemoryStore
from sessionmgr.testing.scripted_provider import Hang, Say, ScriptedProvider, scripted
from tests.manager.harness import ManagerHarness, open_harness, run_scripted

TOKEN = "Token abc123def456ghi789"
KEY = "k3y-0123456789"


class WithheldOptions(Options, frozen=True, kw_only=True):
    mcp_servers: dict[str, Json] = field(default_factory=dict[str, Json])
    follow: str = "next"


OPTIONS: dict[str, Json] = {
    "mcp_servers": {"x": {"headers": {"Authorization": TOKEN}, "env": {"API_KEY": KEY, "A": "b"}}},
    "follow": "now",
}


async def paused(house: ManagerHarness, *said: str) -> Snapshot:
    session = await house.manager.open_session("actor")
    script = run_scripted(*(Say(text=each) for each in said), Hang())
    run = await session.submit(script, options=OPTIONS)
    await trio.sleep(1)
    return await run.pause()


def actor_seeing(given: list[Options]) -> type[ScriptedProvider]:
    """Return a provider that records the options of its runs."""

    class Seeing(scripted("actor", options=WithheldOptions)):  # type: ignore[misc]
        async def run(self, run: RunContext) -> None:
            given.append(run.options)
            await super().run(run)

    return Seeing


async def test_neither_snapshot_nor_event_holds_what_is_secret_among_the_options(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    actor = scripted("actor", options=WithheldOptions)
    async with open_manager(store=path, adapters={"actor": actor}) as manager:
        session = await manager.open_session("actor")
        run = await session.submit(
            run_scripted(Say(text=f"{KEY} {TOKEN}"), Hang()), options=OPTIONS
        )
        async for event in run:
            if event.type == "message_received":
                break
        await run.pause()
    assert TOKEN.encode() not in path.read_bytes()
    assert KEY.encode() not in path.read_bytes()


async def test_the_manager_that_paused_a_run_goes_on_with_its_secrets(
    autojump_clock: MockClock,
) -> None:
    seen = list[Options]()
    async with open_harness(actor=actor_seeing(seen)) as house:
        snapshot = await paused(house)
        run = await house.manager.submit_resume(snapshot.id)
        await trio.sleep(1)
        run.cancel()
    assert seen == [WithheldOptions(**OPTIONS)] * 2  # type: ignore[arg-type]


async def test_another_manager_asks_for_the_secrets_by_name_and_goes_on_with_them(
    autojump_clock: MockClock,
) -> None:
    store, seen = MemoryStore(), list[Options]()
    actor = actor_seeing(seen)
    async with open_harness(store=store, actor=actor) as house:
        snapshot = await paused(house)
    async with open_harness(store=store, actor=actor) as house:
        missing = r"mcp_servers.x.headers.Authorization, mcp_servers.x.env.API_KEY"
        with pytest.raises(NotResumable, match=missing):
            await house.manager.resume(snapshot.id)
        with pytest.raises(NotResumable, match=missing):
            await house.manager.resume(snapshot.id, options={"follow": "later"})
        servers = OPTIONS["mcp_servers"]
        run = await house.manager.submit_resume(snapshot.id, options={"mcp_servers": servers})
        await trio.sleep(1)
        assert (await run.result()).status is RunStatus.COMPLETED
    assert seen[-1] == WithheldOptions(**OPTIONS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "secret"),
    [
        ({"settings": '{"env": {"ANTHROPIC_AUTH_TOKEN": "tok-12345678"}}'}, "tok-12345678"),
        (
            {"config": {"model_providers.x.experimental_bearer_token": "tok-12345678"}},
            "tok-12345678",
        ),
        ({"url": "https://user:pass-word-1@example.com/"}, "pass-word-1"),
        (
            {"args": ["--key", "sk-ant-api03-AbCdEf0123456789_-AbCdEf"]},
            "sk-ant-api03-AbCdEf0123456789_-AbCdEf",
        ),
        ({"env": {"MYSQL_PWD": "hunter2-more"}}, "hunter2-more"),
    ],
)
def test_what_is_secret_is_found_wherever_it_stands(options: dict[str, Json], secret: str) -> None:
    assert secret in option_secrets(options)
    kept, _ = redact_options(options)
    assert secret not in repr(kept)


@pytest.mark.parametrize(
    "options",
    [
        {"mcp_servers": {"x": {"bearer_token_env_var": "MY_TOKEN_VARIABLE"}}},
        {"mcp_servers": {"x": {"env_http_headers": {"Authorization": "MY_TOKEN_VARIABLE"}}}},
        {"config": {"model_providers": {"x": {"env_key": "OPENAI_API_KEY"}}}},
        {"settings": "{not json", "token": "short"},
        {"settings": '{"permissions": {"allow": ["Bash(git *)"]}}', "n": 1, "none": None},
    ],
)
def test_what_only_names_a_secret_is_kept(options: dict[str, Json]) -> None:
    assert redact_options(options) == (options, ())
    assert option_secrets(options) == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["token", "a", "headers", "Authorization"]), inner)
    ),
    max_leaves=8,
)


def test_what_holds_a_variables_value_is_withheld_as_a_whole() -> None:
    options: Json = {"args": ["--auth=hunter2-more"], "n": "1"}
    assert redact_options(options, ["hunter2-more"]) == (
        {"args": ["[redacted]"], "n": "1"},
        (("args", 0),),
    )


@given(options=st.dictionaries(st.sampled_from(["x", "api_key", "settings"]), JSON))
def test_what_was_withheld_and_is_given_back_makes_the_same_options(
    options: dict[str, Json],
) -> None:
    kept, withheld = redact_options(options)
    assert isinstance(kept, dict)
    for secret in filter(is_secret_value, option_secrets(options)):
        assert not [path for path, text in texts(kept) if text == secret]
    assert {**kept, **restore_options(kept, withheld, options)} == options
    if withheld:
        assert restore_options(kept, withheld, {}) == {}


def texts(value: Json, path: tuple[object, ...] = ()) -> list[tuple[tuple[object, ...], str]]:
    match value:
        case str():
            return [(path, value)]
        case dict():
            return [each for key, inner in value.items() for each in texts(inner, (*path, key))]
        case list():
            return [each for n, inner in enumerate(value) for each in texts(inner, (*path, n))]
        case _:
            return []
