"""Lazy exports of the package: its public names, and the module that each is imported from.

A command does not have to load the modules that it does not need.
"""

from typing import Final

from sessionmgr.lazy_exports import lazy_exports

PUBLIC: Final = {
    "sessionmgr.cli.config.configuration": ("Configuration",),
    "sessionmgr.cli.config.settings": ("SETTINGS",),
    "sessionmgr.cli.parser": ("EXIT_CODES", "PROGRAM", "Parser", "add_global_flags"),
    "sessionmgr.cli.start": ("start",),
    "sessionmgr.cli.verb_table": ("VERBS", "load_verb"),
}
__getattr__, __dir__ = lazy_exports("sessionmgr.cli", PUBLIC)
