"""All settings: their names, types, flags and help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sessionmgr.cli.config.setting_types import (
    CLOCKS,
    COUNT,
    DURATION,
    KINDS,
    LIMITS,
    MODE,
    MONEY,
    NUMBER,
    ON_DENIED,
    OPTIONS,
    PATH,
    RETRY_FROM,
    SWITCH,
    TEXT,
    WORDS,
)

if TYPE_CHECKING:
    from sessionmgr.cli.config.setting_types import SettingType


class Setting(NamedTuple):
    """Setting: a key in files, a variable, a flag."""

    name: str
    kind: SettingType
    help: str
    flags: tuple[str, ...] = ()
    word: str = ""
    """The placeholder of its value in the help, if that of the type is too general."""
    in_environment: str = ""
    """Its name in environment variables, if that is another one."""

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return f"SESSIONMGR_{(self.in_environment or self.name).upper()}"


CLOCK_DEFAULTS: Final = (
    "start=1m, store=1m, model=30m, tool=0, tool_warning=10m, approval=2m, idle=30m, deadline=0, "
    "drain=1m, close=5s"
)
"""The defaults of all clocks, for the help."""

SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting(
            "store",
            PATH,
            "file that stores the sessions (default: ~/.local/state/sessionmgr/sessionmgr.db)",
        ),
        Setting("log_file", PATH, "also write the log to this file (default: none)", word="FILE"),
        Setting(
            "capture",
            PATH,
            "record all traffic with the agents in this directory (default: none)",
            word="DIR",
        ),
        Setting(
            "agents",
            PATH,
            "registry file of agents, which adds the providers acp:ID (default: none)",
            word="FILE",
            in_environment="agents_file",
        ),
        Setting(
            "provider",
            TEXT,
            "provider of the agent: claude, codex, shell, acp:ID, … (see sessionmgr adapters; "
            "default: none)",
            ("-p", "--provider"),
            "NAME",
        ),
        Setting("model", TEXT, "model to use (default: the agent's own)", ("--model",), "NAME"),
        Setting(
            "effort",
            TEXT,
            "reasoning effort: low, medium, high, … (default: the agent's own)",
            ("--effort",),
            "LEVEL",
        ),
        Setting(
            "permission_mode",
            MODE,
            "what the agent may do without asking: plan, default, accept_edits, full_auto, "
            "dangerously_skip_permissions (default: default)",
            ("--permission", "--permission-mode"),
        ),
        Setting(
            "tools_allowed",
            WORDS,
            "names of the only tools that the agent may use (default: all tools)",
            ("--tools-allowed",),
        ),
        Setting(
            "tools_denied",
            WORDS,
            "names of tools that the agent must not use (default: none)",
            ("--tools-denied",),
        ),
        Setting(
            "max_turns", COUNT, "maximum number of turns (default: no limit)", ("--max-turns",)
        ),
        Setting(
            "deadline",
            DURATION,
            "time limit of each attempt, such as 900 (seconds), 15m or 2h (default: no limit)",
            ("--deadline",),
        ),
        Setting(
            "budget_usd",
            MONEY,
            "spending limit of each job in US dollars (default: no limit)",
            ("--budget-usd",),
        ),
        Setting(
            "concurrency",
            COUNT,
            "maximum number of concurrent jobs, or of those of one provider, such as claude=8; "
            "may be repeated (default: 4, or the sum of the providers' limits if that is more)",
        ),
        Setting(
            "per_provider",
            LIMITS,
            "maximum number of concurrent jobs of each provider (default: that of all jobs)",
        ),
        Setting("retries", NUMBER, "retry a failed job up to N times (default: 2)", ("--retries",)),
        Setting(
            "retry_on",
            KINDS,
            "retry after these kinds of failure only (default: transient ones)",
            ("--retry-on",),
        ),
        Setting(
            "retry_from",
            RETRY_FROM,
            "how to restart an incomplete job that has made tool calls: session: resume "
            "its session, or wait for a decision if that is impossible; fresh: start it over, "
            "which may repeat its tool calls; ask: wait for a decision "
            "(default: session)",
            ("--retry-from",),
        ),
        Setting(
            "max_failures",
            COUNT,
            "start no more jobs after N have failed (default: no limit)",
            ("--max-failures",),
        ),
        Setting(
            "keep_failed",
            SWITCH,
            "do not run failed jobs again (default: run them again)",
            ("--keep-failed",),
        ),
        Setting(
            "approve",
            PATH,
            "rules that answer approval requests (default: none; every request is denied)",
            ("--approve",),
            "FILE",
        ),
        Setting(
            "on_denied",
            ON_DENIED,
            "how to treat a completed job with denials: warn: completed, with a warning; "
            "fail: failed (default: warn)",
            ("--on-denied",),
        ),
        Setting(
            "clocks",
            CLOCKS,
            "time limit of one kind of silence, such as idle=15m; 0 is no limit; may be repeated "
            f"(defaults: {CLOCK_DEFAULTS})",
            ("--clock",),
        ),
        Setting(
            "options",
            OPTIONS,
            "options of each provider (default: none; see sessionmgr schema options PROVIDER)",
        ),
    )
}
