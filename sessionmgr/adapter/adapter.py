"""An adapter: the supervised actor that plays runs on one provider.

The manager sends it messages. Its handlers do no I/O and never wait: each starts a task in the
adapter's nursery of run tasks, so that nothing delays the start of a run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import trio

from sessionmgr.adapter.health import Health
from sessionmgr.adapter.options import Options
from sessionmgr.adapter.permission_map import HARMLESS, PermissionMap
from sessionmgr.adapter.run_context import RunContext
from sessionmgr.model import Capabilities
from sessionmgr.otp import NOREPLY, Actor, Call, Cast, OtpError, SupervisorStopping, TaskHandle
from sessionmgr.process import EnvironmentSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from sessionmgr.adapter.run_context import RunSpec
    from sessionmgr.otp import Caller, Continue, DynamicSupervisor, TaskSupervisor

log: Final = logging.getLogger("sessionmgr.adapter")


class RunTask(Protocol):
    """A run's task: the adapter starts it, and its interruption, in the nursery of run tasks."""

    context: RunContext | None
    """The run as the adapter to which its start was sent sees it."""

    async def run_adapter(
        self, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
    ) -> None:
        """Be the task: call the adapter's `run`."""

    def task_launched(self, task: TaskHandle[None]) -> None:
        """Note that the adapter has started it."""

    def interrupt(self) -> None:
        """Start a task that asks the provider to end the run, if the run is still on."""


class StartRun(Cast):
    """Start a run's task, unless the manager has taken this start back."""

    task: RunTask
    run: RunContext
    gone: Callable[[], None]
    """Called when the task has ended, also if it was stopped before it began."""


class InterruptRun(Cast):
    """Ask the provider to end a run."""

    task: RunTask


class AppendMessage(Call[None]):
    """Give a message to the turn that runs."""

    run: RunContext
    content: str
    message_id: str
    limit: float
    """How many seconds it may take."""
    tell: Callable[[bool], None]
    """Called at once with the provider's answer: what it does with the message comes after it."""


class ReleaseSession(Cast):
    """Release what is kept for a provider session's next run."""

    provider_session_id: str


class AskHealth(Call[Health]):
    """Check whether a run could be started now."""

    limit: float
    """How many seconds it may take."""


class ProviderAdapter(Actor):
    """Plays runs on one provider.

    Only `name`, `capabilities` and `run` are needed. The nursery of run tasks, their ends, timeouts
    and crashes, and the way of their events into the record are the port's work. An adapter that
    handles messages of its own passes all others on to `super()`.
    """

    mailbox: ClassVar[int] = 65_536
    """Maximum number of waiting messages: each session sends one when its run starts."""
    connections: DynamicSupervisor
    """The supervisor of its connections; there from `init` on, as is"""
    run_tasks: TaskSupervisor
    """its nursery of run tasks."""

    name: ClassVar[str]
    """What users call the provider."""
    display_name: ClassVar[str | None] = None
    capabilities: ClassVar[Capabilities] = Capabilities()
    runs_commands: ClassVar[bool] = False
    """Whether a prompt is a command as a whole, which runs without an agent's judgement."""
    permissions: ClassVar[PermissionMap] = HARMLESS
    options: ClassVar[type[Options]] = Options
    serves: ClassVar[frozenset[str]] = frozenset()
    """Which of `tools_allowed`, `tools_denied`, `directories` it passes on; others are refused."""
    resume_command: ClassVar[str | None] = None
    """The command line with which its program continues a session; `{id}` is the session's id."""
    environment: ClassVar[EnvironmentSpec] = EnvironmentSpec()
    """Which variables of ours the provider's programs are to have."""

    async def run(self, run: RunContext) -> None:
        """Play one run: tell what happens, and how it ends.

        It may be cancelled anywhere, after `interrupt` has had its time. To raise is to crash this
        run alone.

        Args:
            run: The context of the run: its prompt and options, and the calls that report events.
        """
        raise NotImplementedError

    async def interrupt(self, run: RunContext) -> None:
        """Ask the provider to end the run; `run` goes on beside it, and reads what it says.

        Args:
            run: The context of the run.
        """
        raise NotImplementedError

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Give a message to the turn that runs; False if there is no turn for it any more.

        Args:
            run: The context of the run.
            content: The message.
            message_id: The id of the message in the record.
        """
        raise NotImplementedError

    def release(self, provider_session_id: str) -> None:
        """Release what is kept for a provider session's next run: none is expected soon.

        It does not wait. A later run starts what it needs.

        Args:
            provider_session_id: The provider's id of its session.
        """
        return

    async def health(self) -> Health:
        """Say whether a run could be started now."""
        return Health()

    async def handle_cast(self, message: Cast, /) -> Continue | None:
        """Start a run's task or its interruption, or release a session.

        Args:
            message: The message.
        """
        match message:
            case StartRun(task=task, run=run, gone=gone):
                if task.context is run:  # else the branch has sent it anew
                    self._start(task, run, gone)
            case InterruptRun(task=task):
                task.interrupt()
            case ReleaseSession(provider_session_id=provider_session_id):
                try:
                    self.release(provider_session_id)
                except Exception:  # what it keeps ends with the branch, or when idle for too long
                    log.exception("event=release_crashed provider=%s", self.name)
            case _:
                return await super().handle_cast(message)
        return None

    async def handle_call(self, message: object, caller: Caller, /) -> object:
        """Start a task that answers.

        Args:
            message: The message.
            caller: The caller, who waits for the answer.
        """
        match message:
            case AppendMessage(limit=limit):
                self._answer_call(caller, limit, partial(self._append, message))
            case AskHealth(limit=limit):
                self._answer_call(caller, limit, self.health)
            case _:
                return await super().handle_call(message, caller)
        return NOREPLY

    def _start(self, task: RunTask, run: RunContext, gone: Callable[[], None]) -> None:
        played = TaskHandle(task.run_adapter, (self, run, self.run_tasks), None, gone)
        try:
            self.run_tasks.start_handle(played)
        except OtpError:  # it is being restarted, and the branch sends the start again
            return
        task.task_launched(played)

    async def _append(self, message: AppendMessage) -> None:
        message.tell(await self.append(message.run, message.content, message.message_id))

    def _answer_call(
        self, caller: Caller, limit: float, ask: Callable[[], Awaitable[object]]
    ) -> None:
        try:
            self.run_tasks.start_handle(TaskHandle(_answer_within, (caller, limit, ask), None))
        except OtpError as error:
            caller.fail(error)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Check whether a run with these options could start: program installed and logged in.

        It reads only files and `env`, the environment of its programs, and starts nothing. By
        itself it knows of no program and says `ok`; see `program_health` of the kit.

        Args:
            options: The options of the run.
            env: The environment of the provider's programs.
            cwd: The directory of the run.
        """
        return Health()

    @classmethod
    def declares(cls, environ: Mapping[str, str]) -> EnvironmentSpec:
        """Say which variables of ours its programs are to have, where ours are `environ`.

        Args:
            environ: The variables of the manager.
        """
        return cls.environment

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Say what could never go well, where that is known before anything is started.

        As `field: why`; a run finds out for itself as well.

        Args:
            spec: The specification of the run.
        """
        return None

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Say what it can do for a run with these options: never more than its `capabilities`.

        Args:
            options: The options of the run.
        """
        return cls.capabilities

    @classmethod
    def can_interrupt(cls) -> bool:
        """Whether it has a polite way to end a run."""
        return cls.interrupt is not ProviderAdapter.interrupt

    @classmethod
    def can_append(cls) -> bool:
        """Whether it can give a message to a turn that runs."""
        return cls.append is not ProviderAdapter.append


async def _answer_within(
    caller: Caller, limit: float, ask: Callable[[], Awaitable[object]]
) -> None:
    """Answer a call with what `ask` returns or raises, within `limit` seconds."""
    try:
        with trio.fail_after(limit):
            answer = await ask()
    except Exception as error:  # the caller's, like an exception of a function  # noqa: BLE001
        caller.fail(error)
    except BaseException:  # the nursery stops
        caller.fail(SupervisorStopping("the adapter"))
        raise
    else:
        caller.reply(answer)
