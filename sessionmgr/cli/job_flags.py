"""Flags for the fields of a job: the arguments of one run, or the defaults of a batch's jobs."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from sessionmgr.batch import Job
from sessionmgr.cli.config.provider_defaults import add_set_flag
from sessionmgr.cli.config.setting_flags import add_setting_flags
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.inputs import read_env, read_options, read_schema, read_text_file
from sessionmgr.manager import BudgetUnenforceable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.model import Json

SETTINGS: Final = (
    *("provider", "model", "effort", "permission_mode", "tools_allowed", "tools_denied"),
    *("max_turns", "deadline", "budget_usd", "clocks"),
)
UNNAMED: Final = "-"
NO_PROVIDER: Final = (
    "--option: no provider is chosen; add -p PROVIDER, or use --set PROVIDER.options.NAME=VALUE"
)
ENV: Final = "environment variable of the agent; may be repeated (default: none)"
ENV_FILE: Final = "read environment variables from a file, one per line (default: none)"
REQUIRE: Final = (
    "capabilities that the provider must have, separated by commas (see sessionmgr adapters; "
    "default: none)"
)
PREFER: Final = "capabilities to use if the provider has them (default: none)"
OPTION: Final = (
    "option of the provider (see sessionmgr schema options PROVIDER); may be repeated (default: "
    "none; timeout=30 stops a command of the provider shell after 30 s)"
)


def add_job_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each field of a job except its id and prompt."""
    add_session_flags(parser, "directory in which the agent works (default: the current one)")
    parser.add_argument("--require", action="append", metavar="NAMES", help=REQUIRE)
    parser.add_argument("--prefer", action="append", metavar="NAMES", help=PREFER)
    parser.add_argument(
        "--schema",
        metavar="FILE",
        help="JSON Schema of the structured output (default: none, the output is text)",
    )
    parser.add_argument(
        "--image",
        action="append",
        metavar="FILE",
        help="image for the prompt; may be repeated (default: none)",
    )
    parser.add_argument(
        "--metadata",
        action="append",
        metavar="K=V",
        help="entry of the result's metadata; may be repeated (default: none)",
    )


def add_session_flags(parser: argparse.ArgumentParser, cwd: str) -> None:
    """Add a flag for each field of a job that does not depend on its prompt.

    The fields without a flag are None in the arguments; `cwd` is the help of `--cwd`.
    """
    add_setting_flags(parser, *SETTINGS)
    add_set_flag(parser)
    parser.add_argument("--cwd", metavar="DIR", help=cwd)
    parser.add_argument(
        "--system-prompt", metavar="TEXT", help="system prompt (default: the agent's own)"
    )
    parser.add_argument(
        "--system-prompt-file",
        metavar="FILE",
        help="read the system prompt from a file (default: none)",
    )
    parser.add_argument("--env", action="append", metavar="K=V", help=ENV)
    parser.add_argument("--env-file", metavar="FILE", help=ENV_FILE)
    parser.add_argument("--option", action="append", metavar="K=V", help=OPTION)
    parser.set_defaults(require=None, prefer=None, schema=None, image=None, metadata=None)


def provider_jobs(configuration: Configuration) -> dict[str, Job]:
    """Return the defaults of each provider as jobs."""
    return {
        # The type of each setting, which is that of the field, has validated its value.
        provider: Job(id=UNNAMED, provider=provider, **cast("dict[str, Any]", defaults))
        for provider, defaults in configuration.defaults.items()
    }


def job_from_flags(args: argparse.Namespace, prompt: str | None = None) -> Job:
    """Return a job without an id, from the flags and the settings.

    Raises:
        CommandLineInvalid: A flag has an invalid value.
    """
    configuration: Configuration = args.configuration
    if args.cwd is not None:
        _require_directory(args.cwd)
    return Job(
        id=UNNAMED,
        prompt=prompt,
        provider=configuration.provider,
        model=configuration.model,
        effort=configuration.effort,
        cwd=args.cwd,
        permission_mode=configuration.permission_mode,
        tools_allowed=configuration.tools_allowed,
        tools_denied=configuration.tools_denied,
        require=_words(args.require),
        prefer=_words(args.prefer),
        system_prompt=_system_prompt(args),
        max_turns=configuration.max_turns,
        deadline=configuration.deadline or None,
        budget_usd=configuration.budget_usd,
        schema=None if args.schema is None else read_schema(args.schema),
        images=_images(args.image),
        env=read_env(args.env or (), args.env_file) or None,
        options=provider_options(args, configuration.provider) or None,
        metadata=read_options("--metadata", args.metadata or ()) or None,
    )


def provider_options(args: argparse.Namespace, provider: str | None) -> dict[str, Json]:
    """Return the options of a provider: those of the settings, overridden by flags."""
    configuration: Configuration = args.configuration
    known = configuration.options.get(provider, {}) if provider is not None else {}
    return {**known, **read_options("--option", args.option or ())}


def _system_prompt(args: argparse.Namespace) -> str | None:
    if args.system_prompt_file is None:
        said: str | None = args.system_prompt
        return said
    if args.system_prompt is not None:
        raise CommandLineInvalid("--system-prompt and --system-prompt-file: give only one of them")
    return read_text_file("--system-prompt-file", args.system_prompt_file)


def _require_directory(path: str) -> None:
    if not Path(path).is_dir():
        what = "is not a directory" if Path(path).exists() else "no such directory"
        raise CommandLineInvalid(f"--cwd: {what}: {path}")


def _images(paths: list[str] | None) -> tuple[str, ...] | None:
    if paths is None:
        return None
    images = tuple(str(Path(path).absolute()) for path in paths)
    for image in images:
        if not Path(image).is_file():
            raise CommandLineInvalid(f"--image: no such file: {image}")
    return images


@contextmanager
def naming_budget_source(configuration: Configuration) -> Generator[None]:
    """Add the setting and its source to the error about a budget.

    Raises:
        CommandLineInvalid: The provider cannot enforce the budget.
    """
    try:
        yield
    except BudgetUnenforceable as error:
        source = configuration.sources.get("budget_usd")
        if source is None:
            raise
        named = f"budget_usd ({configuration.budget_usd}, from {source})"
        raise CommandLineInvalid(f"{named}: {error.why}") from error


def _words(given: list[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    return tuple(word.strip() for each in given for word in each.split(",") if word.strip())
