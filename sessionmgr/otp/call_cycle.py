"""Detection of call cycles: a call must not wait, through other calls, for its own caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.otp.errors import CallCycle

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask


def check_call_cycle(caller: ChildTask, callee: ChildTask) -> None:
    """Check that a call would not wait, through others, for its own caller.

    Raises:
        CallCycle: It would; the error names the whole cycle.
    """
    # Depth first; a child seldom waits for more than one other.
    trail: dict[ChildTask, ChildTask | None] = {callee: None}
    pending = [callee]
    while pending:
        record = pending.pop()
        if record is caller:
            path: list[str] = []
            step: ChildTask | None = record
            while step is not None:
                path.append(step.name)
                step = trail[step]
            raise CallCycle([caller.name, *reversed(path)])
        for other in record.waits_for:
            if other not in trail:
                trail[other] = record
                pending.append(other)
