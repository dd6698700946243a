"""The glossary: names of each concept on the command line, in jobs, settings, Python and results.

One concept has one name. A flag is the name of the setting or of the job's field, with hyphens; a
flag that may be repeated is its singular (`--image`, `--env`, `--clock`). The table lists every
concept that has a name in more than one place, and therefore also the few exceptions.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Concept(NamedTuple):
    """A concept and its names; an empty name means that it has none there."""

    meaning: str
    flag: str = ""
    field: str = ""
    """The field of a job."""
    setting: str = ""
    """The key in `sessionmgr.toml`."""
    python: str = ""
    """The parameter in Python, after its callable: `submit.model`."""
    result: str = ""
    """The field of a result or an event, after its type: `RunResult.text`."""

    @property
    def variable(self) -> str:
        """The environment variable; each setting except `options` has one."""
        if self.setting in ("", "options"):
            return ""
        return _VARIABLES.get(self.setting, f"SESSIONMGR_{self.setting.upper()}")


OF_PROVIDER: Final = "provider.NAME"
"""The table of one provider's defaults."""
_VARIABLES: Final = {
    OF_PROVIDER: "SESSIONMGR_PROVIDER_NAME_KEY",
    "agents": "SESSIONMGR_AGENTS_FILE",
}
"""Variables that are not named as their settings."""


def _same(meaning: str, name: str, owner: str = "submit") -> Concept:
    """Return a concept with one name in all places."""
    return Concept(meaning, f"--{name.replace('_', '-')}", name, name, f"{owner}.{name}")


CONCEPTS: Final = (
    # --- arguments of a run ----------------------------------------------------------------------
    _same("provider of the agent", "provider", "open_session"),
    _same("model", "model"),
    _same("reasoning effort", "effort"),
    _same("what the agent may do without asking", "permission_mode"),
    _same("the only tools that the agent may use", "tools_allowed"),
    _same("tools that the agent must not use", "tools_denied"),
    _same("maximum number of turns", "max_turns"),
    Concept("time limit of a run", "--deadline", "deadline", "deadline", "Clocks.deadline"),
    Concept(
        "spending limit in US dollars", "--budget-usd", "budget_usd", "budget_usd", "Budget.usd"
    ),
    Concept("time limits of silence", "--clock", "", "clocks", "submit.clocks"),
    Concept("options of the provider", "--option", "options", "options", "submit.options"),
    Concept("prompt", "PROMPT", "prompt", "", "submit.prompt"),
    Concept("file with the prompt", "--prompt-file", "prompt_file"),
    Concept("working directory", "--cwd", "cwd", "", "open_session.cwd"),
    Concept("required capabilities", "--require", "require", "", "submit.require"),
    Concept("preferred capabilities", "--prefer", "prefer", "", "submit.prefer"),
    Concept("system prompt", "--system-prompt", "system_prompt", "", "submit.system_prompt"),
    Concept("JSON Schema of the output", "--schema", "schema", "", "submit.schema"),
    Concept("images of the prompt", "--image", "images", "", "submit.images"),
    Concept("environment variables of the agent", "--env", "env", "", "submit.env"),
    Concept(
        "the caller's own data",
        "--metadata",
        "metadata",
        "",
        "submit.metadata",
        "RunResult.metadata",
    ),
    # --- arguments of a batch --------------------------------------------------------------------
    Concept("file of jobs", "JOBS", "", "", "run_batch.jobs"),
    Concept("directory of the batch", "--out", "", "", "run_batch.out"),
    Concept(
        "maximum number of concurrent jobs",
        "--concurrency",
        "",
        "concurrency",
        "run_batch.concurrency",
    ),
    Concept(
        "the same for one provider", "--concurrency", "", "per_provider", "run_batch.per_provider"
    ),
    Concept("defaults of one provider", "--set", "", OF_PROVIDER, "run_batch.provider_defaults"),
    Concept("retries of a failed job", "--retries", "", "retries", "run_batch.retries"),
    Concept("kinds of failure to retry", "--retry-on", "", "retry_on", "run_batch.retry_on"),
    Concept("how to restart a job", "--retry-from", "", "retry_from", "run_batch.retry_from"),
    Concept(
        "failures that stop the batch",
        "--max-failures",
        "",
        "max_failures",
        "run_batch.max_failures",
    ),
    Concept("leave failed jobs alone", "--keep-failed", "", "keep_failed", "run_batch.keep_failed"),
    Concept("answers to approval requests", "--approve", "", "approve", "run_batch.approve"),
    Concept("treatment of denied jobs", "--on-denied", "", "on_denied", "run_batch.on_denied"),
    Concept("run changed jobs again", "--force", "", "", "run_batch.force"),
    Concept("use paused providers", "--ignore-pauses", "", "", "run_batch.ignore_pauses"),
    Concept("jobs to start at most", "--limit", "", "", "run_batch.limit"),
    Concept("jobs to run", "--only", "", "", "run_batch.only"),
    Concept("jobs to skip", "--skip", "", "", "run_batch.skip"),
    # --- this machine ----------------------------------------------------------------------------
    Concept("file that stores the sessions", "--store", "", "store", "open_manager.store"),
    Concept("file for the log", "--log-file", "", "log_file"),
    Concept("directory for all traffic with the agents", "--capture", "", "capture"),
    Concept("registry file of agents", "--agents", "", "agents", "open_manager.agents"),
    # --- ids and results -------------------------------------------------------------------------
    Concept("id of a job", "", "id", "", "", "JobResult.job"),
    Concept("id of a run", "", "", "", "", "RunResult.id"),
    Concept("id of a session", "", "", "", "open_session.session_id", "RunResult.session_id"),
    Concept("id of the agent's own session", "", "", "", "", "RunResult.provider_session_id"),
    Concept("text that the agent ended with", "", "", "", "", "RunResult.text"),
    Concept("one whole message", "", "", "", "", "MessageReceived.content"),
    Concept("one piece of a message as it is written", "", "", "", "", "MessageStreamed.delta"),
    Concept("cost in US dollars", "", "", "", "", "Cost.usd"),
)
"""All concepts, in the order of the reference."""

TITLES: Final = (
    *("concept", "flag", "job field", "setting", "environment variable", "Python", "result"),
)


def table_rows() -> list[tuple[str, ...]]:
    """Return the rows of the table under `TITLES`; the reference prints them."""
    return [
        (each.meaning, each.flag, each.field, each.setting, each.variable, each.python, each.result)
        for each in CONCEPTS
    ]
