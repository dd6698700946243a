"""What the loops wait for that everything depends on: nothing but room, news and the commit.

An await more in one of them would be a way for one slow thing to hold up all the others.
"""

import ast
import inspect
from importlib import import_module

import pytest

LOOPS = {
    "sessionmgr.manager.keeper:Keeper._keep": [
        "live.intake.arrival()",
        "self._write_down(live.intake.drain())",
    ],
    "sessionmgr.manager.keeper:Keeper._write_down": ["self._commit(draft)"],
    "sessionmgr.manager.keeper:Keeper._commit": ["self._store(draft, append)", "trio.sleep(RETRY)"],
    "sessionmgr.manager.keeper:Keeper._store": [
        "store.append(append)",
        "store.put_snapshot(self._snapshot(draft, entry, append.at))",
    ],
    "sessionmgr.process.pump:_Reader.run": [
        "self._hand_on(await self._receive())",
        "self._receive()",
        "self._take_what_is_there()",
    ],
    "sessionmgr.process.pump:_Reader._take_what_is_there": [
        "async with trio.open_nursery() as nursery",
        "self._hand_on(found[0])",
        "self._read()",
    ],
    "sessionmgr.process.pump:_Reader._hand_on": ["self._room()"],
}


def awaited(place: str) -> list[str]:
    module, _, path = place.partition(":")
    name, _, method = path.partition(".")
    tree = ast.parse(inspect.getsource(import_module(module)))
    (of,) = (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name)
    (loop,) = (
        each for each in of.body if isinstance(each, ast.AsyncFunctionDef) and each.name == method
    )
    found: list[str] = []
    for node in ast.walk(loop):
        match node:
            case ast.Await(value=value):
                found.append(ast.unparse(value))
            case ast.AsyncFor(iter=value):
                found.append(f"async for {ast.unparse(value)}")
            case ast.AsyncWith(items=items):
                found += [f"async with {ast.unparse(each)}" for each in items]
            case _:
                pass
    return sorted(found)


@pytest.mark.parametrize("place", LOOPS)
def test_a_loop_waits_for_nothing_else(place: str) -> None:
    assert awaited(place) == LOOPS[place]
