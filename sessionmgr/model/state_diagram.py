"""Mermaid state diagrams, printed from tables of transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

State = TypeVar("State", bound=StrEnum)
Step = TypeVar("Step", bound=StrEnum)


def mermaid_diagram(transitions: Mapping[State, Mapping[Step, State]]) -> str:
    """Return the diagram of a table: its first state is initial; those without steps are final."""
    lines = ["stateDiagram-v2", f"    [*] --> {next(iter(transitions))}"]
    for state, steps in transitions.items():
        lines += [f"    {state} --> {to} : {step}" for step, to in steps.items()]
        if not steps:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines)
