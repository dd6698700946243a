"""Child process trees: what is started, who owns it, how it is talked to and how it ends."""

from sessionmgr.process.command import Command as Command
from sessionmgr.process.descriptors import Descriptors as Descriptors, raise_limit as raise_limit
from sessionmgr.process.environment import (
    Declared as Declared,
    When as When,
    build_environment as build_environment,
    secrets as secrets,
)
from sessionmgr.process.facts import (
    Emptied as Emptied,
    Ending as Ending,
    ExitFacts as ExitFacts,
    LeaderExit as LeaderExit,
    LeftRunning as LeftRunning,
)
from sessionmgr.process.ladder import (
    Ladder as Ladder,
    end_tree as end_tree,
    open_tree as open_tree,
)
from sessionmgr.process.launcher import ChildTree as ChildTree, Launcher as Launcher
from sessionmgr.process.opening import (
    Kind as Kind,
    OpenLauncher as OpenLauncher,
    open_launcher as open_launcher,
)
from sessionmgr.process.outbox import Outbox as Outbox
from sessionmgr.process.prompt import (
    Place as Place,
    PrivateFiles as PrivateFiles,
    place_of as place_of,
)
from sessionmgr.process.pump import Pump as Pump, Pumped as Pumped
from sessionmgr.process.resume import checked_resume_id as checked_resume_id
from sessionmgr.process.roll import BootReport as BootReport
from sessionmgr.process.shortage import is_passing as is_passing
from sessionmgr.process.tail import Tail as Tail

__all__ = [
    "BootReport",
    "ChildTree",
    "Command",
    "Declared",
    "Descriptors",
    "Emptied",
    "Ending",
    "ExitFacts",
    "Kind",
    "Ladder",
    "Launcher",
    "LeaderExit",
    "LeftRunning",
    "OpenLauncher",
    "Outbox",
    "Place",
    "PrivateFiles",
    "Pump",
    "Pumped",
    "Tail",
    "When",
    "build_environment",
    "checked_resume_id",
    "end_tree",
    "is_passing",
    "open_launcher",
    "open_tree",
    "place_of",
    "raise_limit",
    "secrets",
]
