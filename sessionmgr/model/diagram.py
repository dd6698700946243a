"""The life of a run as a picture, printed from its table."""

from __future__ import annotations

from sessionmgr.model.status import TRANSITIONS


def mermaid() -> str:
    """Draw the table of transitions as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> pending"]
    for status, steps in TRANSITIONS.items():
        lines += [f"    {status} --> {to} : {step}" for step, to in steps.items()]
        if not steps:
            lines.append(f"    {status} --> [*]")
    return "\n".join(lines)
