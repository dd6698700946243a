"""The bundled agents that speak ACP: what differs between them, as data.

No other module names an agent, but `user_rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import Fidelity
from sessionmgr.process import EnvironmentSpec
from sessionmgr_adapters.acp.default_settings import DefaultSettings
from sessionmgr_adapters.acp.quirks import (
    MODEL_KEYS,
    UNKNOWN,
    AgentMode,
    AgentQuirks,
    permission_modes,
)
from sessionmgr_adapters.acp.session_minute import SessionFiles
from sessionmgr_adapters.acp.user_rules import CODEX_RULES, GEMINI_RULES, GOOSE_RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.model import Json

# In its own plan mode Claude Code lets a model judge commands, and the user's rules allow calls.
_PLAN_SETTINGS: Final[dict[str, Json]] = {
    "useAutoModeDuringPlan": False,
    "permissions": {"ask": ["Bash", "Write", "Edit", "NotebookEdit", "mcp__*"]},
    "sandbox": {"autoAllowBashIfSandboxed": False},
}
# opencode asks before few things of its own accord. With these rules, of which the last that fits
# counts, it asks before each change, also by the tools of MCP servers.
_ASKING: Final[dict[str, Json]] = {
    "permission": {
        "*": "ask",
        "edit": "ask",
        "bash": "ask",
        "webfetch": "ask",
        "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
        **dict.fromkeys(("glob", "grep", "list", "lsp", "skill", "todowrite", "question"), "allow"),
    }
}
# The rules of the agent count after all others, such as a user's that allow a tool.
_PLANNING: Final[dict[str, Json]] = {
    **_ASKING,
    "agent": {
        "plan": {"permission": {"*": "ask", "edit": "ask", "bash": "ask", "webfetch": "ask"}}
    },
}
_GOOSE_ERROR: Final = (
    r"(?s)\A(?:(?:Ran into this error|Network error): .*|The model returned an empty response\.)\s+"
    r"Please (?:retry if you think|resend your message) [^\n]*\Z"
)
_COPILOT_ERROR: Final = (
    r"(?:\A|\.\.\.)Error: (?:\d{3} |No response was returned\.|Authentication failed with)"
    r"|Error: Failed to get response from the AI model; retried \d+ times"
)
_COPILOT_MODE: Final = "https://agentclientprotocol.com/protocol/session-modes#"

BUNDLED: Final[Mapping[str, AgentQuirks]] = {
    "claude-agent-acp": AgentQuirks(
        title="Claude Code over ACP",
        aliases=("claude-acp",),
        command=("claude-agent-acp",),
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        login="run `claude` and log in, or set ANTHROPIC_API_KEY",
        environment=EnvironmentSpec(names=("ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR")),
        home_variable="CLAUDE_CONFIG_DIR",
        leaves_processes=True,
        modes=permission_modes(
            AgentMode("default"),
            plan=AgentMode(
                "plan",
                Fidelity.EMULATED,
                meta={"claudeCode": {"options": {"settings": _PLAN_SETTINGS}}},
            ),
            full_auto=AgentMode("default", Fidelity.EMULATED),
        ),
        protocols=frozenset({1, 2}),
        has=frozenset({"steer", "system_prompt", "fork", "cost"}),
        resume_command="claude --resume {id}",
    ),
    "codex-acp": AgentQuirks(
        title="Codex over ACP",
        command=("codex-acp",),
        install="npm install -g @agentclientprotocol/codex-acp",
        login="run `codex login`, or set OPENAI_API_KEY",
        environment=EnvironmentSpec(names=("CODEX_*", "OPENAI_*", "RUST_LOG")),
        home_variable="CODEX_HOME",
        rule_files=(CODEX_RULES,),
        # Its own default, `agent`, edits files outside of the directories without a question.
        leaves_processes=True,
        modes=permission_modes(
            AgentMode("workspace-write", confined=True),
            plan=AgentMode("read-only", Fidelity.EMULATED, confined=True),
            full_auto=AgentMode("agent-full-access"),
        ),
        protocols=frozenset({1, 2}),
        has=frozenset({"steer", "system_prompt", "fork"}),
        resume_command="codex resume {id}",
    ),
    "copilot": AgentQuirks(
        title="GitHub Copilot CLI",
        aliases=("github-copilot-cli",),
        command=("copilot", "--acp"),
        install="npm install -g @github/copilot",
        login="run `copilot login`, or set COPILOT_GITHUB_TOKEN",
        environment=EnvironmentSpec(names=("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN")),
        home_variable="COPILOT_HOME",
        starts_servers=False,
        leaves_processes=True,
        modes=permission_modes(
            AgentMode(f"{_COPILOT_MODE}agent"),
            plan=AgentMode(f"{_COPILOT_MODE}plan", Fidelity.EMULATED),
            full_auto=AgentMode(f"{_COPILOT_MODE}agent", Fidelity.EMULATED),
        ),
        error_text=_COPILOT_ERROR,
        sums_usage=True,
        resume_command="copilot --resume {id}",
    ),
    "gemini": AgentQuirks(
        title="Gemini CLI",
        command=("gemini", "--acp"),
        install="npm install -g @google/gemini-cli",
        login="run `gemini` and log in, or set GEMINI_API_KEY",
        environment=EnvironmentSpec(names=("GEMINI_*", "GOOGLE_*", "CODE_ASSIST_*")),
        defaults={"GEMINI_CLI_NO_RELAUNCH": "1", "TERM": "xterm-256color"},
        default_settings=DefaultSettings(
            # Its clean-up of old sessions deletes every session that was resumed.
            file="gemini_defaults.json",
            variable="GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
            others=frozenset({"GEMINI_CLI_SYSTEM_SETTINGS_PATH"}),
            places=(
                "/etc/gemini-cli/system-defaults.json",
                "/Library/Application Support/GeminiCli/system-defaults.json",
            ),
        ),
        home_variable="GEMINI_CLI_HOME",
        rule_files=GEMINI_RULES,
        model_flag="-m",
        models={"fast": "flash", "capable": "pro"},  # it resolves them to its present models
        modes=permission_modes(
            AgentMode("default"),
            plan=AgentMode("plan", Fidelity.EMULATED),
            full_auto=AgentMode("yolo"),
            skip=AgentMode("yolo", Fidelity.NARROWER),
        ),
        confirms_mode=False,
        mode_notice="[MODE_UPDATE] ",
        session_files=SessionFiles(
            homes=("GEMINI_CLI_HOME", "HOME"),
            pattern=".gemini/tmp/*/chats/session-*-{id}.jsonl",
            minute="session-%Y-%m-%dT%H-%M-",
            id_length=8,
        ),
        replays_late=True,
        reads_files=False,  # otherwise it cannot write new files: it reads them first
        terminals=False,
        lacks=frozenset({"effort"}),
        resume_command="gemini --resume {id}",
    ),
    "goose": AgentQuirks(
        title="goose",
        command=("goose", "acp"),
        install="npm install -g @aaif/goose-acp",
        login="run `goose configure`, or set GOOSE_PROVIDER, GOOSE_MODEL and the provider's key",
        environment=EnvironmentSpec(names=("GOOSE_*", *MODEL_KEYS)),
        home_variable="GOOSE_PATH_ROOT",
        rule_files=(GOOSE_RULES,),
        # Its own default, `auto`, writes everywhere without a question.
        modes=permission_modes(
            AgentMode("approve"),
            # It does not say of what kind a tool is, so that edits are not recognized.
            accept_edits=AgentMode("approve", Fidelity.NARROWER),
            plan=AgentMode("approve", Fidelity.EMULATED),
            full_auto=AgentMode("auto"),
            skip=AgentMode("auto", Fidelity.NARROWER),
        ),
        error_text=_GOOSE_ERROR,
        has=frozenset({"cost"}),
    ),
    "kimi-cli": AgentQuirks(
        title="Kimi CLI",
        aliases=("kimi",),
        command=("kimi", "acp"),
        install="pip install kimi-cli==1.50.0 (later versions are empty)",
        login="run `kimi` and log in",
        environment=EnvironmentSpec(names=("KIMI_*", "MOONSHOT_*")),
        defaults={"KIMI_CLI_NO_AUTO_UPDATE": "1"},
        home_variable="KIMI_SHARE_DIR",
        edit_tools=frozenset({"StrReplaceFile", "WriteFile"}),
        hides_errors=True,
        modes=permission_modes(
            AgentMode("default"),
            plan=None,
            full_auto=AgentMode("default", Fidelity.EMULATED),
            skip=AgentMode("default", Fidelity.NARROWER),
        ),
        lacks=frozenset({"effort", "usage"}),
    ),
    "kimi-code": AgentQuirks(
        title="Kimi Code",
        command=("kimi", "acp"),
        install="npm install -g @moonshot-ai/kimi-code",
        login="run `kimi login`, or set KIMI_MODEL_NAME and KIMI_MODEL_API_KEY",
        environment=EnvironmentSpec(names=("KIMI_*", "MOONSHOT_*")),
        defaults={"KIMI_CODE_NO_AUTO_UPDATE": "1"},
        home_variable="KIMI_CODE_HOME",
        # By itself it edits files in the directory without a question. It does so through its
        # client if it can, where it asks; and we ask if it does not. It would also read its plan
        # through its client, which serves only the session's directories: then its turn ends.
        reads_files=False,
        remembers_mode=True,
        hides_errors=True,
        modes=permission_modes(
            AgentMode("default", Fidelity.EMULATED),
            plan=AgentMode("plan", Fidelity.EMULATED),
            full_auto=AgentMode("yolo"),
            skip=AgentMode("yolo", Fidelity.NARROWER),
        ),
        lacks=frozenset({"usage"}),
        has=frozenset({"fork"}),
    ),
    "opencode": AgentQuirks(
        title="opencode",
        command=("opencode", "acp"),
        install="npm install -g opencode-ai",
        login="run `opencode auth login`",
        environment=EnvironmentSpec(
            names=("OPENCODE_*", *MODEL_KEYS), secret=("OPENCODE_CONFIG_CONTENT",)
        ),
        defaults={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        config_variable="OPENCODE_CONFIG_CONTENT",
        leaves_processes=True,
        modes=permission_modes(
            AgentMode("build", Fidelity.EMULATED, config=_ASKING),
            plan=AgentMode("plan", Fidelity.EMULATED, config=_PLANNING),
            full_auto=AgentMode("build"),
        ),
        has=frozenset({"fork", "cost"}),
    ),
}
"""The known agents, by their ids."""


def quirks_of(agent: str | None) -> AgentQuirks:
    """Return what is known about an agent; for an unknown one, the defaults."""
    if agent is None:
        return UNKNOWN
    aliased = (each for each in BUNDLED.values() if agent in each.aliases)
    return BUNDLED.get(agent) or next(aliased, UNKNOWN)
