"""One provider's branch of the tree: its adapter, its connections, the nursery of its runs.

If the adapter dies, what depends on it is stopped and started with it (rest_for_one): its runs end,
as crashed, and nobody else's. A branch that gives up is down: it is started again when somebody
wants it and some time has passed, longer each time.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
import trio

from sessionmgr.adapter.adapter import ProviderAdapter
from sessionmgr.adapter.run_context import RunContext
from sessionmgr.adapter.run_control import Stop
from sessionmgr.errors import CapabilityMissing, OtpError, ProviderDown, SupervisorNotRunning
from sessionmgr.manager.news import Narrowed, NotLaunched
from sessionmgr.manager.plan import negotiate_wish
from sessionmgr.manager.run_state import Step
from sessionmgr.manager.status import ProviderStatus
from sessionmgr.model import UNSUPPORTED, Cause
from sessionmgr.otp import DynamicSupervisor, Run, Supervisor, TaskSupervisor, child
from sessionmgr.process.environment import build_environment, secrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from sessionmgr.adapter.health import Health
    from sessionmgr.adapter.options import Options
    from sessionmgr.manager.entry import RunEntry
    from sessionmgr.manager.news import Fate
    from sessionmgr.model import Capabilities, Support
    from sessionmgr.otp import Continue, Run
    from sessionmgr.process.launcher import Launcher

log: Final = logging.getLogger("sessionmgr.manager")

FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 300.0
SOON: Final = 0.02
"""Seconds between two attempts to start a run in a branch that is being started again."""


class Environment(NamedTuple):
    """What a child finds, and which of it must not be stored or shown."""

    variables: dict[str, str]
    secrets: tuple[str, ...]


class ProviderTree:
    """A provider, up or down."""

    def __init__(
        self,
        adapter: type[ProviderAdapter],
        launcher: Launcher,
        environ: Mapping[str, str],
        keep_blob: Callable[[bytes], Awaitable[str]],
    ) -> None:
        self.adapter_class: Final = adapter
        self.adapter: ProviderAdapter | None = None
        """The adapter's present incarnation."""
        self.is_up = False
        self.capabilities = adapter.capabilities
        """What it can do, as far as is known."""
        self._told: dict[str, Support] = {}
        """What the provider itself has said of that, since the branch was started."""
        self._launcher: Final = launcher
        self._keep_blob: Final = keep_blob
        self._environ: Final = environ
        self._plain: Environment | None = None
        self._runs = TaskSupervisor(name="runs")
        self._connections = DynamicSupervisor(name="connections")
        self._contexts: Final[dict[RunEntry, RunContext]] = {}
        self._pause = 0.0
        self._down_until = 0.0
        self._why = ""

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.adapter_class.name

    def offered(self, options: Options) -> Capabilities:
        """Return what it can do for a run with these options, as far as is known."""
        offers = self.adapter_class.offers(options)
        if offers is self.adapter_class.capabilities:
            return self.capabilities
        return offers.narrowed(self._told)

    def environment(self, job: Mapping[str, str]) -> Environment:
        """Build what its programs find in their environment.

        Raises:
            VariableRefused: The job sets what must not pass.
        """
        if job:
            return self._build(job)
        if self._plain is None:
            self._plain = self._build(job)
        return self._plain

    def _build(self, job: Mapping[str, str]) -> Environment:
        declared = self.adapter_class.declares({**self._environ, **job})
        env = build_environment(self._environ, declared, job)
        return Environment(env, secrets(env, declared))

    def require_up(self) -> None:
        """Make sure that it is up, or may be tried again.

        Raises:
            ProviderDown: It gave up, not long ago.
        """
        left = self._down_until - trio.current_time()
        if not self.is_up and left > 0:
            raise ProviderDown(self.name, self._why, left)

    async def live(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be the branch, until it is stopped or gives up."""
        self._runs = TaskSupervisor(name="runs")
        self._connections = DynamicSupervisor(name="connections")
        branch = Supervisor(
            child(_seated(self), id="adapter"),
            self._connections,
            self._runs,
            strategy="rest_for_one",
            name=self.name,
        )
        try:
            async with branch:
                self.is_up = True
                task_status.started()
                await trio.sleep_forever()
        except OtpError as error:
            self.go_down(str(error))
            raise
        finally:
            self.is_up = False
            # Whoever comes up next may be another version.
            self._told.clear()
            self.capabilities = self.adapter_class.capabilities

    def go_down(self, why: str) -> None:
        """Note that it gave up, and for how long it is left alone."""
        self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._down_until = trio.current_time() + self._pause
        self._why = why
        log.error("event=provider_down provider=%s retry_in=%g why=%s", self.name, self._pause, why)

    async def launch(self, entry: RunEntry) -> bool:
        """Start a run's task; False if it is not there to do so, or the run is to end.

        While the branch is being started again it is waited for.
        """
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(entry.clocks.of("start") or LONGEST_PAUSE):  # noqa: ASYNC912
            while self.is_up and entry.course.stop is None:
                if self.launch_now(entry):
                    return True
                await trio.sleep(SOON)
        return False

    async def ask_health(self) -> Run[Health]:
        """Start asking the adapter whether a run could be started now.

        Raises:
            OtpError: It is not there to be asked.
        """
        if self.adapter is None:
            raise SupervisorNotRunning(self.name)
        return await self._runs.async_nolink(self.adapter.health)

    def status(self, *, running: int, queued: int) -> ProviderStatus:
        """Say how it stands, with so many runs."""
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
    def why_down(self) -> str:
        """Say why a run could not be started."""
        return f"{self.name} is down: {self._why or 'it was stopped'}"

    def launch_now(self, entry: RunEntry) -> bool:
        """Start a run's task; False if it is to end, or the adapter is not there just now."""
        if self.adapter is None or not self.is_up or entry.course.stop is not None:
            return False
        live = entry.live
        if entry.spec.provider_session_id is None:
            entry.spec = msgspec.structs.replace(
                entry.spec, provider_session_id=live.provider_session_id
            )
        context = self._contexts[entry] = RunContext(
            entry.course,
            entry.spec,
            self._launcher,
            self._connections,
            partial(self._narrow, entry),
            self._keep_blob,
            lambda text: live.redactor.text.redact(text),  # more secrets may become known
        )
        try:
            arguments = (self.adapter, context, self._runs)
            gone = partial(self._gone, entry)
            self._runs.launch(Run(entry.course.play, arguments, None, gone))
        except OtpError:
            del self._contexts[entry]
            return False
        entry.course.dispatched_at = entry.course.last_sign = trio.current_time()
        entry.move(Step.START)
        return True

    def _narrow(self, entry: RunEntry, live: Mapping[str, Support]) -> None:
        """Heed what the provider has said of itself, to the adapter that plays a run."""
        self._told.update(live)
        self.capabilities = self.adapter_class.capabilities.narrowed(self._told)
        model = entry.wish.model or entry.live.session.model
        negotiation = negotiate_wish(self.offered(entry.spec.options), entry.wish, model)
        if negotiation == entry.negotiation:
            return
        entry.live.intake.put(Narrowed(entry, negotiation))
        if negotiation.missing:
            detail = str(CapabilityMissing(self.name, negotiation))
            entry.course.end(Stop(cause=Cause.CAPABILITY, detail=detail))

    def can_append(self) -> bool:
        """Say whether a message can be given to a turn that runs, as far as is known."""
        told = self._told.get("steer") is UNSUPPORTED
        return self.adapter_class.can_append() and not told

    def _gone(self, entry: RunEntry) -> None:
        """Hear that a run's task is over; one that was ended before it began could not say so."""
        del self._contexts[entry]
        if not entry.course.over.is_set():
            entry.course.end_task()
            entry.live.intake.put(NotLaunched(entry, self.why_down))

    def release(self, provider_session_id: str) -> None:
        """Have the adapter release what it keeps for a provider session's next run."""
        if self.adapter is None or not self.is_up:
            return  # its connections are gone
        try:
            self.adapter.release(provider_session_id)
        except Exception:  # the rest ends with the branch, or when idle for too long
            log.exception("event=release_crashed provider=%s", self.name)

    async def steer(self, entry: RunEntry, content: str, message_id: str) -> Fate:
        """Give a message to the turn that runs, and say what became of it."""
        context = self._contexts.get(entry)
        if context is None or self.adapter is None or not self.can_append():
            return "dropped"
        try:
            with trio.fail_after(entry.clocks.of("close") or 5.0):
                taken = await self.adapter.append(context, content, message_id)
                return "sent" if taken else "dropped"
        except Exception:  # it may have been taken all the same
            log.exception("event=append_crashed run=%s", entry.id)
            return "unknown"


def _seated(tree: ProviderTree) -> type[ProviderAdapter]:
    """Make the adapter's class known to its branch whenever it is started."""

    async def init(self: ProviderAdapter) -> Continue | None:
        tree.adapter = self
        return await tree.adapter_class.init(self)

    made = type(tree.adapter_class.__name__, (tree.adapter_class,), {"init": init})
    assert issubclass(made, ProviderAdapter)
    return made
