"""The adapter of agents that speak ACP: what they can, and how it runs a session's prompts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter import Health, RunContext, derive_adapter
from sessionmgr.adapter.kit import (
    ConversationAdapter,
    ImageRefusedError,
    config_failure,
    missing_program_reason,
)
from sessionmgr.model import CAPABILITIES, Failure, FailureKind
from sessionmgr_adapters.acp import launch, sdk
from sessionmgr_adapters.acp.bundled_agents import BUNDLED, quirks_of
from sessionmgr_adapters.acp.driver import AcpDriver
from sessionmgr_adapters.acp.kept_sessions import KeptSessions
from sessionmgr_adapters.acp.options import AcpOptions
from sessionmgr_adapters.acp.quirks import UNKNOWN, AgentQuirks
from sessionmgr_adapters.acp.registry import AgentChoice, agent_ids, find_agent
from sessionmgr_adapters.acp.sdk import AcpConnection, AcpConversation, AcpSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sessionmgr.adapter import Capabilities, Options, PermissionMap, ProviderAdapter, RunSpec
    from sessionmgr.process import EnvironmentSpec
    from sessionmgr_adapters.acp.opening import AcpRunRequest

MAX_SESSIONS: Final = 16
"""Sessions that one process of an agent serves at once."""


class AcpAdapter(ConversationAdapter[AcpSpec, AcpConnection, AcpDriver]):
    """The adapter of agents over ACP; `AcpOptions` are its options."""

    name = "acp"
    display_name = "Agent over ACP"
    capabilities = UNKNOWN.capabilities
    permissions = UNKNOWN.permissions
    options: ClassVar[type[Options]] = AcpOptions
    serves = frozenset({"directories"})
    connect = staticmethod(sdk.connect_acp)
    max_leases = MAX_SESSIONS
    agent: ClassVar[AgentChoice | None] = None
    """The agent, of a provider that names one."""
    narrows: ClassVar[bool] = True
    """Whether what the agent says it lacks counts for later runs of the provider."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: Final[dict[str, AcpRunRequest]] = {}
        self._kept: Final = KeptSessions()
        self._busy: Final[set[str]] = set()
        """Sessions that runs are about to use, or use."""

    # --- what an agent can -----------------------------------------------------------------------

    @classmethod
    def variants(cls, agents: Path | None) -> Sequence[str]:
        """Return the ids of the known agents, and of those in the user's registry file."""
        return agent_ids(agents, BUNDLED)

    @classmethod
    def variant(cls, variant: str, agents: Path | None) -> type[ProviderAdapter]:
        """Return the adapter of one agent."""
        choice = find_agent(cls.name, variant, agents, BUNDLED)
        quirks = quirks_of(choice.id)
        title = quirks.title if quirks is not UNKNOWN else choice.entry and choice.entry.name
        return derive_adapter(
            cls,
            variant,
            agent=choice,
            display_name=title or choice.id,
            capabilities=quirks.capabilities,
            permissions=quirks.permissions,
            environment=launch.declared_variables(AcpOptions(), quirks, choice),
            resume_command=quirks.resume_command,
        )

    @classmethod
    def acp_options(cls, options: Options) -> AcpOptions:
        """Return a run's options; a subclass with options of its own converts them."""
        return AcpOptions.of(options)

    @classmethod
    def quirks(cls, options: Options) -> AgentQuirks:
        """Return what is known about the agent of a run with these options."""
        return quirks_of(cls.agent.id if cls.agent else cls.acp_options(options).agent)

    @classmethod
    def declares(cls, environ: Mapping[str, str], options: Options) -> EnvironmentSpec:
        """Return which variables of `environ` the agent receives."""
        return launch.declared_variables(cls.acp_options(options), cls.quirks(options), cls.agent)

    @classmethod
    def permission_map(cls, options: Options) -> PermissionMap:
        """Return the permission modes of a run with these options."""
        return launch.permission_map(cls.acp_options(options), cls.quirks(options))

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Return the capabilities of a run with these options."""
        if cls.agent is not None:
            return cls.capabilities
        most = {name: cls.capabilities.support(name) for name in CAPABILITIES}
        return cls.quirks(options).capabilities.narrowed(most)

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a run would be refused."""
        return cls._fault(spec)

    @classmethod
    def _fault(cls, run: RunContext | RunSpec) -> str | None:
        options = cls.acp_options(run.options)
        named, id_ = options.agent, cls.agent.id if cls.agent else None
        if named is not None and named not in (id_, *(() if id_ else BUNDLED)):
            remedy = f"known: {', '.join(BUNDLED)}" if id_ is None else f"{cls.name} runs {id_}"
            return f"options.agent: {named!r} is not possible; {remedy}"
        return launch.start_fault(run, options, cls.quirks(run.options))

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether the agent is installed; only itself knows whether it is logged in."""
        quirks = cls.quirks(options)
        program = launch.agent_program(cls.acp_options(options), quirks, cls.agent, env)
        if program.missing:
            return Health(state="skip", detail=program.missing)
        missing = missing_program_reason(program.argv, env, cwd, quirks.install)
        return missing or Health(detail=f"{program.argv[0]} is installed; its login is unknown")

    async def health(self) -> Health:
        """Report whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(self.options(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240

    # --- runs ------------------------------------------------------------------------------------

    async def run(self, run: RunContext) -> None:
        """Run a prompt and report its events and its end."""
        options = self.acp_options(run.options)
        quirks = self.quirks(run.options)
        program = launch.agent_program(options, quirks, self.agent, run.env)
        fault = self._fault(run) or program.missing
        if fault:
            await run.fail(config_failure(fault))
            return
        session = "" if options.fork else run.provider_session_id or ""
        if session and session in {*self._busy, *(each.session.id for each in self._runs.values())}:
            message = f"another run uses the session {session}"
            await run.fail(Failure(kind=FailureKind.SESSION_BUSY, message=message, phase="start"))
            return
        self._busy.add(session)  # there was no checkpoint since the check
        try:
            request = await launch.make_request(run, options, quirks, self.agent)
            request = replace(request, narrows=request.narrows and self.narrows)
            self._requests[run.run_id] = request
            await super().run(run)
        except ImageRefusedError as error:
            await run.fail(config_failure(str(error)))
        finally:
            self._busy.discard(session)
            self._requests.pop(run.run_id, None)

    def spec(self, run: RunContext) -> AcpSpec:
        """Return the process that a run needs."""
        request = self._requests[run.run_id]
        program = launch.agent_program(request.options, request.quirks, self.agent, run.env)
        return launch.make_spec(run, request.options, request.quirks, program)

    def make_driver(self, run: RunContext) -> AcpDriver:
        """Return the driver of a run."""
        return AcpDriver(run, self._requests[run.run_id], self._kept)

    async def open(
        self, run: RunContext, connection: AcpConnection, driver: AcpDriver
    ) -> AcpConversation:
        """Open a conversation; the driver opens the session, unless it is open already."""
        driver.use_connection(connection)
        return await connection.open(driver.session.id or None, driver)

    async def finish(self, run: RunContext, driver: AcpDriver) -> None:
        """Report how a run ended that was not cancelled."""
        await driver.finish_run()

    def lost_failure(self, driver: AcpDriver, connection: AcpConnection) -> Failure:
        """Return the failure of a run whose process exited before the turn ended."""
        failure = super().lost_failure(driver, connection)
        can_resume = driver.state.has_begun and driver.can_resume
        return replace(failure, retryable=driver.state.has_begun, resumable=can_resume)

    def is_fit(self, run: RunContext, driver: AcpDriver) -> bool:
        """Whether the process may serve another run: it was greeted, and the turn has ended."""
        return driver.is_idle

    def was_unreached(self, driver: AcpDriver) -> bool:
        """Whether the process has ended before the prompt was sent."""
        return not driver.has_started

    def release(self, provider_session_id: str) -> None:
        """Close a session that is kept open for its next run."""
        self._kept.release(provider_session_id)
