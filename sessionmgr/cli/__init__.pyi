from sessionmgr.cli.config.configuration import Configuration as Configuration
from sessionmgr.cli.config.settings import SETTINGS as SETTINGS
from sessionmgr.cli.parser import (
    EXIT_CODES as EXIT_CODES,
    PROGRAM as PROGRAM,
    Parser as Parser,
    add_global_flags as add_global_flags,
)
from sessionmgr.cli.start import start as start
from sessionmgr.cli.verb_table import VERBS as VERBS, load_verb as load_verb
