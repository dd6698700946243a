"""Base class of adapters: the supervised actor that executes runs on one provider.

The manager sends it messages. Its handlers do no I/O and never wait: each starts a task under the
adapter's supervisor of run tasks, so that nothing delays the start of a run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import trio

from sessionmgr.adapter.errors import VariantUnknown
from sessionmgr.adapter.health import Health
from sessionmgr.adapter.options import Options
from sessionmgr.adapter.permission_map import HARMLESS, PermissionMap
from sessionmgr.adapter.run_context import RunContext
from sessionmgr.model import Capabilities
from sessionmgr.otp import NOREPLY, Actor, Call, Cast, OtpError, SupervisorStopping, TaskHandle
from sessionmgr.process import EnvironmentSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from pathlib import Path

    from sessionmgr.adapter.run_context import RunSpec
    from sessionmgr.otp import Caller, Continue, DynamicSupervisor, TaskSupervisor

log: Final = logging.getLogger("sessionmgr.adapter")


class RunTask(Protocol):
    """Task of one run: the adapter starts it, and its interruption, under its task supervisor."""

    context: RunContext | None
    """The context of the run, for the adapter that received its start."""

    async def run_adapter(
        self, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
    ) -> None:
        """Execute the run: call the adapter's `run`."""

    def task_launched(self, task: TaskHandle[None]) -> None:
        """Store the task that the adapter has started for the run."""

    def interrupt(self) -> None:
        """Start a task that asks the provider to end the run, if the run is still active."""


class StartRun(Cast):
    """Message that starts a run's task, unless the manager has withdrawn the start."""

    task: RunTask
    run: RunContext
    gone: Callable[[], None]
    """Called when the task has ended, also if it was stopped before it began."""


class InterruptRun(Cast):
    """Message that asks the provider to end a run."""

    task: RunTask


class AppendMessage(Call[None]):
    """Message that adds a follow-up to the current turn of a run."""

    run: RunContext
    content: str
    message_id: str
    limit: float
    """Time limit in seconds."""
    tell: Callable[[bool], None]
    """Called with the provider's answer at once, before the effects of the follow-up are
    reported.
    """


class ReleaseSession(Cast):
    """Message that releases the resources kept for a provider session's next run."""

    provider_session_id: str


class AskHealth(Call[Health]):
    """Message that asks whether a run could be started now."""

    limit: float
    """Time limit in seconds."""


class ProviderAdapter(Actor):
    """Base class of adapters: executes runs on one provider.

    Only `name`, `capabilities` and `run` are required. The base class owns the run tasks and
    handles their ends, timeouts and crashes; the manager stores their events. An adapter that
    handles messages of its own passes all others to `super()`.
    """

    mailbox: ClassVar[int] = 65_536
    """Maximum number of waiting messages: each session sends one when its run starts."""
    connections: DynamicSupervisor
    """The supervisor of its connections, set before `init`."""
    run_tasks: TaskSupervisor
    """The supervisor of its run tasks, set before `init`."""

    name: ClassVar[str]
    """The name of the provider, as users write it."""
    display_name: ClassVar[str | None] = None
    capabilities: ClassVar[Capabilities] = Capabilities()
    runs_commands: ClassVar[bool] = False
    """Whether a prompt is a complete command, executed without an agent's judgement."""
    permissions: ClassVar[PermissionMap] = HARMLESS
    options: ClassVar[type[Options]] = Options
    serves: ClassVar[frozenset[str]] = frozenset()
    """Which of `tools_allowed`, `tools_denied`, `directories` it supports; others are refused."""
    resume_command: ClassVar[str | None] = None
    """The shell command with which its program resumes a session; `{id}` is the session's id."""
    environment: ClassVar[EnvironmentSpec] = EnvironmentSpec()
    """The manager's environment variables that the provider's programs receive."""

    async def run(self, run: RunContext) -> None:
        """Execute one run: report its events and its end.

        It may be cancelled at any checkpoint, after `interrupt` has had its grace. An exception
        fails this run alone.

        Args:
            run: The context of the run: its prompt and options, and the calls that report events.
        """
        raise NotImplementedError

    async def interrupt(self, run: RunContext) -> None:
        """Ask the provider to end the run. `run` continues meanwhile, and reads the answer.

        Args:
            run: The context of the run.
        """
        raise NotImplementedError

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Send a message to the current turn; return False if no turn can accept it.

        Args:
            run: The context of the run.
            content: The message.
            message_id: The id of the message in the record.
        """
        raise NotImplementedError

    def release(self, provider_session_id: str) -> None:
        """Release the resources kept for a provider session's next run, as none is expected soon.

        It does not wait. A later run starts what it needs.

        Args:
            provider_session_id: The provider's id of its session.
        """
        return

    async def health(self) -> Health:
        """Return whether a run could be started now."""
        return Health()

    async def handle_cast(self, message: Cast, /) -> Continue | None:
        """Start a run's task or its interruption, or release a session.

        Args:
            message: The message.
        """
        match message:
            case StartRun(task=task, run=run, gone=gone):
                if task.context is run:  # otherwise the branch has sent it to a new adapter
                    self._start(task, run, gone)
            case InterruptRun(task=task):
                task.interrupt()
            case ReleaseSession(provider_session_id=provider_session_id):
                try:
                    self.release(provider_session_id)
                except Exception:
                    # The resources of the session end with the branch, or at their idle timeout.
                    log.exception("The release of a session failed. provider=%s", self.name)
            case _:
                return await super().handle_cast(message)
        return None

    async def handle_call(self, message: object, caller: Caller, /) -> object:
        """Start a task that answers the message.

        Args:
            message: The message.
            caller: The caller, which waits for the answer.
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
        handle = TaskHandle(task.run_adapter, (self, run, self.run_tasks), None, gone)
        try:
            self.run_tasks.start_handle(handle)
        except OtpError:  # it is restarting, and the branch will send the start again
            return
        task.task_launched(handle)

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
        """Return whether a run with these options could start: program installed and logged in.

        It reads only files and `env`, the environment of its programs, and starts nothing. The
        default assumes no program and returns `ok`; see `program_health` of the kit.

        Args:
            options: The options of the run.
            env: The environment of the provider's programs.
            cwd: The directory of the run.
        """
        return Health()

    @classmethod
    def declares(cls, environ: Mapping[str, str], options: Options) -> EnvironmentSpec:
        """Return which variables of `environ` the provider's programs receive.

        Args:
            environ: The variables of the manager and of the run.
            options: The options of the run.
        """
        return cls.environment

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a run can never succeed, as `field: reason`; None if no reason is known.

        It is checked before anything is started. A run still checks for itself.

        Args:
            spec: The specification of the run.
        """
        return None

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Return the capabilities for a run with these options: never more than `capabilities`.

        Args:
            options: The options of the run.
        """
        return cls.capabilities

    @classmethod
    def permission_map(cls, options: Options) -> PermissionMap:
        """Return the permission modes of a run with these options.

        Args:
            options: The options of the run.
        """
        return cls.permissions

    @classmethod
    def variants(cls, agents: Path | None) -> Sequence[str]:
        """Return the ids of the variants: what may follow the provider's name and a colon.

        Args:
            agents: The user's registry file of agents, if there is one.

        Raises:
            AgentsFileInvalid: The file is missing or invalid.
        """
        return ()

    @classmethod
    def variant(cls, variant: str, agents: Path | None) -> type[ProviderAdapter]:
        """Return the adapter class of a variant; see `derive_adapter`.

        Args:
            variant: What follows the colon in the provider's name: `ID` or `ID@VERSION`.
            agents: The user's registry file of agents, if there is one.

        Raises:
            VariantUnknown: There is no such variant.
            AgentsFileInvalid: The file is missing or invalid.
        """
        raise VariantUnknown(cls.name, variant, f"{cls.name} has no variants; use {cls.name!r}")

    @classmethod
    def can_interrupt(cls) -> bool:
        """Whether it can ask the provider to end a run."""
        return cls.interrupt is not ProviderAdapter.interrupt

    @classmethod
    def can_append(cls) -> bool:
        """Whether it can send a message to the current turn."""
        return cls.append is not ProviderAdapter.append


async def _answer_within(
    caller: Caller, limit: float, ask: Callable[[], Awaitable[object]]
) -> None:
    """Answer a call with what `ask` returns or raises, within `limit` seconds."""
    try:
        with trio.fail_after(limit):
            answer = await ask()
    except Exception as error:  # an exception for the caller, as from a function  # noqa: BLE001
        caller.fail(error)
    except BaseException:  # the nursery is being cancelled
        caller.fail(SupervisorStopping("the adapter"))
        raise
    else:
        caller.reply(answer)
