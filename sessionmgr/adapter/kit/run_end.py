"""How a turn that went well ends its run: well, if what it gives is what it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from sessionmgr.adapter.kit.structured_output import judge
from sessionmgr.model import Unreadable, parse_json

if TYPE_CHECKING:
    from msgspec import UnsetType

    from sessionmgr.adapter.run_context import RunContext
    from sessionmgr.model import Json


async def end_well(run: RunContext, output: Json | UnsetType, *, stop_reason: str | None) -> None:
    """Judge the structured output of a run, and tell how the run has ended."""
    judged = judge(run.schema, output)
    if judged.note is not None:
        run.emit_nowait(judged.note)
    if judged.failure is not None:
        await run.fail(judged.failure, stop_reason=stop_reason)
    else:
        await run.finish(stop_reason=stop_reason, structured=None if output is UNSET else output)


def output_in(text: str) -> Json | UnsetType:
    """Return the JSON that a text is, if it is any."""
    found = parse_json(text.encode(errors="replace"))
    return UNSET if isinstance(found, Unreadable) else found
