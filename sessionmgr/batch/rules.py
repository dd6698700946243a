"""Approval rules: answers to the requests of agents that run unattended.

    [[rule]]
    tool = "Bash"           # a pattern of the tool's name
    command = "git status"  # the first words of the command
    decision = "allow"

    [[rule]]
    path = "src/**"         # a pattern of paths; relative ones start at the job's directory, unless
                            # they begin with **
    cwd = "/work/*"         # a pattern of the directory: the job's, or the one in the request
    decision = "allow"

The first rule that matches decides; a request without a matching rule is denied. A rule matches if
all of its patterns match.

Commands: the rules check each command of a line separately and must allow all of them. A rule that
allows matches a command only as written: without variables, patterns, groups, redirections or
assignments. A rule that denies matches the command also if called by a path or started by another
one (`env`, `npx`, `find -exec`, `sh -c`, …), and matches every command whose effect is uncertain,
such as code for an interpreter (`python -c`, `perl -e`) or `git rebase -x`. The rules do not look
into scripts. Only a rule whose `cwd` matches can allow a command that asks for a directory outside
the job's.

Paths: relative ones are resolved in the job's directory, and links are followed. To allow, all
readings of all paths must match, and the tool must not run a command; to deny, one is enough, and
an unresolvable path (`~/x`) matches.
"""

from __future__ import annotations

import os.path
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec
import trio

from sessionmgr.adapter import Allow, Deny
from sessionmgr.adapter.kit import NotSimpleError, resolve_within, split_argv
from sessionmgr.batch.approval_commands import begins_with, may_begin_with, requested_commands
from sessionmgr.batch.approval_paths import is_inside, matches, path_forms, resolve_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.adapter.kit import CommandWords

Text = Annotated[str, msgspec.Meta(min_length=1)]


class RequestedCommand(NamedTuple):
    """One command of an approval request, as rules see it."""

    words: CommandWords
    exact: bool
    """Whether the command consists of exactly these words."""
    unknown: str | None = None
    """Why its effect is uncertain."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule: its patterns and its decision."""

    decision: Literal["allow", "deny"]
    """What the rule decides."""
    tool: Text | None = None
    """Pattern of the tool's name, such as `Bash` or `mcp__*`."""
    path: Text | None = None
    """Pattern of the paths that the tool uses, such as `src/**`."""
    command: Text | None = None
    """First words of the command, such as `git status`."""
    cwd: Text | None = None
    """Pattern of the directory in which the agent works."""
    reason: Text | None = None
    """Text for the record, and for the agent if the rule denies."""

    @property
    def allows(self) -> bool:
        """Whether the rule allows what it matches."""
        return self.decision == "allow"

    def matches(self, asked: ApprovalRequest, requested: RequestedCommand | None) -> bool:
        """Return whether the rule matches a request, or one command of it.

        Args:
            asked: The request.
            requested: The command; None if the request contains no command.
        """
        return (
            (self.tool is None or fnmatchcase(asked.tool_name, self.tool))
            and self._matches_directory(asked)
            and (self.path is None or self._matches_paths(asked, self.path, requested))
            and (
                self.command is None or (requested is not None and self._matches_command(requested))
            )
        )

    def _matches_directory(self, asked: ApprovalRequest) -> bool:
        directory = resolve_within((asked.cwd,), asked.tool_cwd) if asked.tool_cwd else asked.cwd
        inside = is_inside(directory, asked.cwd)
        if self.cwd is None:
            return inside or not self.allows or self.command is None
        judged = {directory, asked.cwd} if inside or not self.allows else {directory}
        patterns = {self.cwd} if self.allows else {self.cwd, resolve_pattern(self.cwd, "/")}
        return any(matches(each, pattern, "/") for each in judged for pattern in patterns)

    def _matches_paths(
        self, asked: ApprovalRequest, pattern: str, requested: RequestedCommand | None
    ) -> bool:
        if self.allows and requested is not None:
            return False  # paths beside a command do not describe its effect
        if not asked.paths:
            return asked.effect == "edit" and not self.allows  # an edit of an unknown file
        fitting = [self._matches_path(asked, path, pattern) for path in asked.paths]
        return all(fitting) if self.allows else any(fitting)

    def _matches_path(self, asked: ApprovalRequest, path: str, pattern: str) -> bool:
        readings = path_forms(asked, path)
        if readings is None:
            return not self.allows
        if self.allows:
            return all(matches(each, pattern, asked.cwd) for each in readings.leads_to)
        patterns = {pattern, resolve_pattern(pattern, asked.cwd)}
        paths = {readings.written, *readings.leads_to, os.path.realpath(readings.written)}
        return any(matches(path, each, asked.cwd) for path in paths for each in patterns)

    def _matches_command(self, requested: RequestedCommand) -> bool:
        begin = self._command_words
        if self.allows:
            return bool(begin) and requested.exact and begins_with(requested.words, begin)
        return requested.unknown is not None or not begin or may_begin_with(requested.words, begin)

    @property
    def _command_words(self) -> list[str]:
        """Words of the rule's command; empty if it is not one plain command.

        A rules file cannot contain such a rule, but a program can make one.
        """
        try:
            return split_argv(self.command or "")
        except NotSimpleError:
            return []


class Rules:
    """Answers approval requests by rules."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules: Final = rules

    async def __call__(self, asked: ApprovalRequest) -> Decision:
        """Answer a request; this makes the rules an `Approve` function."""
        await trio.lowlevel.checkpoint()
        return self.decide(asked)

    def decide(self, asked: ApprovalRequest) -> Decision:
        """Return the first denial of one of the commands, or else the decision on all of them."""
        decisions = list(self._decisions(asked))
        denied = (each for each in decisions if isinstance(each, Deny))
        return next(denied, decisions[0])

    def _decisions(self, asked: ApprovalRequest) -> Iterator[Decision]:
        """Yield the decision on each command; nested commands can only be denied."""
        try:
            commands = requested_commands(asked)
        except NotSimpleError as error:
            yield self._decide(asked, RequestedCommand((), exact=False, unknown=str(error)))
            return
        if not commands:
            yield self._decide(asked, None)
        for each in commands:
            yield self._decide(asked, RequestedCommand(each.words, each.exact, each.unknown))
            for inner in each.inner:
                requested = RequestedCommand(inner, exact=None not in inner)
                if self._first_match(asked, requested) is not None:
                    yield self._decide(asked, requested)

    def _first_match(
        self, asked: ApprovalRequest, requested: RequestedCommand | None
    ) -> tuple[int, Rule] | None:
        numbered = enumerate(self._rules, 1)
        return next((each for each in numbered if each[1].matches(asked, requested)), None)

    def _decide(self, asked: ApprovalRequest, requested: RequestedCommand | None) -> Decision:
        found = self._first_match(asked, requested)
        unknown = (
            f"; {requested.unknown}"
            if requested is not None and requested.unknown is not None
            else ""
        )
        if found is None:
            return Deny(reason=f"no rule allows it{unknown}", by="rules")
        number, rule = found
        reason = rule.reason or f"rule {number}"
        if rule.allows:
            return Allow(reason=reason, by="rules")
        return Deny(reason=f"{reason}{unknown if rule.command is not None else ''}", by="rules")
