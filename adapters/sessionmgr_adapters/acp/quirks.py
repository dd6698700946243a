"""What can differ between the agents that speak ACP: the record of one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from sessionmgr.adapter import (
    EMULATED,
    NATIVE,
    UNSUPPORTED,
    Capabilities,
    MappedMode,
    PermissionMap,
)
from sessionmgr.model import Fidelity, PermissionMode
from sessionmgr.process import EnvironmentSpec
from sessionmgr_adapters.acp.frames import SessionUpdate
from sessionmgr_adapters.acp.updates import AgentChunk, ModeUpdate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.model import Json
    from sessionmgr_adapters.acp.default_settings import DefaultSettings
    from sessionmgr_adapters.acp.frames import AcpFrame
    from sessionmgr_adapters.acp.session_minute import SessionFiles
    from sessionmgr_adapters.acp.user_rules import RuleFiles

FREE: Final = frozenset({PermissionMode.FULL_AUTO, PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS})
"""The modes without questions: no setting of the agent can allow more."""
OWN_DEFAULT: Final = "the agent's default"
"""The effective mode of an agent whose modes are not known: none is set."""
MODEL_KEYS: Final = (
    *("ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    *("GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY"),
    *("XAI_API_KEY", "AZURE_*", "AWS_*"),
)
"""The variables of agents that work with the models of many providers."""


_COMMON: Final = Capabilities(
    streaming=NATIVE,
    reasoning=NATIVE,
    tool_use=NATIVE,
    tool_approval=NATIVE,
    interrupt=NATIVE,
    resume=NATIVE,
    images_in=NATIVE,
    mcp=NATIVE,
    files=NATIVE,
    command_execution=NATIVE,
    web=NATIVE,
    usage=NATIVE,
    model_choice=NATIVE,
    effort=NATIVE,
)


class AgentMode(msgspec.Struct, frozen=True):
    """One of our permission modes in the terms of an agent."""

    id: str | None
    """The agent's own mode, a session mode or a config option of that category; None sets none."""
    fidelity: Fidelity = Fidelity.EXACT
    confined: bool | None = False
    config: Mapping[str, Json] = {}
    """Configuration that is merged into that of the agent's `config_variable`."""
    meta: Mapping[str, Json] = {}
    """Extensions (`_meta`) that are sent with the opening of a session."""

    @property
    def mapped(self) -> MappedMode:
        """The mode as an entry of a permission map."""
        return MappedMode(self.id or OWN_DEFAULT, self.fidelity, self.confined)


class AgentQuirks(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one agent. The defaults are those of an unknown agent."""

    title: str = "ACP agent"
    aliases: tuple[str, ...] = ()
    """Its ids in the official registry, if they differ from ours."""
    command: tuple[str, ...] = ()
    """The program, found on PATH, and its arguments; none is known for an unknown agent."""
    install: str = "install the agent, or correct options.command"
    login: str = "log in with the agent's own program"
    environment: EnvironmentSpec = EnvironmentSpec()
    """Our variables that the agent receives."""
    defaults: Mapping[str, str] = {}
    """Variables that the agent gets unless its environment has them."""
    default_settings: DefaultSettings | None = None
    """Settings that are better than the agent's own defaults."""
    home_variable: str | None = None
    """The variable that names the directory of its configuration and sessions."""
    config_variable: str | None = None
    """The variable that holds configuration as JSON."""
    model_flag: str | None = None
    """The flag that sets the model, for an agent that has no option for it."""
    models: Mapping[str, str] = {}
    """Our names of model tiers, with the agent's names, for the flag."""
    modes: Mapping[PermissionMode, AgentMode] = {}
    rule_files: tuple[RuleFiles, ...] = ()
    """Files in which the user may have allowed tools for good: `plan` is refused with them."""
    remembers_mode: bool = False
    """Whether a resumed session is in its last mode, though the agent reports another one."""
    confirms_mode: bool = True
    """Whether it reports the mode in force; otherwise the map rests on tests with the agent."""
    mode_notice: str | None = None
    """The beginning of a text with which it reports its mode, as if the model had written it."""
    error_text: str | None = None
    """A regular expression for the message in which it reports an error of the model's server, of
    an agent that ends the turn as if it had succeeded.
    """
    hides_errors: bool = False
    """Whether it ends a turn as if it had succeeded, and says nothing of the error."""
    leaves_processes: bool = False
    """Whether the processes of a tool may survive the cancel of its turn."""
    session_files: SessionFiles | None = None
    """The files of its sessions, of an agent that loses one by loading it in its first minute."""
    replays_late: bool = False
    """Whether it replays a loaded session after the answer to the request."""
    sums_usage: bool = False
    """Whether the usage of a turn is that of all turns since the session was opened."""
    reads_files: bool = True
    """Whether to offer `fs/read_text_file`."""
    writes_files: bool = True
    """Whether to offer `fs/write_text_file`."""
    terminals: bool = True
    """Whether to offer `terminal/*`."""
    edit_tools: frozenset[str] = frozenset()
    """Tools that write only the files that their calls show, though the agent does not say so."""
    starts_servers: bool = True
    """Whether it starts the MCP servers that have a command; otherwise it leaves them out."""
    protocols: frozenset[int] = frozenset({1})
    """The protocol versions that work."""
    lacks: frozenset[str] = frozenset()
    """Capabilities of ACP that the agent does not have, by name."""
    has: frozenset[str] = frozenset()
    """Capabilities beyond those of every ACP agent, by name."""
    resume_command: str | None = None

    @property
    def permissions(self) -> PermissionMap:
        """The permission modes that the agent has."""
        return PermissionMap({mode: each.mapped for mode, each in self.modes.items()})

    @property
    def capabilities(self) -> Capabilities:
        """What the agent can; its handshake narrows this further."""
        plan = self.modes.get(PermissionMode.PLAN)
        own = {each.id for mode, each in self.modes.items() if mode is not PermissionMode.PLAN}
        beyond = dict.fromkeys(self.has, NATIVE)
        if plan is not None:
            beyond["plan_mode"] = EMULATED if plan.id in own else NATIVE
        return replace(_COMMON, **beyond, **dict.fromkeys(self.lacks, UNSUPPORTED))

    def read_mode_notice(self, frame: AcpFrame) -> AcpFrame:
        """Return a frame; a text that reports the mode becomes an update of the mode."""
        beginning = self.mode_notice
        match frame:
            case SessionUpdate(update=AgentChunk(content=content)) if beginning and (
                content.text or ""
            ).startswith(beginning):
                mode = (content.text or "").removeprefix(beginning).strip()
                return replace(frame, update=ModeUpdate(current_mode_id=mode))
            case _:
                return frame


def permission_modes(
    default: AgentMode,
    *,
    accept_edits: AgentMode | None = None,
    plan: AgentMode | None,
    full_auto: AgentMode,
    skip: AgentMode | None = None,
) -> dict[PermissionMode, AgentMode]:
    """Return the modes of an agent. Edits are accepted by our answers to its default mode.

    The last mode is narrower where the agent's tools write inside the session's directories only.
    """
    if accept_edits is None:
        accept_edits = replace(default, fidelity=Fidelity.EMULATED)
    given = {
        PermissionMode.DEFAULT: default,
        PermissionMode.ACCEPT_EDITS: accept_edits,
        PermissionMode.PLAN: plan,
        PermissionMode.FULL_AUTO: full_auto,
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: skip or full_auto,
    }
    return {mode: each for mode, each in given.items() if each is not None}


# An unknown agent may write without a question in any mode, so it has no `plan`, and no other mode
# with questions is verified. It may report no cost, so that a budget could not be enforced.
UNKNOWN: Final = AgentQuirks(
    environment=EnvironmentSpec(names=MODEL_KEYS),
    has=frozenset({"system_prompt", "steer", "fork"}),
    modes=permission_modes(
        AgentMode(None, Fidelity.UNVERIFIED, confined=None),
        accept_edits=AgentMode(None, Fidelity.UNVERIFIED, confined=None),
        plan=None,
        full_auto=AgentMode(None, Fidelity.EMULATED, None),
    ),
)
"""An agent that is not bundled."""
