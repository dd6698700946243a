"""Threads that stay loaded."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.model import Json
from sessionmgr.wire import RpcResponse
from sessionmgr_adapters.codex.thread_cache import (
    IDLE_FOR,
    MAX_IDLE_THREADS,
    ThreadCache,
    thread_terms,
)


def test_what_is_wanted_is_the_same_for_a_thread_that_begins_and_goes_on() -> None:
    begun = thread_terms({"cwd": "/w", "sandbox": "read-only", "dynamicTools": []})
    resumed = thread_terms(
        {"threadId": "t", "excludeTurns": True, "sandbox": "read-only", "cwd": "/w"}
    )
    assert begun == resumed
    assert begun == thread_terms({"cwd": "/w", "sandbox": "workspace-write"})  # changeable
    assert begun != thread_terms({"cwd": "/w", "model": "gpt-x"})


async def test_so_many_threads_are_kept_and_the_oldest_is_given_back(
    autojump_clock: MockClock,
) -> None:
    asked: list[tuple[str, Json]] = []

    async def ask(method: str, params: dict[str, Json]) -> RpcResponse:
        await trio.lowlevel.checkpoint()
        asked.append((method, params["threadId"]))
        return RpcResponse(1, b"{}")

    async def clear_away(thread: str) -> None:
        raise AssertionError(f"{thread} was not left in the middle of a turn")

    cache = ThreadCache(ask, clear_away)
    resume = [
        RpcCall(n, "thread/resume", {"threadId": str(n)}) for n in range(MAX_IDLE_THREADS + 1)
    ]
    async with trio.open_nursery() as nursery:
        cache.open(nursery)
        for each in resume:
            cache.note_opened(str(each.id), each, b"{}")
            assert cache.add_idle(str(each.id))
        await wait_all_tasks_blocked()
        assert asked == [("thread/unsubscribe", "0")]
        assert cache.reuse(resume[0]) is None
        assert cache.reuse(resume[1]) == b"{}"
        assert cache.reuse(resume[1]) is None
        await trio.sleep(IDLE_FOR + 1)
        assert len(asked) == MAX_IDLE_THREADS  # all but the reused one
        nursery.cancel_scope.cancel()
