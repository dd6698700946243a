"""The wait before an agent loads a session in the minute in which it was begun."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.manager import Clocks, SessionHandle, open_manager
from sessionmgr.model import FailureKind, Json, PermissionMode, RunStatus
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.acp import AcpAdapter, quirks_of, session_minute
from sessionmgr_adapters.acp.frames import Acknowledged, SessionMode, SessionModes, SessionOpened
from sessionmgr_adapters.acp.session_minute import SessionFiles, seconds_to_wait
from tests.adapters.acp.mock_agent import ALL, HELLO, Talk, call_of, chunk, ended, session_of
from tests.adapters.acp.mocked_manager import Played

SESSION: Final = "1a2b3c4d-0000-4000-8000-000000000000"
BEGUN: Final = datetime(2026, 5, 1, 23, 59, 20, tzinfo=UTC)
MODES: Final = SessionModes(
    current="default",
    available=tuple(SessionMode(id=each) for each in ("default", "yolo", "auto")),
)
CHATS: Final = ".gemini/tmp/project/chats"
SILENCE: Final = 5.0


def begin_session(home: Path, minute: str, session: str = SESSION, place: str = CHATS) -> None:
    """Write the file of a session as Gemini names it."""
    file = home / place / f"session-2026-05-{minute}-{session[:8]}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock) -> MockClock:
    """Return a clock whose start is 23:59:20; the adapter's clock follows it."""

    def now() -> datetime:
        return BEGUN + timedelta(seconds=autojump_clock.current_time() - start)

    start = autojump_clock.current_time()
    monkeypatch.setattr(session_minute, "CLOCK", now)
    return autojump_clock


# --- which sessions -------------------------------------------------------------------------------


def files_of(agent: str) -> SessionFiles:
    files = quirks_of(agent).session_files
    assert files is not None
    return files


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [
        (["01T23-59"], 40.5),
        (["01T23-58"], 0),
        (["01T22-59"], 0),
        ([], 0),
        # The file that Gemini begins when it loads a session is empty.
        (["01T23-58", "01T23-59"], 0),
    ],
)
def test_only_the_minute_in_which_a_session_was_begun_is_waited_for(
    tmp_path: Path, minutes: list[str], seconds: float
) -> None:
    for minute in minutes:
        begin_session(tmp_path, minute)
    begin_session(tmp_path, "01T23-59", session="another-session")
    env = {"GEMINI_CLI_HOME": str(tmp_path), "HOME": "/nowhere"}
    assert seconds_to_wait(files_of("gemini"), SESSION, env) == seconds
    assert seconds_to_wait(files_of("gemini"), SESSION, {"HOME": str(tmp_path)}) == seconds
    assert seconds_to_wait(files_of("gemini"), SESSION, {}) == 0


@pytest.mark.usefixtures("clock")
def test_a_session_of_any_project_is_found(tmp_path: Path) -> None:
    begin_session(tmp_path, "01T23-58", place=".gemini/tmp/other/chats")
    begin_session(tmp_path, "01T23-59")
    assert seconds_to_wait(files_of("gemini"), SESSION, {"HOME": str(tmp_path)}) == 40.5


def test_the_clock_is_the_wall_clock_in_utc() -> None:
    before = datetime.now(UTC)
    assert before <= session_minute.CLOCK() <= datetime.now(UTC)
    assert session_minute.CLOCK().utcoffset() == timedelta(0)


# --- runs -----------------------------------------------------------------------------------------


class LoadingAgent:
    """An agent that can only load sessions, and the times of the calls to it."""

    def __init__(self) -> None:
        self.called: list[tuple[str, float]] = []
        self.begun = trio.current_time()

    async def __call__(self, it: Talk) -> None:
        it.says(replace(HELLO, capabilities=replace(ALL, resume=False)))
        while True:
            call = await call_of(it)
            self.called.append((call.method, trio.current_time() - self.begun))
            match call.method:
                case "session/new":
                    it.says(SessionOpened(method=call.method, session_id=SESSION, modes=MODES))
                case "session/load":
                    it.says(SessionOpened(method=call.method, modes=MODES))
                case "session/prompt":
                    it.says(chunk(session_of(call), "ok"), ended())
                case _:
                    it.says(Acknowledged(method=call.method))

    def times_of(self, method: str) -> list[float]:
        return [time for name, time in self.called if name == method]


@asynccontextmanager
async def begun_session(
    agent: LoadingAgent, home: Path, provider: str = "acp:gemini"
) -> AsyncGenerator[SessionHandle]:
    """Begin a session in a process of its own."""
    async with (
        MockSdk(agent) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"acp": with_sdk(AcpAdapter, sdk)},
            environ={"HOME": str(home), "PATH": "/bin"},
            clocks=Clocks(idle=SILENCE, start=SILENCE, model=SILENCE),
        ) as manager,
    ):
        session = await manager.open_session(
            provider, permission_mode=PermissionMode.FULL_AUTO, cwd=home
        )
        options: dict[str, Json] = {"command": ["first"]}
        async with session.start("hi", options=options) as run:
            assert (await run.result()).status is RunStatus.COMPLETED
        yield session


async def resume(session: SessionHandle, **options: Json) -> Played:
    """Run in a session in another process."""
    run = await session.submit("again", options={"command": ["second"], **options})
    events = [event async for event in run]
    return Played(await run.result(), events)


async def test_a_session_is_loaded_once_its_minute_has_passed(
    tmp_path: Path, clock: MockClock
) -> None:
    agent = LoadingAgent()
    async with begun_session(agent, tmp_path) as session:
        begin_session(tmp_path, "01T23-59")
        played = await resume(session)
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    [loaded] = agent.times_of("session/load")
    assert 40 < loaded < 42
    [warning] = played.of_type("error_occurred")
    assert (warning.severity, warning.failure.kind) == ("warning", FailureKind.SESSION_BUSY)
    assert warning.failure.message == (
        "the agent is asked for the session in 40 s, because it would lose one that was begun in "
        "the same minute"
    )
    # The wait is longer than each timeout for a silent agent.
    types = [each.type for each in played.events]
    assert types[:3] == ["message_sent", "error_occurred", "run_started"]


async def test_the_directory_of_the_options_counts(tmp_path: Path, clock: MockClock) -> None:
    agent = LoadingAgent()
    async with begun_session(agent, tmp_path) as session:
        begin_session(tmp_path / "house", "01T23-59")
        played = await resume(session, home="house")
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert agent.times_of("session/load")[0] > 40


async def test_a_short_wait_is_not_reported(tmp_path: Path, clock: MockClock) -> None:
    agent = LoadingAgent()
    async with begun_session(agent, tmp_path) as session:
        begin_session(tmp_path, "01T23-59")
        await trio.sleep(agent.begun + 39 - clock.current_time())
        played = await resume(session)
    assert 40 < agent.times_of("session/load")[0] < 42
    assert played.of_type("error_occurred") == []


@pytest.mark.parametrize(
    ("provider", "minute"), [("acp:gemini", "01T23-58"), ("acp:goose", "01T23-59")]
)
async def test_other_sessions_and_agents_do_not_wait(
    tmp_path: Path, clock: MockClock, provider: str, minute: str
) -> None:
    agent = LoadingAgent()
    async with begun_session(agent, tmp_path, provider) as session:
        begin_session(tmp_path, minute)
        await resume(session)
    assert agent.times_of("session/load")[0] < 5


async def test_a_run_is_cancelled_while_it_waits(tmp_path: Path, clock: MockClock) -> None:
    agent = LoadingAgent()
    async with begun_session(agent, tmp_path) as session:
        begin_session(tmp_path, "01T23-59")
        run = await session.submit("again", options={"command": ["second"]})
        async for event in run:
            if event.type == "error_occurred":
                run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert clock.current_time() < 30
    assert agent.times_of("session/load") == []
