"""Child process trees: what is started, who owns it, how it is talked to and how it ends."""

from sessionmgr.process.names import __dir__ as __dir__, __getattr__ as __getattr__
