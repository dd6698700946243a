"""Programs as users write them: both type checkers read them, and a test runs them."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import assert_type

import trio

import sessionmgr
from sessionmgr import (
    Allow,
    ApprovalRequest,
    Clocks,
    Decision,
    Deny,
    Job,
    Manager,
    ProviderAdapter,
    RunContext,
    RunResult,
    RunStatus,
    open_manager,
    run_batch,
)
from sessionmgr.batch import JobResult, dry_run
from sessionmgr.model import (
    NATIVE,
    Capabilities,
    MessageReceived,
    MessageStreamed,
    RunEnded,
    RunStarted,
    TokenUsageUpdated,
    UnknownEvent,
    Usage,
)
from sessionmgr.otp import RestartIntensityExceeded, Supervisor, child
from sessionmgr.testing.scripted_provider import Ask, Finish, Hang, Say, scripted

SCHEMA = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}
LABELS: dict[str, str] = {"repo": "web"}
TOOLS = ["Read", "Grep"]
CLAUDE = scripted(
    "claude",
    scripts={
        "count": (Say(text="one two three", deltas=3), Say(text="done")),
        "ask": (Ask(tool="Bash", input={"command": "ls"}), Say(text="well")),
        "hang": (Say(text="…"), Hang()),
        "sum up": (Finish(structured={"summary": "short"}),),
    },
)
CODEX = scripted("codex")
AGENTS = {"claude": CLAUDE, "codex": CODEX}


class Chat(ProviderAdapter):
    """A provider that streams the words of its prompt."""

    name = "chat"
    capabilities = Capabilities(streaming=NATIVE, usage=NATIVE)

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id="chat-1", model="tiny"))
        for word in run.prompt.split():
            await run.emit(MessageStreamed(delta=word + " "))
        await run.emit(MessageReceived(content=run.prompt))
        await run.emit(TokenUsageUpdated(usage=Usage(input=10, output=3)))
        await run.finish(stop_reason="end_turn")


async def stream() -> str:
    said = ""
    async with open_manager(adapters=AGENTS) as manager:
        session = await manager.open_session("claude", permission_mode="plan", metadata=LABELS)
        async with session.start("count") as run:
            async for event in run:
                if event.type == "message_streamed":
                    assert_type(event, MessageStreamed)
                    said += event.delta
                elif event.type == "message_received":
                    assert_type(event.content, str)
                elif event.type == "unknown":
                    assert_type(event, UnknownEvent)
                elif event.type in ("run_completed", "run_failed"):
                    assert isinstance(event, RunEnded)
            result = await run.result()
        usage = result.usage.output
        assert_type(usage, int)
        async for event in manager.subscribe(session.id):
            match event.type:
                case "token_usage_updated":
                    assert_type(event.usage, Usage)
                case "run_completed" | "run_failed":
                    assert_type(event.stop_reason, str | None)
                    break
                case _:
                    assert_type(event.seq, int)
        stored = [event async for event in manager.events(run.id)]
        assert said == "".join([each.delta for each in stored if each.type == "message_streamed"])
    return said


async def text() -> str:
    async with open_manager(adapters=AGENTS) as manager:
        session = await manager.open_session("claude", cwd=Path())
        async with session.start("count", tools_denied=[], directories=[]) as run:
            return "".join([piece async for piece in run.text()])


async def short_forms() -> list[str]:
    alone = await sessionmgr.ask("claude", "count", cwd=Path(), adapters=AGENTS, metadata=LABELS)
    async with open_manager(adapters=AGENTS) as manager:
        among = await manager.ask("codex", "count", permission_mode="full_auto", env=LABELS)
        given = await sessionmgr.ask("codex", "Hi", manager=manager, clocks=Clocks(deadline=60))
    assert_type(alone, RunResult)
    return [alone.text, among.text, given.text]


async def pipeline() -> str:
    async with open_manager(adapters=AGENTS) as manager:
        written = await manager.ask("claude", "count", permission_mode="full_auto")
        if written.status is not RunStatus.COMPLETED:
            raise SystemExit(f"writer: {written.failure}")
        review = await manager.ask("codex", f"Review: {written.text}", permission_mode="plan")
        return review.text


async def answer(request: ApprovalRequest) -> Decision:
    return Allow() if request.tool_name == "Bash" else Deny(reason="denied by the user")


async def approval() -> RunStatus:
    async with open_manager(adapters=AGENTS) as manager:
        session = await manager.open_session("claude", approve=answer)
        run = await session.submit("ask")
        return (await run.result()).status


async def fan_out() -> dict[str, str]:
    files = ["a.py", "b.py"]
    jobs = [
        Job(
            id=name,
            prompt="sum up",
            provider="claude",
            permission_mode="plan",
            cwd=Path(),
            schema=SCHEMA,
            metadata=LABELS,
            env={"A": "1"},
            require=["structured_output"],
            images=[],
        )
        for name in files
    ]
    found: dict[str, str] = {}
    async with (
        open_manager(adapters=AGENTS) as manager,
        run_batch(manager, jobs, concurrency=2) as results,
    ):
        async for result in results:
            assert_type(result, JobResult)
            match result.structured:
                case {"summary": str(summary)}:
                    found[result.job] = summary
                case _:
                    raise SystemExit(f"{result.job}: {result.failure}")
    return found


async def plain_dicts() -> list[str]:
    jobs = [{"id": name, "prompt": "count", "provider": "codex"} for name in "ab"]
    rich = [{"id": "b", "prompt": "count", "cwd": Path(), "schema": MappingProxyType(SCHEMA)}]
    defaults = Job(id="-", provider="codex", cwd=Path())
    async with open_manager(adapters=AGENTS) as manager:
        async with run_batch(manager, jobs) as results:
            first = sorted([result.job async for result in results])
        async with dry_run(manager, rich, defaults=defaults) as planned:
            return [*first, *[each.action async for each in planned]]


async def watch(manager: Manager) -> None:
    session = await manager.open_session("claude", clocks=Clocks(deadline=1))
    async with session.start("hang") as run:
        result = await run.result()
    if result.failure is not None:
        raise RuntimeError(f"{result.status}: {result.failure.message}")


async def supervision() -> str:
    async with open_manager(adapters=AGENTS) as manager:
        spec = child(watch, manager, restart="transient", significant=True)
        try:
            async with Supervisor(
                spec, max_restarts=2, max_seconds=60, auto_shutdown="any_significant"
            ):
                await trio.sleep_forever()
        except RestartIntensityExceeded:
            return "gave up"


async def timeouts() -> tuple[RunStatus, bool]:
    async with open_manager(adapters=AGENTS) as manager:
        result = await manager.ask("claude", "hang", clocks=Clocks(deadline=1))
        with trio.move_on_after(2) as scope:
            await manager.ask("claude", "hang")
        return result.status, scope.cancelled_caught


async def first() -> str:
    won: list[RunResult] = []
    async with open_manager(adapters=AGENTS) as manager, trio.open_nursery() as nursery:

        async def one(provider: str, prompt: str) -> None:
            result = await manager.ask(provider, prompt)
            if result.status is RunStatus.COMPLETED and not won:
                won.append(result)
                nursery.cancel_scope.cancel()

        nursery.start_soon(one, "claude", "hang")
        nursery.start_soon(one, "codex", "codex wins")
    return won[0].text


async def after_a_crash() -> tuple[str, str]:
    async with open_manager(adapters=AGENTS) as manager:
        before = await manager.ask("claude", "count", options={})
        for stored in await manager.sessions():
            session = await manager.session(stored.id)
            async with session.start("I am back", require=["resume"], schema=SCHEMA) as run:
                await run.result()
        followed = await manager.submit_follow_up(before.id, "and now?", images=[])
        return before.text, (await followed.result()).text


async def own_adapter() -> str:
    result = await sessionmgr.ask("chat", "Hello big world", adapters={"chat": Chat})
    return f"{result.text}: {result.usage.output}"


async def wrong(manager: Manager) -> None:
    """Show uses that both type checkers must reject; it is never called."""
    await manager.open_session("claude", permission_mode="yolo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await manager.ask("claude", "x", modell="m")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await manager.ask("claude", "x", env={"A": 1})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    Job(id="a", permission_mode="yolo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Job(id="a", promt="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
