"""Adapter of the provider `shell`, whose prompts are commands of the operating system."""

from sessionmgr_adapters.shell.adapter import ShellAdapter as ShellAdapter
from sessionmgr_adapters.shell.options import ShellOptions as ShellOptions
