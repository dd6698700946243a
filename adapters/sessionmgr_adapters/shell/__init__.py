"""Commands of the system, run as sessions are: the provider `shell`."""

from sessionmgr_adapters.shell.adapter import ShellAdapter as ShellAdapter
from sessionmgr_adapters.shell.options import ShellOptions as ShellOptions
