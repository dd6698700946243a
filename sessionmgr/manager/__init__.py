"""The session manager: sessions with agents, run, recorded, ended and gone on with."""

from sessionmgr.manager.ask import ask as ask
from sessionmgr.manager.clocks import Clocks as Clocks
from sessionmgr.manager.cursor import Cursor as Cursor
from sessionmgr.manager.manager import Manager as Manager, open_manager as open_manager
from sessionmgr.manager.plan import Grant as Grant, RunWish as RunWish
from sessionmgr.manager.run_handle import FollowUp as FollowUp, RunHandle as RunHandle
from sessionmgr.manager.session_handle import SessionHandle as SessionHandle
from sessionmgr.manager.status import (
    ProviderStatus as ProviderStatus,
    Spent as Spent,
    Status as Status,
    StoreStatus as StoreStatus,
)
from sessionmgr.manager.stored_records import (
    ProviderPause as ProviderPause,
    SessionSummary as SessionSummary,
)
from sessionmgr.manager.text_cursor import TextCursor as TextCursor

__all__ = [
    "Clocks",
    "Cursor",
    "FollowUp",
    "Grant",
    "Manager",
    "ProviderPause",
    "ProviderStatus",
    "RunHandle",
    "RunWish",
    "SessionHandle",
    "SessionSummary",
    "Spent",
    "Status",
    "StoreStatus",
    "TextCursor",
    "ask",
    "open_manager",
]
