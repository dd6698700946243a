"""The session manager: sessions with agents, run, recorded, ended and gone on with."""

from sessionmgr.manager.ask import ask as ask
from sessionmgr.manager.clocks import Clocks as Clocks
from sessionmgr.manager.cursor import Cursor as Cursor
from sessionmgr.manager.manager import Manager as Manager, open_manager as open_manager
from sessionmgr.manager.run_handle import FollowUp as FollowUp, RunHandle as RunHandle
from sessionmgr.manager.run_plan import RunGrant as RunGrant, RunRequest as RunRequest
from sessionmgr.manager.session_handle import SessionHandle as SessionHandle
from sessionmgr.manager.status import (
    ManagerStatus as ManagerStatus,
    ProviderStatus as ProviderStatus,
    StoreStatus as StoreStatus,
    UsageAndCost as UsageAndCost,
)
from sessionmgr.manager.store_queries import (
    ProviderPause as ProviderPause,
    SessionSummary as SessionSummary,
)
from sessionmgr.manager.text_cursor import TextCursor as TextCursor

__all__ = [
    "Clocks",
    "Cursor",
    "FollowUp",
    "Manager",
    "ManagerStatus",
    "ProviderPause",
    "ProviderStatus",
    "RunGrant",
    "RunHandle",
    "RunRequest",
    "SessionHandle",
    "SessionSummary",
    "StoreStatus",
    "TextCursor",
    "UsageAndCost",
    "ask",
    "open_manager",
]
