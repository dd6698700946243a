"""Child process trees: what is started, who owns it, how it is talked to and how it ends."""

from sessionmgr.process.command import Command as Command
from sessionmgr.process.descriptor_limits import (
    DescriptorBudget as DescriptorBudget,
    raise_limit as raise_limit,
)
from sessionmgr.process.environment import (
    ConditionalNames as ConditionalNames,
    EnvironmentSpec as EnvironmentSpec,
    build_environment as build_environment,
    secret_values as secret_values,
)
from sessionmgr.process.escalation import (
    Escalation as Escalation,
    end_tree as end_tree,
    open_tree as open_tree,
)
from sessionmgr.process.exit_report import (
    EmptyProof as EmptyProof,
    ExitKind as ExitKind,
    ExitReport as ExitReport,
    LeftRunning as LeftRunning,
    ProgramExit as ProgramExit,
)
from sessionmgr.process.launcher import ChildTree as ChildTree, Launcher as Launcher
from sessionmgr.process.launcher_factory import (
    LauncherKind as LauncherKind,
    OpenLauncher as OpenLauncher,
    open_launcher as open_launcher,
)
from sessionmgr.process.launcher_registry import BootReport as BootReport
from sessionmgr.process.outbox import Outbox as Outbox
from sessionmgr.process.private_files import (
    PrivateFiles as PrivateFiles,
    TextChannel as TextChannel,
    choose_channel as choose_channel,
)
from sessionmgr.process.pump import PipePump as PipePump, PumpResult as PumpResult
from sessionmgr.process.resource_shortage import is_transient_shortage as is_transient_shortage
from sessionmgr.process.session_id import validate_session_id as validate_session_id
from sessionmgr.process.stderr_tail import StderrTail as StderrTail

__all__ = [
    "BootReport",
    "ChildTree",
    "Command",
    "ConditionalNames",
    "DescriptorBudget",
    "EmptyProof",
    "EnvironmentSpec",
    "Escalation",
    "ExitKind",
    "ExitReport",
    "Launcher",
    "LauncherKind",
    "LeftRunning",
    "OpenLauncher",
    "Outbox",
    "PipePump",
    "PrivateFiles",
    "ProgramExit",
    "PumpResult",
    "StderrTail",
    "TextChannel",
    "build_environment",
    "choose_channel",
    "end_tree",
    "is_transient_shortage",
    "open_launcher",
    "open_tree",
    "raise_limit",
    "secret_values",
    "validate_session_id",
]
