from sessionmgr.process.capture import CaptureLauncher as CaptureLauncher
from sessionmgr.process.command import Command as Command
from sessionmgr.process.descriptor_limits import (
    PER_CHILD as PER_CHILD,
    RESERVE as RESERVE,
    DescriptorBudget as DescriptorBudget,
    raise_limit as raise_limit,
)
from sessionmgr.process.environment import (
    ConditionalNames as ConditionalNames,
    EnvironmentSpec as EnvironmentSpec,
    build_environment as build_environment,
    is_secret_value as is_secret_value,
    secret_values as secret_values,
    url_passwords as url_passwords,
)
from sessionmgr.process.errors import (
    CommandInvalid as CommandInvalid,
    DescriptorsExhausted as DescriptorsExhausted,
    EnvironmentVariableInvalid as EnvironmentVariableInvalid,
    InputFull as InputFull,
    LauncherFailed as LauncherFailed,
    NoSuchDirectory as NoSuchDirectory,
    NotExecutable as NotExecutable,
    ProcessError as ProcessError,
    ProgramNotFound as ProgramNotFound,
    SessionIdInvalid as SessionIdInvalid,
    SpawnerKilled as SpawnerKilled,
    SpawnFailed as SpawnFailed,
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
from sessionmgr.process.kill_by_env import kill_processes_with_env as kill_processes_with_env
from sessionmgr.process.launcher import ChildTree as ChildTree, Launcher as Launcher
from sessionmgr.process.launcher_factory import (
    LauncherKind as LauncherKind,
    OpenLauncher as OpenLauncher,
    open_launcher as open_launcher,
)
from sessionmgr.process.launcher_registry import BootReport as BootReport
from sessionmgr.process.linux.launcher import SpawnerLauncher as SpawnerLauncher
from sessionmgr.process.outbox import Outbox as Outbox
from sessionmgr.process.private_files import (
    LARGEST_ARGUMENT as LARGEST_ARGUMENT,
    PrivateFiles as PrivateFiles,
    TextChannel as TextChannel,
    choose_channel as choose_channel,
)
from sessionmgr.process.private_modes import (
    DIRECTORY_MODE as DIRECTORY_MODE,
    make_private_directory as make_private_directory,
    make_private_file as make_private_file,
    private_opener as private_opener,
    unlinked_opener as unlinked_opener,
)
from sessionmgr.process.procfs import (
    boot_id as boot_id,
    is_running as is_running,
    pid_namespace as pid_namespace,
    start_time as start_time,
)
from sessionmgr.process.program import (
    NotStartedError as NotStartedError,
    find_program as find_program,
)
from sessionmgr.process.pump import PipePump as PipePump, PumpResult as PumpResult
from sessionmgr.process.resource_shortage import is_transient_shortage as is_transient_shortage
from sessionmgr.process.secret_names import is_secret_name as is_secret_name
from sessionmgr.process.session_id import validate_session_id as validate_session_id
from sessionmgr.process.stderr_tail import StderrTail as StderrTail

__all__ = [
    "DIRECTORY_MODE",
    "LARGEST_ARGUMENT",
    "PER_CHILD",
    "RESERVE",
    "BootReport",
    "CaptureLauncher",
    "ChildTree",
    "Command",
    "CommandInvalid",
    "ConditionalNames",
    "DescriptorBudget",
    "DescriptorsExhausted",
    "EmptyProof",
    "EnvironmentSpec",
    "EnvironmentVariableInvalid",
    "Escalation",
    "ExitKind",
    "ExitReport",
    "InputFull",
    "Launcher",
    "LauncherFailed",
    "LauncherKind",
    "LeftRunning",
    "NoSuchDirectory",
    "NotExecutable",
    "NotStartedError",
    "OpenLauncher",
    "Outbox",
    "PipePump",
    "PrivateFiles",
    "ProcessError",
    "ProgramExit",
    "ProgramNotFound",
    "PumpResult",
    "SessionIdInvalid",
    "SpawnFailed",
    "SpawnerKilled",
    "SpawnerLauncher",
    "StderrTail",
    "TextChannel",
    "boot_id",
    "build_environment",
    "choose_channel",
    "end_tree",
    "find_program",
    "is_running",
    "is_secret_name",
    "is_secret_value",
    "is_transient_shortage",
    "kill_processes_with_env",
    "make_private_directory",
    "make_private_file",
    "open_launcher",
    "open_tree",
    "pid_namespace",
    "private_opener",
    "raise_limit",
    "secret_values",
    "start_time",
    "unlinked_opener",
    "url_passwords",
    "validate_session_id",
]
