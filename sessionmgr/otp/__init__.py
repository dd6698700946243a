"""OTP on trio: actors, supervisors, registries and tasks, built on structured concurrency.

A supervisor runs its children in a nursery. Each child is a task behind a boundary that turns its
crash into data; a restart policy decides what follows; a supervisor that gives up raises an
ordinary exception from its block. This package knows nothing about agents.
"""

from sessionmgr.otp.actor import Actor as Actor
from sessionmgr.otp.child_builder import child as child
from sessionmgr.otp.child_rows import ChildCounts as ChildCounts, ChildRow as ChildRow
from sessionmgr.otp.child_spec import Backoff as Backoff, ChildSpec as ChildSpec
from sessionmgr.otp.dynamic_supervisor import DynamicSupervisor as DynamicSupervisor
from sessionmgr.otp.errors import (
    ActorDown as ActorDown,
    AlreadyRegistered as AlreadyRegistered,
    AlreadyReplied as AlreadyReplied,
    CallCycle as CallCycle,
    CallTimeout as CallTimeout,
    ChildRunning as ChildRunning,
    DuplicateChild as DuplicateChild,
    MailboxFull as MailboxFull,
    MaxChildren as MaxChildren,
    NotAnActor as NotAnActor,
    NotInActor as NotInActor,
    OtpError as OtpError,
    RestartIntensityExceeded as RestartIntensityExceeded,
    StartFailed as StartFailed,
    SupervisorNotRunning as SupervisorNotRunning,
    SupervisorStopping as SupervisorStopping,
    TaskCancelled as TaskCancelled,
    TaskCrashed as TaskCrashed,
    UnknownChild as UnknownChild,
)
from sessionmgr.otp.exit_reason import (
    Crashed as Crashed,
    ExitReason as ExitReason,
    Killed as Killed,
    NoProc as NoProc,
    Normal as Normal,
    Shutdown as Shutdown,
)
from sessionmgr.otp.message import (
    NOREPLY as NOREPLY,
    Call as Call,
    Cast as Cast,
    Continue as Continue,
    Stop as Stop,
)
from sessionmgr.otp.ref import (
    Caller as Caller,
    Down as Down,
    Exit as Exit,
    Monitor as Monitor,
    Ref as Ref,
)
from sessionmgr.otp.registry import (
    DispatchResult as DispatchResult,
    Registry as Registry,
    RegistryEntry as RegistryEntry,
    Via as Via,
)
from sessionmgr.otp.statistics import (
    ActorStatistics as ActorStatistics,
    RegistryStatistics as RegistryStatistics,
    SupervisorStatistics as SupervisorStatistics,
)
from sessionmgr.otp.stream import Stream as Stream
from sessionmgr.otp.supervisor import Supervisor as Supervisor
from sessionmgr.otp.task_handle import TaskDone as TaskDone, TaskHandle as TaskHandle
from sessionmgr.otp.task_supervisor import TaskSupervisor as TaskSupervisor
from sessionmgr.otp.watchdog import watchdog as watchdog

__all__ = [
    "NOREPLY",
    "Actor",
    "ActorDown",
    "ActorStatistics",
    "AlreadyRegistered",
    "AlreadyReplied",
    "Backoff",
    "Call",
    "CallCycle",
    "CallTimeout",
    "Caller",
    "Cast",
    "ChildCounts",
    "ChildRow",
    "ChildRunning",
    "ChildSpec",
    "Continue",
    "Crashed",
    "DispatchResult",
    "Down",
    "DuplicateChild",
    "DynamicSupervisor",
    "Exit",
    "ExitReason",
    "Killed",
    "MailboxFull",
    "MaxChildren",
    "Monitor",
    "NoProc",
    "Normal",
    "NotAnActor",
    "NotInActor",
    "OtpError",
    "Ref",
    "Registry",
    "RegistryEntry",
    "RegistryStatistics",
    "RestartIntensityExceeded",
    "Shutdown",
    "StartFailed",
    "Stop",
    "Stream",
    "Supervisor",
    "SupervisorNotRunning",
    "SupervisorStatistics",
    "SupervisorStopping",
    "TaskCancelled",
    "TaskCrashed",
    "TaskDone",
    "TaskHandle",
    "TaskSupervisor",
    "UnknownChild",
    "Via",
    "child",
    "watchdog",
]
