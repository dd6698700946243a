"""How long a simulation may take by its own clock, and who is to blame if it takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE: Final = 50_000.0
"""Virtual seconds."""


class SimulationStuck(Exception):
    """Nothing goes on any more; the text says who waits for what."""


async def raise_after_limit() -> None:
    """Raise when the time is over, past every shield: there is no other way out of the run.

    Raises:
        Stuck: Always, some time.
    """
    await trio.sleep(PATIENCE)
    raise SimulationStuck("\n".join(describe_waits()))


def describe_waits() -> Iterator[str]:
    """Describe each task that has no children: its name, and where it waits."""
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
