"""The command line, one file per verb."""

from sessionmgr.cli.names import __dir__ as __dir__, __getattr__ as __getattr__
from sessionmgr.cli.start import start as start
