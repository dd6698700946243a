"""Parser for command lines of POSIX shells: words, commands, prefix commands."""

from sessionmgr.adapter.kit.command_line.code_arguments import GIT_VALUED as GIT_VALUED
from sessionmgr.adapter.kit.command_line.prefix_commands import (
    KNOWN as KNOWN,
    LAUNCHING as LAUNCHING,
    MULTI_CALL as MULTI_CALL,
    SHELLS as SHELLS,
    WRAPPERS as WRAPPERS,
    found_by as found_by,
    is_opaque as is_opaque,
    launches as launches,
    script_of as script_of,
)
from sessionmgr.adapter.kit.command_line.script import (
    Plain as Plain,
    read_script as read_script,
    written as written,
)
from sessionmgr.adapter.kit.command_line.started import (
    Started as Started,
    Words as Words,
    command_of_argv as command_of_argv,
    commands_of_line as commands_of_line,
)
from sessionmgr.adapter.kit.command_line.tokenizer import (
    NotPlainError as NotPlainError,
    Operator as Operator,
    ShellNeededError as ShellNeededError,
    Word as Word,
    argv_of as argv_of,
    split as split,
    tokens as tokens,
)

__all__ = [
    "GIT_VALUED",
    "KNOWN",
    "LAUNCHING",
    "MULTI_CALL",
    "SHELLS",
    "WRAPPERS",
    "NotPlainError",
    "Operator",
    "Plain",
    "ShellNeededError",
    "Started",
    "Word",
    "Words",
    "argv_of",
    "command_of_argv",
    "commands_of_line",
    "found_by",
    "is_opaque",
    "launches",
    "read_script",
    "script_of",
    "split",
    "tokens",
    "written",
]
