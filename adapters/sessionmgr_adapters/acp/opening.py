"""The steps before a run's prompt: the session is opened, and set as the run asks for.

The mode that the agent reports is compared with the one that was asked for: a run never starts in
another mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter.kit import config_failure
from sessionmgr.model import (
    NATIVE,
    UNSUPPORTED,
    Failure,
    FailureKind,
    PermissionMode,
)
from sessionmgr_adapters.acp.failures import failure_of_login, failure_of_refusal
from sessionmgr_adapters.acp.frames import (
    AcpRefusal,
    Initialized,
    OptionsChanged,
)
from sessionmgr_adapters.acp.quirks import FREE
from sessionmgr_adapters.acp.sdk import WIRES
from sessionmgr_adapters.acp.session_minute import seconds_to_wait, wait_for_minute
from sessionmgr_adapters.acp.v1 import V1, SessionSetup, SystemPrompt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Json, Support
    from sessionmgr_adapters.acp.calls import AcpCalls
    from sessionmgr_adapters.acp.frames import AcpAnswer, SessionModes
    from sessionmgr_adapters.acp.options import AcpOptions
    from sessionmgr_adapters.acp.quirks import AgentMode, AgentQuirks
    from sessionmgr_adapters.acp.state import AcpState
    from sessionmgr_adapters.acp.updates import ConfigOption
    from sessionmgr_adapters.acp.v1 import AcpCall, AcpMcpServer, ProtocolV1

AUTH_REQUIRED: Final = -32000
MODE: Final = "mode"
MODEL: Final = "model"
EFFORT: Final = "thought_level"
OF_MODELS: Final = frozenset({MODEL, "model_config", EFFORT, "thinking"})
"""The categories of options that concern the model, and so widen no permission."""


class AcpRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a run asks of its agent."""

    options: AcpOptions
    quirks: AgentQuirks
    mode: AgentMode
    content: tuple[dict[str, Json], ...]
    """The blocks of the prompt."""
    env: Mapping[str, str] = {}
    """The variables that name the places of the agent's files."""
    mcp_servers: tuple[AcpMcpServer, ...] = ()
    meta: dict[str, Json] = {}
    """Extensions that are sent with the opening of the session."""
    version: str | None = None
    """The version that the agent must have."""
    narrows: bool = True
    """Whether what the agent lacks counts for later runs of the provider, too."""
    has_images: bool = False


class AcpSession:
    """The settings of a run's session, as the agent has reported them."""

    def __init__(self, state: AcpState, id_: str | None) -> None:
        self._state: Final = state
        state.session = id_ or ""
        self.models: SessionModes | None = None
        """The models, of an agent that has no config option for them."""
        self.first_mode: str | None = None
        """The mode in which the agent has opened the session; None if it did so in another run."""

    @property
    def id(self) -> str:
        """The agent's name for the session; empty until it is known."""
        return self._state.session

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """The config options."""
        return self._state.options

    def option_of(self, category: str) -> ConfigOption | None:
        """Return the config option of a category."""
        return self._state.option(category)

    @property
    def mode(self) -> str | None:
        """The mode in force; None if the agent has not reported one."""
        option = self.option_of(MODE)
        return self._state.mode if option is None else str(option.value)

    @mode.setter
    def mode(self, mode: str) -> None:
        self._state.mode = mode

    @property
    def modes(self) -> list[str]:
        """The modes that the agent has."""
        option, modes = self.option_of(MODE), self._state.modes
        if option is not None:
            return [each.value for each in option.choices]
        return [] if modes is None else [each.id for each in modes.available]

    @property
    def model(self) -> str | None:
        """The model in use; None if the agent has not reported it."""
        option = self.option_of(MODEL)
        if option is not None:
            return str(option.value)
        return None if self.models is None else self.models.current


class SessionOpening:
    """The steps before the prompt of one run."""

    def __init__(
        self, run: RunContext, calls: AcpCalls, session: AcpSession, request: AcpRunRequest
    ) -> None:
        self.wire: ProtocolV1 = V1
        self.info: Initialized = Initialized(version=1)
        self.is_greeted = False
        self.is_open = False
        """Whether the session is open already, from an earlier run."""
        self.is_stale = False
        """Whether it is open with other terms, and must be closed first."""
        self.is_confirmed = True
        """Whether the agent has reported that the mode is in force."""
        self._tried: str | None = None
        """The method by which the agent was asked to log in."""
        self._run: Final = run
        self._calls: Final = calls
        self._session: Final = session
        self._request: Final = request
        self._handshake: Final = calls.expect_handshake()

    async def prepare(self) -> Failure | None:
        """Open and set up the session; return the failure that prevents the prompt."""
        hello = await self._handshake.wait()
        if isinstance(hello, AcpRefusal):
            return failure_of_refusal(hello)
        assert isinstance(hello, Initialized)
        self.info, self.wire, self.is_greeted = hello, WIRES[hello.version], True
        failure = self._unsuitable(hello)
        if failure is not None:
            return failure
        if self._request.narrows:
            self._run.narrow(self._live(hello))
        failure = None if self.is_open else await self._open()
        return failure or await self._set_up()

    # --- what the agent can ----------------------------------------------------------------------

    def _unsuitable(self, hello: Initialized) -> Failure | None:
        """Return why this agent cannot do what the run asks for."""
        run, request, can = self._run, self._request, hello.capabilities
        wanted = request.options.protocol
        if wanted not in ("auto", hello.version):
            return config_failure(
                f"options.protocol: the agent speaks version {hello.version} of ACP, not {wanted}; "
                f"use {hello.version}"
            )
        if request.version is not None and hello.agent_version != request.version:
            found = hello.agent_version or "an unnamed version"
            return config_failure(
                f"provider: version {request.version} was asked for, but {found} of "
                f"{hello.agent or 'the agent'} is installed; install it, or name no version"
            )
        if request.options.fork and not can.fork:
            return _missing("options.fork", "it cannot copy a session")
        if run.directories and not can.additional_directories:
            return _missing("directories", "it works in one directory only")
        if run.provider_session_id is not None and not (can.resume or can.load):
            return _missing("resume", "it can neither resume nor load a session")
        if request.has_images and not can.image:
            return _missing("images", "it takes no images")
        if run.system_prompt is not None and not can.system_prompt:
            return _missing("system_prompt", "it takes no system prompt")
        has = {"http": can.mcp_http, "sse": can.mcp_sse, "stdio": can.mcp_stdio}
        for server in request.mcp_servers:
            transport = "stdio" if server.url is None else server.transport
            if not has[transport]:
                field = f"options.mcp_servers.{server.name}"
                return _missing(field, f"it has no MCP servers over {transport}")
        return None

    def _live(self, hello: Initialized) -> dict[str, Support]:
        can = hello.capabilities
        found = {
            "resume": can.resume or can.load,
            "fork": can.fork,
            "images_in": can.image,
            "steer": hello.steers or self.wire.queues_prompts,
            "system_prompt": can.system_prompt,
        }
        return {name: NATIVE if value else UNSUPPORTED for name, value in found.items()}

    # --- the session -----------------------------------------------------------------------------

    async def _open(self) -> Failure | None:
        if self.is_stale and self.info.capabilities.close:
            await self._calls.call(self.wire.close_session(self._session.id))
        await self._pass_minute()
        opening = self._opening()
        if self._request.meta:
            opening = opening._replace(params={**opening.params, "_meta": self._request.meta})
        answer = await self._calls.call(opening)
        if isinstance(answer, AcpRefusal) and answer.code == AUTH_REQUIRED:
            failure = await self._authenticate(answer)
            if failure is not None:
                return failure
            answer = await self._calls.call(opening)
        if not isinstance(answer, AcpRefusal):
            return None
        is_login = self._tried is not None and answer.code == AUTH_REQUIRED
        return self._login_failure(answer) if is_login else failure_of_refusal(answer)

    async def _pass_minute(self) -> None:
        """Wait while the agent would lose the session by loading it."""
        seconds, files = 0.0, self._request.quirks.session_files
        if files is not None and self._run.provider_session_id is not None:
            seconds = seconds_to_wait(files, self._run.provider_session_id, self._request.env)
        await wait_for_minute(self._run, seconds)

    def _opening(self) -> AcpCall:
        run, can = self._run, self.info.capabilities
        text = run.system_prompt
        prompt = (
            None if text is None else SystemPrompt(text=text, override=can.system_prompt_override)
        )
        setup = SessionSetup(
            cwd=run.cwd,
            directories=run.directories,
            mcp_servers=self._request.mcp_servers,
            system_prompt=prompt,
        )
        if run.provider_session_id is None:
            return self.wire.new_session(setup)
        if self._request.options.fork:
            return self.wire.fork_session(run.provider_session_id, setup)
        if can.resume:
            return self.wire.resume_session(run.provider_session_id, setup)
        return self.wire.load_session(run.provider_session_id, setup)

    async def _authenticate(self, refusal: AcpRefusal) -> Failure | None:
        """Log in by the agent's own method, if it has one that needs no terminal."""
        methods = self.info.auth_methods
        wanted = self._request.options.auth
        able = [each for each in methods if each.type == "agent" and wanted in (None, each.id)]
        if len(able) != 1:
            return self._login_failure(refusal)
        self._tried = able[0].id
        answer = await self._calls.call(self.wire.authenticate(self._tried))
        return self._login_failure(answer) if isinstance(answer, AcpRefusal) else None

    def _login_failure(self, refusal: AcpRefusal) -> Failure:
        known = [each.id for each in self.info.auth_methods if each.type == "agent"]
        remedy, wanted = self._request.quirks.login, self._request.options.auth
        return failure_of_login(refusal, remedy, known, self._tried, wanted)

    # --- settings --------------------------------------------------------------------------------

    async def _set_up(self) -> Failure | None:
        run, options = self._run, self._request.options
        if run.model is not None and self._request.quirks.model_flag is None:
            failure = await self._choose_model(run.model)
            if failure is not None:
                return failure
        if run.effort is not None:
            effort = self._session.option_of(EFFORT)
            if effort is None:
                return _missing("effort", "it has no option for the effort")
            failure = await self._set_option(effort, run.effort, "effort")
            if failure is not None:
                return failure
        for name, value in options.config.items():
            found = next((each for each in self._session.options if each.id == name), None)
            if found is None:
                known = ", ".join(each.id for each in self._session.options) or "none"
                return config_failure(f"options.config: unknown option {name!r}; known: {known}")
            if found.category not in OF_MODELS and run.permission.asked not in FREE:
                return _may_widen(name, run.permission.asked.value)
            failure = await self._set_option(found, value, f"options.config.{name}")
            if failure is not None:
                return failure
        return await self._choose_mode(options.mode or self._request.mode.id)

    async def _choose_model(self, model: str) -> Failure | None:
        option, session = self._session.option_of(MODEL), self._session
        if option is not None:
            return await self._set_option(option, model, "model")
        if model == session.model:
            return None
        known = [] if session.models is None else [each.id for each in session.models.available]
        if not known:
            return _missing("model", "it has no option for the model")
        if model not in known:
            return _unknown_value("model", model, known, FailureKind.MODEL_NOT_FOUND)
        answer = await self._calls.call(self.wire.set_model(session.id, model))
        return failure_of_refusal(answer) if isinstance(answer, AcpRefusal) else None

    async def _set_option(
        self, option: ConfigOption, value: str | bool, field: str
    ) -> Failure | None:
        """Set an option, and check that it has the value then."""
        choices = tuple(each.value for each in option.choices)
        is_known = isinstance(value, bool) if option.type == "boolean" else value in choices
        if not is_known:
            kind = FailureKind.MODEL_NOT_FOUND if field == "model" else FailureKind.CONFIG_INVALID
            return _unknown_value(field, value, choices or ("true", "false"), kind)
        if option.value == value:
            return None
        answer = await self._calls.call(self.wire.set_option(self._session.id, option.id, value))
        if isinstance(answer, AcpRefusal):
            return failure_of_refusal(answer)
        now = next((each for each in self._session.options if each.id == option.id), option)
        if isinstance(answer, OptionsChanged) and now.value != value:
            return config_failure(f"{field}: {value!r} was set, but {now.value!r} is in force")
        return None

    async def _choose_mode(self, mode: str | None) -> Failure | None:
        session = self._session
        if mode is None:  # an earlier run of the session may have set another one
            mode = session.first_mode
        if mode is not None and self._has_unknown_mode:
            await self._set_mode(self._request.quirks.modes[PermissionMode.DEFAULT].id or mode)
        elif mode is None or session.mode == mode:
            return None
        if mode not in session.modes:
            known = ", ".join(session.modes) or "none"
            return self._mode_failure(f"the agent has no mode {mode!r}; its modes: {known}")
        before = session.mode
        answer = await self._set_mode(mode)
        if isinstance(answer, AcpRefusal):
            return self._mode_failure(f"the agent refused the mode {mode!r}: {answer.message}")
        if session.mode == mode:
            return None
        if isinstance(answer, OptionsChanged) or session.mode != before:
            return self._mode_failure(f"{mode!r} was set, but {session.mode!r} is in force")
        return self._unconfirmed(mode)

    @property
    def _has_unknown_mode(self) -> bool:
        """Whether the mode that the agent reports may not be the one in force.

        Then its default mode is set first, because it refuses the mode that it is in.
        """
        is_resumed = self._run.provider_session_id is not None and not self.is_open
        return is_resumed and self._request.quirks.remembers_mode

    async def _set_mode(self, mode: str) -> AcpAnswer:
        option, session = self._session.option_of(MODE), self._session
        if option is None:
            return await self._calls.call(self.wire.set_mode(session.id, mode))
        return await self._calls.call(self.wire.set_option(session.id, option.id, mode))

    def _unconfirmed(self, mode: str) -> Failure | None:
        """Handle a mode of which the agent does not say whether it is in force."""
        self._session.mode = mode
        self.is_confirmed = not self._request.quirks.confirms_mode
        if self.is_confirmed or self._run.permission.asked is not PermissionMode.PLAN:
            return None
        return self._mode_failure(f"the agent does not say whether the mode {mode!r} is in force")

    def _mode_failure(self, why: str) -> Failure:
        message = f"permission mode {self._run.permission.asked.value}: {why}"
        return Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="start")


def _missing(field: str, why: str) -> Failure:
    message = f"{field}: the agent does not support it: {why}"
    return Failure(kind=FailureKind.CAPABILITY_MISSING, message=message, phase="start")


def _may_widen(name: str, mode: str) -> Failure:
    message = (
        f"options.config.{name}: it may allow more than permission_mode {mode!r}; leave it out, or "
        f"use permission_mode {PermissionMode.FULL_AUTO.value!r}"
    )
    return Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="start")


def _unknown_value(
    field: str, value: str | bool, known: Sequence[str], kind: FailureKind
) -> Failure:
    shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    message = f"{field}: the agent has no value {value!r}; it has: {shown}"
    return Failure(kind=kind, message=message, phase="start")
