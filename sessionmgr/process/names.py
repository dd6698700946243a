"""Lazy exports: the package's public names by module; each module is imported on first use.

A command does not have to load the modules that it does not need.
"""

from typing import Final

from sessionmgr.lazy_exports import lazy_exports

PUBLIC: Final = {
    "sessionmgr.process.capture": ("CaptureLauncher",),
    "sessionmgr.process.command": ("Command",),
    "sessionmgr.process.descriptor_limits": (
        "PER_CHILD",
        "RESERVE",
        "DescriptorBudget",
        "raise_limit",
    ),
    "sessionmgr.process.environment": (
        "ConditionalNames",
        "EnvironmentSpec",
        "build_environment",
        "is_secret_value",
        "secret_values",
        "url_passwords",
    ),
    "sessionmgr.process.errors": (
        "CommandInvalid",
        "DescriptorsExhausted",
        "EnvironmentVariableInvalid",
        "InputFull",
        "LauncherFailed",
        "NoSuchDirectory",
        "NotExecutable",
        "ProcessError",
        "ProgramNotFound",
        "SessionIdInvalid",
        "SpawnerKilled",
        "SpawnFailed",
    ),
    "sessionmgr.process.escalation": (
        "Escalation",
        "end_tree",
        "open_tree",
    ),
    "sessionmgr.process.exit_report": (
        "EmptyProof",
        "ExitKind",
        "ExitReport",
        "LeftRunning",
        "ProgramExit",
    ),
    "sessionmgr.process.kill_by_env": ("kill_processes_with_env",),
    "sessionmgr.process.launcher": (
        "ChildTree",
        "Launcher",
    ),
    "sessionmgr.process.launcher_factory": (
        "LauncherKind",
        "OpenLauncher",
        "open_launcher",
    ),
    "sessionmgr.process.launcher_registry": ("BootReport",),
    "sessionmgr.process.linux.launcher": ("SpawnerLauncher",),
    "sessionmgr.process.outbox": ("Outbox",),
    "sessionmgr.process.private_files": (
        "LARGEST_ARGUMENT",
        "PrivateFiles",
        "TextChannel",
        "choose_channel",
    ),
    "sessionmgr.process.private_modes": (
        "DIRECTORY_MODE",
        "make_private_directory",
        "make_private_file",
        "private_opener",
        "unlinked_opener",
    ),
    "sessionmgr.process.procfs": (
        "boot_id",
        "is_running",
        "pid_namespace",
        "start_time",
    ),
    "sessionmgr.process.program": (
        "NotStartedError",
        "find_program",
    ),
    "sessionmgr.process.pump": (
        "PipePump",
        "PumpResult",
    ),
    "sessionmgr.process.resource_shortage": ("is_transient_shortage",),
    "sessionmgr.process.secret_names": ("is_secret_name",),
    "sessionmgr.process.session_id": ("validate_session_id",),
    "sessionmgr.process.stderr_tail": ("StderrTail",),
}
__getattr__, __dir__ = lazy_exports("sessionmgr.process", PUBLIC)
