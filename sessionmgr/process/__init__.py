"""Child process trees: commands, environments, launchers, pipes and exit reports."""

from sessionmgr.process.names import __dir__ as __dir__, __getattr__ as __getattr__
