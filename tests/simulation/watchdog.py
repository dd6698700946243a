"""Limit on the virtual time of a simulation, and a report of the waiting tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE: Final = 50_000.0
"""Virtual seconds."""


class SimulationStuck(Exception):
    """The simulation makes no progress; the text names each task and its wait."""


async def raise_after_limit() -> None:
    """Raise at the limit, past every shield: a stuck simulation has no other way out.

    Raises:
        SimulationStuck: At the limit.
    """
    await trio.sleep(PATIENCE)
    raise SimulationStuck("\n".join(describe_waits()))


def describe_waits() -> Iterator[str]:
    """Describe each task without children: its name, and where it waits."""
    root = trio.lowlevel.current_root_task()
    tasks = [] if root is None else [root]
    while tasks:
        task = tasks.pop()
        children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        tasks += children
        if not children:
            yield f"{task.name}: {' > '.join(_frames(task))}"


def _frames(task: trio.lowlevel.Task) -> Iterator[str]:
    for frame, line in task.iter_await_frames():
        code = frame.f_code
        if "trio" not in code.co_filename:
            yield f"{code.co_name}:{line}"
