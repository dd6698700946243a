"""What a provider can do, and what comes of asking for it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Support(StrEnum):
    """How a provider comes by a capability."""

    NATIVE = "native"
    """It has it."""
    EMULATED = "emulated"
    """The adapter does it in its stead."""
    UNSUPPORTED = "unsupported"
    """It is not available."""


NATIVE: Final = Support.NATIVE
EMULATED: Final = Support.EMULATED
UNSUPPORTED: Final = Support.UNSUPPORTED


class Capabilities(Value, frozen=True, kw_only=True, gc=False):
    """All that can be asked for by name; what an adapter does not name, it does not have."""

    streaming: Support = UNSUPPORTED
    """Text arrives while the agent writes it."""
    reasoning: Support = UNSUPPORTED
    """The agent's reasoning is reported."""
    tool_use: Support = UNSUPPORTED
    """Tool calls are reported."""
    tool_approval: Support = UNSUPPORTED
    """The agent asks before it uses a tool, and takes an answer."""
    system_prompt: Support = UNSUPPORTED
    """A system prompt can be given."""
    interrupt: Support = UNSUPPORTED
    """A run can be ended cleanly, without killing a process."""
    steer: Support = UNSUPPORTED
    """A running turn takes further messages (`append`)."""
    resume: Support = UNSUPPORTED
    """A later run continues the session."""
    fork: Support = UNSUPPORTED
    """A run continues the session in a copy of it."""
    structured_output: Support = UNSUPPORTED
    """The output follows a JSON Schema."""
    images_in: Support = UNSUPPORTED
    """A prompt may contain images."""
    images_out: Support = UNSUPPORTED
    """The agent can return images."""
    mcp: Support = UNSUPPORTED
    """MCP servers can be given."""
    files: Support = UNSUPPORTED
    """The agent reads and edits files."""
    command_execution: Support = UNSUPPORTED
    """The agent runs commands."""
    web: Support = UNSUPPORTED
    """The agent searches or reads the web."""
    plan_mode: Support = UNSUPPORTED
    """The agent can plan without a change of files or system."""
    max_turns: Support = UNSUPPORTED
    """The number of turns can be limited."""
    usage: Support = UNSUPPORTED
    """Token usage is reported."""
    cost: Support = UNSUPPORTED
    """The cost is reported, and a budget in dollars is enforced."""
    model_choice: Support = UNSUPPORTED
    """The model can be chosen."""
    effort: Support = UNSUPPORTED
    """The reasoning effort can be chosen."""

    def support(self, name: str) -> Support:
        """Return how `name` is supported; what is no capability is supported by nobody."""
        return getattr(self, name) if name in CAPABILITIES else UNSUPPORTED

    def narrowed(self, live: Mapping[str, Support]) -> Capabilities:
        """Return what is left after the provider itself has said `live`: never more than before."""
        less = {name: min(self.support(name), live[name], key=_LESS.index) for name in live}
        known = {name: support for name, support in less.items() if name in CAPABILITIES}
        return msgspec.structs.replace(self, **known)


_LESS: Final = (UNSUPPORTED, EMULATED, NATIVE)
CAPABILITIES: Final = Capabilities.__struct_fields__


class Degraded(Value, frozen=True, kw_only=True, gc=False):
    """A capability that was wished for and is less than native, or not there."""

    name: str
    """The capability."""
    support: Support
    """How far the provider has it."""
    why: str
    """The reason."""


class Negotiation(Value, frozen=True, kw_only=True, gc=False):
    """What was granted of what was asked. `missing` names what was required in vain."""

    granted: dict[str, Support] = msgspec.field(default_factory=dict[str, Support])
    """Capabilities that the run has, and how."""
    degraded: tuple[Degraded, ...] = ()
    """Capabilities that are emulated or, if only preferred, not available."""
    missing: tuple[str, ...] = ()
    """Required capabilities that are not available."""


def negotiate(
    offered: Capabilities,
    *,
    require: Iterable[str] = (),
    prefer: Iterable[str] = (),
    require_native: Iterable[str] = (),
) -> Negotiation:
    """Compare what is asked with what is `offered`. Emulated satisfies, and is reported."""
    strict = dict.fromkeys(_requested_names(require_native))
    needed = {**dict.fromkeys(_requested_names(require)), **strict}
    granted: dict[str, Support] = {}
    degraded: list[Degraded] = []
    missing: list[str] = []
    for name in {**needed, **dict.fromkeys(_requested_names(prefer))}:
        support = offered.support(name)
        if support is UNSUPPORTED or (name in strict and support is not NATIVE):
            if name in needed:
                missing.append(name)
            else:
                degraded.append(
                    Degraded(name=name, support=support, why=_describe_support(name, support))
                )
            continue
        granted[name] = support
        if support is EMULATED:
            degraded.append(
                Degraded(name=name, support=support, why=_describe_support(name, support))
            )
    return Negotiation(granted=granted, degraded=tuple(degraded), missing=tuple(missing))


def _describe_support(name: str, support: Support) -> str:
    if support is EMULATED:
        return f"the adapter stands in for {name}: the provider does not have it"
    if name not in CAPABILITIES:
        return f"there is no capability {describe_capability(name)}"
    return f"the provider does not have {name}"


def describe_capability(name: str) -> str:
    """Return the name of a capability, with the nearest known one if there is none of it."""
    if name in CAPABILITIES:
        return name
    from difflib import get_close_matches  # for those who made a mistake

    nearest = get_close_matches(name, CAPABILITIES, n=1)
    return f"{name!r} (did you mean {nearest[0]!r}?)" if nearest else repr(name)


def _requested_names(asked: Iterable[str]) -> Iterable[str]:
    """Return what is asked for; a text is one name, and not its letters."""
    return (asked,) if isinstance(asked, str) else asked
