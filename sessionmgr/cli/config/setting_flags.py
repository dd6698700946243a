"""Flags of settings; their values are read with the settings of other sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.cli.config.settings import SETTINGS

if TYPE_CHECKING:
    import argparse


def add_setting_flags(
    parser: argparse.ArgumentParser, *names: str, default: str | None = None
) -> None:
    """Add the flags of these settings; their values are in `args.configuration`.

    Args:
        parser: The parser of a verb.
        names: Names of settings.
        default: The default that the help names instead of that of the setting.
    """
    for name in names:
        setting = SETTINGS[name]
        text = setting.help
        if default is not None:
            text = f"{text.partition(' (default')[0]} (default: {default})"
        if setting.kind.shape:
            parser.add_argument(
                *setting.flags,
                dest=name,
                action="append",
                metavar=setting.word or setting.kind.shape,
                help=text,
            )
        else:
            parser.add_argument(
                *setting.flags, dest=name, action="append_const", const="true", help=text
            )


def add_concurrency_flag(parser: argparse.ArgumentParser) -> None:
    """Add `-n 4`, which also takes a limit per provider: `-n claude=8`."""
    parser.add_argument(
        "-n",
        "--concurrency",
        action="append",
        metavar="N|PROVIDER=N",
        help=SETTINGS["concurrency"].help,
    )
