"""The reference page: all sections, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sessionmgr
from sessionmgr.reference import commands, error_tree, providers, values
from sessionmgr.reference.markdown import link, section

PATH: Final = Path(sessionmgr.__path__[0]) / "REFERENCE.md"

HEAD: Final = """\
# Reference

`python -m sessionmgr.reference --write` generates this page from the code and its docstrings.
`sessionmgr schema` prints the JSON Schema of events, jobs, results and options."""


def render() -> str:
    """Return the page."""
    sections = (
        values.events(),
        values.jobs(),
        values.results(),
        values.parts(),
        values.ends(),
        values.arguments(),
        values.approval(),
        commands.settings(),
        commands.variables(),
        commands.names(),
        providers.capabilities(),
        providers.permission_modes(),
        *filter(None, (providers.agents(),)),
        providers.options(),
        values.rules(),
        commands.exit_codes(),
        commands.commands(),
        error_tree.error_tree(),
    )
    titles = [
        line.removeprefix("## ")
        for section in sections
        for line in section.splitlines()
        if line.startswith("## ")
    ]
    contents = " · ".join(map(link, titles))
    return section(HEAD, contents, *sections) + "\n"
