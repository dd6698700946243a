"""Parser for command lines of POSIX shells: words, commands, prefix commands."""

from sessionmgr.adapter.kit.command_line.code_arguments import GIT_VALUED as GIT_VALUED
from sessionmgr.adapter.kit.command_line.command_calls import (
    CommandCall as CommandCall,
    CommandWords as CommandWords,
    command_of_argv as command_of_argv,
    commands_of_line as commands_of_line,
)
from sessionmgr.adapter.kit.command_line.prefix_commands import (
    LAUNCH_ARGUMENTS as LAUNCH_ARGUMENTS,
    LAUNCHER_COMMANDS as LAUNCHER_COMMANDS,
    MULTI_CALL as MULTI_CALL,
    PREFIX_COMMANDS as PREFIX_COMMANDS,
    SHELLS as SHELLS,
    find_command_ranges as find_command_ranges,
    is_opaque_command as is_opaque_command,
    launch_argument as launch_argument,
    shell_script_index as shell_script_index,
)
from sessionmgr.adapter.kit.command_line.simple_commands import (
    SimpleCommand as SimpleCommand,
    read_script as read_script,
    shell_word as shell_word,
)
from sessionmgr.adapter.kit.command_line.tokenizer import (
    NotSimpleError as NotSimpleError,
    ShellNeededError as ShellNeededError,
    ShellOperator as ShellOperator,
    ShellWord as ShellWord,
    plain_argv as plain_argv,
    split_argv as split_argv,
    tokenize as tokenize,
)

__all__ = [
    "GIT_VALUED",
    "LAUNCHER_COMMANDS",
    "LAUNCH_ARGUMENTS",
    "MULTI_CALL",
    "PREFIX_COMMANDS",
    "SHELLS",
    "CommandCall",
    "CommandWords",
    "NotSimpleError",
    "ShellNeededError",
    "ShellOperator",
    "ShellWord",
    "SimpleCommand",
    "command_of_argv",
    "commands_of_line",
    "find_command_ranges",
    "is_opaque_command",
    "launch_argument",
    "plain_argv",
    "read_script",
    "shell_script_index",
    "shell_word",
    "split_argv",
    "tokenize",
]
