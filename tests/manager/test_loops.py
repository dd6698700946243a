"""The awaits of the loops on which everything depends: only room, events and the commit.

One more await in them could let one slow part delay all others.
"""

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module

import pytest

LOOPS = {
    "sessionmgr.manager.committer:Committer.run": ["self._commit()", "self._wait()"],
    "sessionmgr.manager.committer:Committer._wait": [
        "self._wait_for_mark()",
        "self._wait_for_mark()",
        "trio.lowlevel.checkpoint()",
        "trio.lowlevel.checkpoint()",
        "trio.sleep(RETRY)",
    ],
    "sessionmgr.manager.committer:Committer._wait_for_mark": ["wait_task_rescheduled(abort)"],
    "sessionmgr.manager.committer:Committer._commit": [
        "self._append_result(append)",
        "self._state.store.append_all(appends)",
    ],
    "sessionmgr.manager.committer:Committer._append_result": [
        "self._state.store.append_all([append])"
    ],
    "sessionmgr.process.pump:_PipeReader.run": [
        "self._deliver(await self._receive())",
        "self._read_buffered()",
        "self._receive()",
    ],
    "sessionmgr.process.pump:_PipeReader._read_buffered": [
        "async with trio.open_nursery() as nursery",
        "self._deliver(found[0])",
        "self._read()",
    ],
    "sessionmgr.process.pump:_PipeReader._read_descriptor": [
        "trio.lowlevel.checkpoint()",
        "trio.lowlevel.wait_readable(descriptor)",
        "trio.lowlevel.wait_readable(descriptor)",
    ],
    "sessionmgr.process.pump:_PipeReader._deliver": ["self._room()"],
    "sessionmgr.adapter.kit.stdio_connection:StdioConnection._wait_for_room": [
        "self._driver.room()",
        "self._is_opened.wait()",
        "trio.lowlevel.checkpoint()",
    ],
    "sessionmgr.adapter.kit.json_rpc_connection:JsonRpcConnection._room": [
        "each.driver.room()",
        "trio.lowlevel.checkpoint()",
    ],
    "sessionmgr.manager.inbox:Inbox.room": [
        "self._stored.wait()",
        "trio.lowlevel.checkpoint()",
        "trio.lowlevel.checkpoint_if_cancelled()",
    ],
    "sessionmgr_adapters.codex.sdk:CodexConnection._room": [
        "each.driver.room()",
        "trio.lowlevel.checkpoint()",
    ],
    "sessionmgr_adapters.acp.client_terminals:_Terminal._collect": [
        "run.room()",
        "stream.receive_some(READ)",
    ],
    # It reads not the agent's output, but the file that the agent writes.
    "sessionmgr_adapters.claude.driver:ClaudeDriver._watch_file": [
        "file.read_new()",
        "self.room()",
        "trio.lowlevel.checkpoint()",
        "trio.sleep(SILENCE)",
    ],
}


READING = re.compile(r"receive|self\._read\(|events\(\)|\broom\(|wait_readable|^async for")
"""The awaits of a loop that reads from an agent."""
RECORDING = re.compile(r"\.append(_all)?\(|\barrival\(|\.drain\(|_write_down\(|_commit\(")
"""The awaits of a loop that drains an inbox or stores events."""
STORE = re.compile(r"\bstore\b|blob\(|snapshot\(|\.append(_all)?\(|commit")
READERS = (
    "sessionmgr.process.pump",
    "sessionmgr.adapter",
    "sessionmgr.testing.toy",
    "sessionmgr_adapters",
)


def modules(*names: str) -> Iterator[str]:
    """Yield the names of modules, and of all modules below them."""
    for name in names:
        yield name
        path = getattr(import_module(name), "__path__", ())
        yield from (each.name for each in pkgutil.walk_packages(path, f"{name}."))


def coroutines(module: str) -> Iterator[tuple[str, ast.AsyncFunctionDef]]:
    """Yield a module's async functions and methods, by their places."""
    for each in ast.parse(inspect.getsource(import_module(module))).body:
        owner = f"{each.name}." if isinstance(each, ast.ClassDef) else ""
        for one in each.body if isinstance(each, ast.ClassDef) else [each]:
            if isinstance(one, ast.AsyncFunctionDef):
                yield f"{module}:{owner}{one.name}", one


def waits(within: ast.AST) -> Iterator[str]:
    """Yield the awaited expressions in a piece of source."""
    for node in ast.walk(within):
        match node:
            case ast.Await(value=value):
                yield ast.unparse(value)
            case ast.AsyncFor(iter=value):
                yield f"async for {ast.unparse(value)}"
            case ast.AsyncWith(items=items):
                yield from (f"async with {ast.unparse(each)}" for each in items)
            case _:
                pass


def loops(of: ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Yield the loops of an async function."""
    kinds = ast.While | ast.For | ast.AsyncFor
    return (each for each in ast.walk(of) if isinstance(each, kinds))


def found(pattern: re.Pattern[str], *names: str) -> set[str]:
    """Return the places of loops with an await that matches the pattern."""
    return {
        place
        for module in modules(*names)
        for place, of in coroutines(module)
        if any(pattern.search(each) for loop in loops(of) for each in waits(loop))
    }


def reached(place: str) -> Iterator[str]:
    """Yield the awaits of a coroutine, and of those in its class and module that it awaits."""
    module, _, path = place.partition(":")
    known = dict(coroutines(module))
    owner = f"{module}:{path.rpartition('.')[0]}"
    todo, done = [place], {place}
    while todo:
        for each in waits(known[todo.pop()]):
            yield each
            called = re.match(r"(self\.)?(\w+)\(", each)
            name = f"{owner}.{called[2]}" if called and called[1] else ""
            name = f"{module}:{called[2]}" if called and not called[1] else name
            if name in known and name not in done:
                done.add(name)
                todo.append(name)


@pytest.mark.parametrize("place", LOOPS)
def test_a_loop_waits_for_nothing_else(place: str) -> None:
    of = dict(coroutines(place.partition(":")[0]))[place]
    assert sorted(waits(of)) == LOOPS[place]


def test_no_loop_that_reads_from_an_agent_is_missing_in_the_list() -> None:
    assert found(READING, *READERS) <= LOOPS.keys()


def test_no_loop_that_writes_down_is_missing_in_the_list() -> None:
    assert found(RECORDING, "sessionmgr.manager") <= LOOPS.keys()


def test_there_is_one_loop_at_least_of_each_kind() -> None:
    assert found(READING, *READERS)
    assert found(RECORDING, "sessionmgr.manager")


def rooms() -> set[str]:
    """Return the places of the functions that readers await between two reads."""
    places = (place for module in modules(*READERS) for place, _ in coroutines(module))
    return {place for place in places if re.search(r"[:._]room$", place)}


@pytest.mark.parametrize("place", sorted(found(READING, *READERS) | rooms()))
def test_a_reader_of_an_agent_does_not_wait_for_the_store(place: str) -> None:
    assert [each for each in reached(place) if STORE.search(each)] == []


def test_a_recorder_waits_for_nothing() -> None:
    module = ast.parse(inspect.getsource(import_module("sessionmgr.manager.recorder")))
    (recorder,) = (
        each for each in module.body if isinstance(each, ast.ClassDef) and each.name == "Recorder"
    )
    waiting = {each.name for each in recorder.body if isinstance(each, ast.AsyncFunctionDef)}
    assert waiting == {"_run", "_deliver_message"}  # the recorder's tasks
