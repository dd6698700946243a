"""Approval rules: who answers what agents ask, when nobody sits there.

    [[rule]]
    tool = "Bash"           # a pattern of the tool's name
    command = "git status"  # how the command begins, word by word
    decision = "allow"

    [[rule]]
    path = "src/**"         # a pattern of paths; relative ones lie in the job's directory, unless
                            # they begin with **
    cwd = "/work/*"         # a pattern of the job's directory
    decision = "allow"

The first rule that fits decides; what no rule fits is denied. A rule fits if all that it names
does. Where it allows, all paths and all commands of the line must fit (each is looked at by
itself); where it denies, one is enough. A command that cannot be taken apart for sure, because it
substitutes or redirects, fits no rule that allows by the beginning of a command.
"""

from __future__ import annotations

import os.path
import re
import shlex
import tomllib
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import msgspec
import trio

from sessionmgr.batch.jobs_file import said_of
from sessionmgr.errors import RulesInvalid
from sessionmgr.provider import Allow, Deny

if TYPE_CHECKING:
    from sessionmgr.provider import ApprovalRequest, Decision

Text = Annotated[str, msgspec.Meta(min_length=1)]
# What a tool calls its command.
_COMMANDS: Final = ("command", "cmd", "script")
_UNSURE: Final = re.compile(r"[`$<>(){}\\\n]")
_SEPARATORS: Final = frozenset({";", "&", "&&", "|", "||", "|&", ";;"})


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule: what it fits, and what it decides."""

    decision: Literal["allow", "deny"]
    tool: Text | None = None
    path: Text | None = None
    command: Text | None = None
    cwd: Text | None = None
    reason: Text | None = None

    @property
    def allows(self) -> bool:
        """Whether it allows what it fits."""
        return self.decision == "allow"

    def fits(self, asked: ApprovalRequest, command: Words | None) -> bool:
        """Say whether the rule is about this question, or this command of it."""
        if self.tool is not None and not fnmatchcase(asked.tool_name, self.tool):
            return False
        if self.cwd is not None and not matches(asked.cwd, self.cwd, "/"):
            return False
        if self.path is not None and not self._fits_paths(asked):
            return False
        return self.command is None or (command is not None and self._fits_command(command))

    def _fits_paths(self, asked: ApprovalRequest) -> bool:
        fitting = [matches(path, self.path or "", asked.cwd) for path in asked.paths]
        return bool(fitting) and (all(fitting) if self.allows else any(fitting))

    def _fits_command(self, command: Words) -> bool:
        begin = shlex.split(self.command or "")
        if command.words[: len(begin)] != begin:
            return False
        return command.sure or not self.allows


class Words(msgspec.Struct, frozen=True):
    """One command of a line, in words; not `sure`, if it may be more than that."""

    words: list[str]
    sure: bool = True


class Rules:
    """Answers questions by rules."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules: Final = rules

    async def __call__(self, asked: ApprovalRequest) -> Decision:
        """Answer a question: this is an `Approve`."""
        await trio.lowlevel.checkpoint()
        parts: list[Words | None] = [*commands(asked)]
        decisions = [self._decide(asked, command) for command in parts or [None]]
        denied = [each for each in decisions if isinstance(each, Deny)]
        return denied[0] if denied else decisions[0]

    def _decide(self, asked: ApprovalRequest, command: Words | None) -> Decision:
        for number, rule in enumerate(self._rules, 1):
            if rule.fits(asked, command):
                reason = rule.reason or f"rule {number}"
                return (
                    Allow(reason=reason, by="rules")
                    if rule.allows
                    else Deny(reason=reason, by="rules")
                )
        return Deny(reason="no rule allows it", by="rules")


def commands(asked: ApprovalRequest) -> list[Words]:
    """Return the commands that a tool would run, if it is one that runs any."""
    given = asked.tool_input
    found: object = given
    if isinstance(given, dict):
        found = next((given[name] for name in _COMMANDS if name in given), None)
    if isinstance(found, list):
        return [Words([str(word) for word in cast("list[object]", found)])]
    if not isinstance(found, str) or (asked.effect != "command" and not isinstance(given, dict)):
        return []
    return split_commands(found)


def split_commands(line: str) -> list[Words]:
    """Take a line for a shell apart into its commands."""
    sure = _UNSURE.search(line) is None
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # a quotation that does not end
        return [Words(line.split(), sure=False)]
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            parts.append([])
        else:
            sure = sure and not set(word) <= set(";&|")
            parts[-1].append(word)
    return [Words(part, sure) for part in parts if part] or [Words([], sure=False)]


def matches(path: str, pattern: str, within: str) -> bool:
    """Say whether a path fits a pattern: `*` is within one name, `**` is any number of them.

    A relative pattern lies `within` a directory, unless it begins with `**`: that is anywhere.
    """
    path = os.path.normpath(os.path.join(within, path))  # noqa: PTH118  # no links are looked up
    pattern = os.path.join("/" if pattern.startswith("**") else within, pattern)  # noqa: PTH118
    return _compiled(pattern).fullmatch(path) is not None


def _compiled(pattern: str) -> re.Pattern[str]:
    made = ""
    for part in re.split(r"(/\*\*/|/\*\*$|\*\*|\*|\?)", pattern):
        match part:
            case "/**/":
                made += "/(?:.*/)?"
            case "/**":
                made += "(?:/.*)?"
            case "**":
                made += ".*"
            case "*":
                made += "[^/]*"
            case "?":
                made += "[^/]"
            case _:
                made += re.escape(part)
    return re.compile(made, re.DOTALL)


def read_rules(path: str | Path) -> Rules:
    """Read rules from a file of TOML.

    Raises:
        RulesInvalid: They are none; it says where and why.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        found: dict[str, object] = tomllib.loads(text)
    except OSError as error:
        raise RulesInvalid(str(path), error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise RulesInvalid(str(path), "it is no UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise RulesInvalid(str(path), f"it is no TOML: {error}") from error
    for name in found.keys() - {"rule"}:
        raise RulesInvalid(str(path), f"there is no {name!r}; rules begin with [[rule]]")
    rules = found.get("rule")
    if not isinstance(rules, list) or not rules:
        raise RulesInvalid(str(path), "it holds no rules: each begins with [[rule]]")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    return Rules(
        tuple(
            _rule(each, f"{path}:{lines[number]}" if number < len(lines) else str(path))
            for number, each in enumerate(cast("list[object]", rules))
        )
    )


_HEAD: Final = re.compile(r"\s*\[\[\s*rule\s*\]\]")
_CONDITIONS: Final = ("tool", "path", "command", "cwd")


def _rule(given: object, where: str) -> Rule:
    if isinstance(given, dict):
        for name in cast("dict[str, object]", given):
            if name not in Rule.__struct_fields__:
                nearest = get_close_matches(name, Rule.__struct_fields__, n=1)
                hint = f"did you mean {nearest[0]!r}?" if nearest else "it has no such field"
                raise RulesInvalid(where, f"{name}: {hint}")
    try:
        rule = msgspec.convert(given, Rule)
    except msgspec.ValidationError as error:
        field, what = said_of(error)
        raise RulesInvalid(where, f"{field}: {what}" if field else what) from error
    if rule.allows and all(getattr(rule, name) is None for name in _CONDITIONS):
        raise RulesInvalid(where, 'it allows everything: say so by tool = "*"')
    if rule.command is not None:
        try:
            shlex.split(rule.command)
        except ValueError as error:
            raise RulesInvalid(where, f"command: {error}") from error
    return rule
