"""The commands in an approval request, and how rules compare them."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING, Final, cast

from sessionmgr.adapter.kit import (
    GIT_VALUED,
    CommandCall,
    NotSimpleError,
    command_of_argv,
    commands_of_line,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import ApprovalRequest
    from sessionmgr.adapter.kit import CommandWords
    from sessionmgr.model import Json

# The field with a tool's command, and the field with its separate arguments.
_COMMANDS: Final = ("command", "cmd", "script", "argv")
_ARGUMENTS: Final = "args"
_OTHER_SHELLS: Final = frozenset({"powershell", "pwsh", "cmd"})
# Options of git that change its commands.
_ALTERING: Final = ("-c", "--config-env", "--exec-path")


def requested_commands(asked: ApprovalRequest) -> list[CommandCall]:
    """Return the commands that a tool would run; empty if the tool runs none.

    Raises:
        NotSimpleError: It runs commands that cannot be determined with certainty.
    """
    given = asked.tool_input
    found: list[Json] = [given] if asked.effect == "command" else []
    arguments: Json = None
    if isinstance(given, dict):
        found = [given[name] for name in _COMMANDS if given.get(name) is not None]
        arguments = given.get(_ARGUMENTS)
    if not found:
        if asked.effect == "command":
            raise NotSimpleError("it names no command")
        return []
    if asked.tool_name.lower() in _OTHER_SHELLS:
        raise NotSimpleError(f"it is a command line of {asked.tool_name}")
    if isinstance(arguments, list) and arguments:
        return [_with_arguments(found, arguments)]
    return [each for one in found for each in _commands_of(one)]


def _commands_of(found: Json) -> list[CommandCall]:
    if isinstance(found, list):
        argv = _texts(found)
        if len(argv) == 1 and len(argv[0].split()) != 1:
            raise NotSimpleError("its only word contains blanks")
        return [command_of_argv(argv)]
    if not isinstance(found, str):
        raise NotSimpleError("it is not text")
    commands = commands_of_line(found)
    if not commands:
        raise NotSimpleError("it contains no command")
    return commands


def _with_arguments(found: Sequence[Json], arguments: list[Json]) -> CommandCall:
    """Return the command whose name and arguments are separate fields."""
    if len(found) != 1 or not isinstance(found[0], str) or len(found[0].split()) != 1:
        raise NotSimpleError("its name and its arguments are separate fields")
    return command_of_argv([found[0], *_texts(arguments)])


def _texts(found: list[Json]) -> list[str]:
    if not all(isinstance(each, str) for each in found):
        raise NotSimpleError("its words are not text")
    return cast("list[str]", found)


def begins_with(words: CommandWords, begin: Sequence[str]) -> bool:
    """Return whether a command begins with exactly these words: a rule may then allow it."""
    return None not in words and list(words[: len(begin)]) == list(begin)


def may_begin_with(words: CommandWords, begin: Sequence[str]) -> bool:
    """Return whether a command is, or could be, one that begins with these words.

    The directory and the case of its name are ignored. After an option or an unknown word, any
    later word may be the next of `begin`.
    """
    if words[0] is None:
        return True
    name, wanted = basename(words[0]).casefold(), basename(begin[0]).casefold()
    if len(begin) > 1 and name == f"{wanted}-{begin[1].casefold()}":
        return _may_follow(words[1:], begin[2:])  # `git-push` is the command `git push`
    if name != wanted:
        return False
    if name == "git" and _alters_git(words):
        return True
    return _may_follow(words[1:], begin[1:])


def _may_follow(words: CommandWords, begin: Sequence[str]) -> bool:
    for at, wanted in enumerate(begin):
        word = words[at] if at < len(words) else ""
        if word == wanted:
            continue
        if word is None:
            return True
        if word.startswith("-") or wanted.startswith("-"):
            return _in_order(words[at:], begin[at:])
        return False
    return True


def _in_order(words: CommandWords, begin: Sequence[str]) -> bool:
    left = iter(words)
    return all(any(word is None or word == wanted for word in left) for wanted in begin)


def _alters_git(words: CommandWords) -> bool:
    """Return whether git options replace its configuration or its directory of commands."""
    at = 1
    while at < len(words):
        word = words[at]
        if word is None or word.startswith(_ALTERING):
            return True
        if not word.startswith("-"):
            return False
        at += 2 if word in GIT_VALUED else 1
    return False
