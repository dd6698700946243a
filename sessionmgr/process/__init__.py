"""Child process trees: what is started, who owns it, how it is talked to and how it ends."""

from sessionmgr.process.command import Command as Command
