"""What agents over ACP do in place of what they should, as the tests with the agents find it.

One table for the tests, which require exactly this, and for the page of the adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

RETRIES: Final = "it tries again, and says nothing, until the run is cancelled"
FORCED: Final = "cancelled, by the end of the agent's process"
LEFT: Final = "cancelled, and its processes stay until the agent's process ends"
FAILED: Final = "provider_error"
LEFT_OUT: Final = "left out"
UNKNOWN: Final = "unknown"
LOST: Final = "session_not_found"


class AcpLimit(msgspec.Struct, frozen=True):
    """A limit of an agent."""

    case: str
    """The case, as the tests name it."""
    outcome: str
    """What happens in place of the usual outcome."""


_FORCED_IN_TOOLS: Final = tuple(
    AcpLimit(case, FORCED)
    for case in ("a tool runs", "a question is open", "a tool ignores signals")
)
"""Of agents whose tools may leave processes."""
LIMITS: Final[Mapping[str, tuple[AcpLimit, ...]]] = {
    "claude-agent-acp": (
        *_FORCED_IN_TOOLS,
        AcpLimit("429 of a quota", "rate_limited, retryable"),
    ),
    "codex-acp": (
        AcpLimit("cost", UNKNOWN),
        *_FORCED_IN_TOOLS,
        AcpLimit("429 once", "rate_limited, retryable"),
        AcpLimit("500", "overloaded, retryable"),
    ),
    "copilot": (
        AcpLimit("cost", UNKNOWN),
        *_FORCED_IN_TOOLS,
        AcpLimit("an empty answer", FAILED),
    ),
    "gemini": (
        AcpLimit("cost", UNKNOWN),
        AcpLimit("a tool ignores signals", LEFT),
        AcpLimit("a quota in the stream", FAILED),
    ),
    "goose": (
        AcpLimit("an image", LEFT_OUT),
        AcpLimit("cost", UNKNOWN),
        AcpLimit("the server hangs", FORCED),
        AcpLimit("an empty answer", FAILED),
    ),
    "kimi-cli": (
        AcpLimit("usage", UNKNOWN),
        AcpLimit("cost", UNKNOWN),
        AcpLimit("401", FAILED),
        AcpLimit("429", FAILED),
        AcpLimit("429 of a quota", FAILED),
        AcpLimit("a quota in the stream", FAILED),
        AcpLimit("500", FAILED),
        AcpLimit("503", FAILED),
        AcpLimit("always cut", "completed: haha"),
        AcpLimit("an empty answer", FAILED),
    ),
    "kimi-code": (
        AcpLimit("usage", UNKNOWN),
        AcpLimit("cost", UNKNOWN),
        AcpLimit("429", FAILED),
        AcpLimit("429 of a quota", FAILED),
        AcpLimit("a quota in the stream", RETRIES),
        AcpLimit("500", RETRIES),
        AcpLimit("503", RETRIES),
        AcpLimit("always cut", RETRIES),
        AcpLimit("an empty answer", RETRIES),
    ),
    "opencode": (
        *_FORCED_IN_TOOLS,
        AcpLimit("a lost session", FAILED),
        AcpLimit("429 of a quota", RETRIES),
        AcpLimit("500", RETRIES),
        AcpLimit("503", RETRIES),
        AcpLimit("always cut", RETRIES),
    ),
}
"""By the agent's id."""


def outcome_of(agent: str, case: str, usual: str) -> str:
    """Return what must happen with an agent in a case."""
    found = (each.outcome for each in LIMITS.get(agent, ()) if each.case == case)
    return next(found, usual)
