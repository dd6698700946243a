"""A provider's branch of the supervision tree: its adapter, its connections, its run tasks.

The adapter is an actor. The manager holds its `Ref` and sends it messages; the adapter launches a
task for each in its supervisor of run tasks. If the adapter dies, its connections and run tasks
restart with it (rest_for_one): its runs end as crashed, and no others. A start that the adapter had
not handled by then is not lost: the branch watches the supervisor of run tasks, which ends with the
adapter and before the adapter works again, and sends such starts again.

A branch that stops after repeated crashes is down. It starts again on demand after a back-off,
which doubles each time.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import trio
from msgspec.structs import replace

from sessionmgr.adapter import (
    AppendMessage,
    AskHealth,
    CapabilityMissing,
    ProviderAdapter,
    ReleaseSession,
    RunContext,
    StartRun,
    StopReason,
)
from sessionmgr.manager.errors import ProviderDown
from sessionmgr.manager.run_plan import negotiate_request
from sessionmgr.manager.status import ProviderStatus
from sessionmgr.model import UNSUPPORTED, EndCause
from sessionmgr.otp import (
    DynamicSupervisor,
    MailboxFull,
    OtpError,
    Supervisor,
    SupervisorNotRunning,
    TaskSupervisor,
    child,
)
from sessionmgr.process import build_environment, secret_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sessionmgr.adapter import Health, Options
    from sessionmgr.manager.run_state import DeliveryState, RunState
    from sessionmgr.model import Capabilities, Support
    from sessionmgr.otp import Actor, Ref
    from sessionmgr.process import Launcher

log: Final = logging.getLogger("sessionmgr.manager")

FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 300.0
SOON: Final = 0.02
"""Seconds between two checks of a restarting branch."""
LONGEST_WAIT: Final = 300.0
"""Maximum number of seconds that a run without a start clock waits for a branch's restart."""


class ProviderEnvironment(NamedTuple):
    """The environment of a provider's programs, and the secrets in it."""

    variables: dict[str, str]
    secrets: tuple[str, ...]


class ProviderBranch:
    """The branch of one provider, up or down."""

    def __init__(
        self,
        adapter: type[ProviderAdapter],
        launcher: Launcher,
        environ: Mapping[str, str],
        watch: Callable[[RunState], None],
    ) -> None:
        self.adapter_class: Final = adapter
        self.is_up = False
        self.capabilities = adapter.capabilities
        """The provider's capabilities, as far as they are known."""
        self._reported: dict[str, Support] = {}
        """The support that the provider has reported since the start of the branch."""
        self._launcher: Final = launcher
        self._environ: Final = environ
        self._watch: Final = watch
        """Starts the timeouts of a run that was sent to the adapter."""
        self._plain: tuple[Options, ProviderEnvironment] | None = None
        self._runs = TaskSupervisor(name="runs")
        self._connections = DynamicSupervisor(name="connections")
        self._actors: tuple[Ref[ProviderAdapter], Ref[Actor]] | None = None
        """The present adapter and its supervisor of run tasks, while both accept messages."""
        self._sent: Final[dict[RunState, None]] = {}
        """Runs whose start was sent to the adapter and whose tasks have not ended."""
        self._waiting: Final[dict[RunState, float]] = {}
        """Runs that wait for the restart of the branch, with the times at which they fail."""
        self._pause = 0.0
        self._down_until = 0.0
        self._why = ""

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.adapter_class.name

    def capabilities_for(self, options: Options) -> Capabilities:
        """Return the capabilities for a run with these options, as far as they are known."""
        offers = self.adapter_class.offers(options)
        if offers is self.adapter_class.capabilities:
            return self.capabilities
        return offers.narrowed(self._reported)

    def environment(self, job: Mapping[str, str], options: Options) -> ProviderEnvironment:
        """Build the environment of the provider's programs for a run with these options.

        Raises:
            EnvironmentVariableInvalid: The job sets a variable that must not be passed on.
        """
        if job:
            return self._build_environment(job, options)
        if self._plain is None or self._plain[0] != options:
            self._plain = options, self._build_environment(job, options)
        return self._plain[1]

    def _build_environment(self, job: Mapping[str, str], options: Options) -> ProviderEnvironment:
        declared = self.adapter_class.declares({**self._environ, **job}, options)
        env = build_environment(self._environ, declared, job)
        return ProviderEnvironment(env, secret_values(env, declared))

    # --- up and down -----------------------------------------------------------------------------

    def require_up(self) -> None:
        """Check that the branch is up, or may be started again.

        Raises:
            ProviderDown: It is down, and its back-off is not over.
        """
        left = self._down_until - trio.current_time()
        if not self.is_up and left > 0:
            raise ProviderDown(self.name, self._why, left)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run the branch until it is stopped or has crashed too often."""
        self._runs = TaskSupervisor(name="runs")
        self._connections = DynamicSupervisor(name="connections")
        adapter = replace(child(self.adapter_class, id="adapter"), target=self._make_adapter)
        branch = Supervisor(
            adapter, self._connections, self._runs, strategy="rest_for_one", name=self.name
        )
        try:
            async with branch:
                self._connect(branch)
                self.is_up = True
                task_status.started()
                await self._resend_starts(branch)
        except OtpError as error:
            self.mark_down(str(error))
            raise
        finally:
            self.is_up = False
            self._disconnect()
            for entry in list(self._waiting):
                self._refuse(entry)
            # The next incarnation may be another version of the provider.
            self._reported.clear()
            self.capabilities = self.adapter_class.capabilities

    def _make_adapter(self) -> ProviderAdapter:
        """Make an incarnation of the adapter, with its connections and its run tasks."""
        adapter = self.adapter_class()
        adapter.connections, adapter.run_tasks = self._connections, self._runs
        return adapter

    async def _resend_starts(self, branch: Supervisor) -> None:
        """Send starts that the adapter had not handled when it ended to the next incarnation."""
        while True:
            assert self._actors is not None
            _, run_tasks = self._actors
            await run_tasks.wait()  # they end with the adapter, with the connections, or alone
            self._disconnect()
            while not all(row.state == "running" for row in branch.which_children()):
                self._refuse_expired()
                await trio.sleep(SOON)
            self._connect(branch)

    def _connect(self, branch: Supervisor) -> None:
        self._actors = branch.ref("adapter", ProviderAdapter), branch.ref("runs")
        waiting = list(self._waiting)
        self._waiting.clear()
        for entry in waiting:
            self.launch(entry)

    def _disconnect(self) -> None:
        """Take back the starts that the adapter has not handled."""
        self._actors = None
        for entry in [entry for entry in self._sent if entry.can_start]:
            del self._sent[entry]
            self._postpone(entry)

    def _postpone(self, entry: RunState) -> None:
        """Let a run wait for the restart of the branch."""
        entry.start_postponed(partial(self._recall, entry))
        limit = entry.plan.clocks.of("start") or LONGEST_WAIT
        self._waiting[entry] = trio.current_time() + limit

    def _refuse_expired(self) -> None:
        """Fail the runs that have waited for too long."""
        now = trio.current_time()
        for entry in [entry for entry, until in self._waiting.items() if now >= until]:
            self._refuse(entry, f"{self.name} was not restarted in time")

    def _recall(self, entry: RunState) -> None:
        """Take back the start of a run that has ended."""
        self._sent.pop(entry, None)
        self._waiting.pop(entry, None)

    def _refuse(self, entry: RunState, why: str | None = None) -> None:
        entry.start_failed(why or self.down_reason)

    def mark_down(self, why: str) -> None:
        """Note that the branch is down, and compute its back-off."""
        self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._down_until = trio.current_time() + self._pause
        self._why = why
        log.error(
            "A provider is down. provider=%s retry_in=%g error=%s", self.name, self._pause, why
        )

    def status(self, *, running: int, queued: int) -> ProviderStatus:
        """Return the status of the branch, with the given numbers of runs."""
        left = max(0.0, self._down_until - trio.current_time())
        state: Literal["up", "down", "idle"] = "up" if self.is_up else "down" if left else "idle"
        return ProviderStatus(
            state=state,
            running=running,
            queued=queued,
            retry_in=left if state == "down" else None,
            why=None if state == "up" else self._why or None,
        )

    @property
    def down_reason(self) -> str:
        """The reason why a run could not be started."""
        return f"{self.name} is down: {self._why or 'it was stopped'}"

    # --- messages to the adapter -----------------------------------------------------------------

    def launch(self, entry: RunState) -> None:
        """Send a run's start to the adapter; if that fails, the run fails.

        A run waits for a restarting branch.
        """
        if not (self.is_up and entry.can_start):
            self._refuse(entry)
        elif self._actors is None or not all(ref.alive for ref in self._actors):
            self._postpone(entry)
        else:
            self._send(entry, self._actors[0])

    def _send(self, entry: RunState, adapter: Ref[ProviderAdapter]) -> None:
        entry.resume_session()
        run = RunContext(
            entry,
            entry.spec,
            self._launcher,
            self._connections,
            partial(self._narrow, entry),
        )
        try:
            adapter.cast(StartRun(entry, run, partial(self._task_gone, entry)))
        except MailboxFull as error:
            self._refuse(entry, f"{self.name} does not handle its messages: {error}")
            return
        self._sent[entry] = None
        is_first = entry.start_sent(run, partial(self._recall, entry))
        if is_first:  # else its timeouts have started
            self._watch(entry)

    def _task_gone(self, entry: RunState) -> None:
        """Note the end of a run's task; a task that was stopped before it began cannot."""
        del self._sent[entry]
        entry.start_failed(self.down_reason)

    def _narrow(self, entry: RunState, live: Mapping[str, Support]) -> None:
        """Note the capabilities that the provider has reported to a run."""
        self._reported.update(live)
        self.capabilities = self.adapter_class.capabilities.narrowed(self._reported)
        model = entry.plan.wish.model or entry.session_state.session.model
        negotiation = negotiate_request(
            self.capabilities_for(entry.spec.options), entry.plan.wish, model
        )
        if negotiation == entry.negotiation:
            return
        entry.session_state.commands.narrow_negotiation(entry, negotiation)
        if negotiation.missing:
            detail = str(CapabilityMissing(self.name, negotiation))
            entry.end(StopReason(cause=EndCause.CAPABILITY, detail=detail))

    def can_append(self) -> bool:
        """Return whether a message can be given to a running turn, as far as is known."""
        is_unsupported = self._reported.get("steer") is UNSUPPORTED
        return self.adapter_class.can_append() and not is_unsupported

    async def deliver_message(
        self, entry: RunState, content: str, message_id: str, tell: Callable[[DeliveryState], None]
    ) -> None:
        """Give a message to the running turn, and report its delivery state."""
        run = entry.context
        if run is None or self._actors is None or not self.can_append():
            tell("dropped")
            return
        limit = entry.plan.clocks.of("close") or 5.0
        message = AppendMessage(
            run, content, message_id, limit, lambda taken: tell("sent" if taken else "dropped")
        )
        try:
            await self._actors[0].call(message, timeout=limit)
        except Exception:  # the provider may have received it
            log.exception("Giving a message to the running turn failed. run=%s", entry.id)
            tell("unknown")

    def release(self, provider_session_id: str) -> None:
        """Release the adapter's idle resources of a provider session."""
        if self._actors is None:
            return  # its connections are gone
        try:
            self._actors[0].cast(ReleaseSession(provider_session_id))
        except MailboxFull:  # the resources end with the branch, or when they are idle for too long
            log.warning("A release of idle resources was dropped. provider=%s", self.name)

    async def ask_health(self, limit: float) -> Health:
        """Return whether the adapter could start a run now.

        Raises:
            CallTimeout: The adapter did not answer within `limit` seconds.
            OtpError: The adapter is not running, or ended before it answered.
        """
        if self._actors is None:
            raise SupervisorNotRunning(self.name)
        return await self._actors[0].call(AskHealth(limit), timeout=limit)
