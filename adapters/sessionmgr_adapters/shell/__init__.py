"""The provider `shell`: a prompt is a command of the system."""

from sessionmgr_adapters.shell.adapter import ShellAdapter as ShellAdapter
from sessionmgr_adapters.shell.options import ShellOptions as ShellOptions
