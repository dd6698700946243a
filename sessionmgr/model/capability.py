"""Capabilities of a provider, and the negotiation of what a run requires or prefers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Support(StrEnum):
    """Degree to which a provider supports a capability."""

    NATIVE = "native"
    """The provider has it."""
    EMULATED = "emulated"
    """The adapter emulates it."""
    UNSUPPORTED = "unsupported"
    """It is not available."""


NATIVE: Final = Support.NATIVE
EMULATED: Final = Support.EMULATED
UNSUPPORTED: Final = Support.UNSUPPORTED


class Capabilities(Value, frozen=True, kw_only=True, gc=False):
    """The support of each capability; a capability that an adapter does not name is unsupported."""

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
        """Return how `name` is supported; an unknown name is unsupported."""
        return getattr(self, name) if name in CAPABILITIES else UNSUPPORTED

    def narrowed(self, live: Mapping[str, Support]) -> Capabilities:
        """Return these capabilities limited to `live`, which the provider reports itself.

        The result never has more than either of the two.
        """
        less = {name: min(self.support(name), live[name], key=_LESS.index) for name in live}
        known = {name: support for name, support in less.items() if name in CAPABILITIES}
        return msgspec.structs.replace(self, **known)


_LESS: Final = (UNSUPPORTED, EMULATED, NATIVE)
CAPABILITIES: Final = Capabilities.__struct_fields__


class Degraded(Value, frozen=True, kw_only=True, gc=False):
    """A requested capability that is emulated or unsupported."""

    name: str
    """The capability."""
    support: Support
    """How the provider supports it."""
    why: str
    """The reason."""


class Negotiation(Value, frozen=True, kw_only=True, gc=False):
    """The result of a negotiation; `missing` names required capabilities that are unsupported."""

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
    """Compare the requested capabilities with those `offered`; an emulated one suffices."""
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
        return f"the adapter emulates {name}; the provider does not support it"
    if name not in CAPABILITIES:
        return f"unknown capability {describe_capability(name)}"
    return f"the provider does not support {name}"


def describe_capability(name: str) -> str:
    """Return a capability's name in quotes, with the nearest known name if it is unknown."""
    if name in CAPABILITIES:
        return name
    from difflib import get_close_matches  # needed only for mistakes

    nearest = get_close_matches(name, CAPABILITIES, n=1)
    return f"{name!r} (did you mean {nearest[0]!r}?)" if nearest else repr(name)


def _requested_names(asked: Iterable[str]) -> Iterable[str]:
    """Return the requested names; a string is one name, not a sequence of letters."""
    return (asked,) if isinstance(asked, str) else asked
