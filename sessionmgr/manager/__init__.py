"""The session manager: it starts, records, supervises and resumes sessions with agents."""

from sessionmgr.manager.argument_checks import (
    BATCH_ARGUMENTS as BATCH_ARGUMENTS,
    SESSION_ARGUMENTS as SESSION_ARGUMENTS,
    ArgumentKind as ArgumentKind,
    request_of_arguments as request_of_arguments,
    require_arguments as require_arguments,
)
from sessionmgr.manager.ask import ask as ask
from sessionmgr.manager.clocks import DEFAULT_CLOCKS as DEFAULT_CLOCKS, Clocks as Clocks
from sessionmgr.manager.cursor import Cursor as Cursor
from sessionmgr.manager.errors import (
    ArgumentTypeInvalid as ArgumentTypeInvalid,
    ArgumentValueInvalid as ArgumentValueInvalid,
    BudgetExhausted as BudgetExhausted,
    BudgetUnenforceable as BudgetUnenforceable,
    DirectoryMissing as DirectoryMissing,
    InboxFull as InboxFull,
    ManagerClosing as ManagerClosing,
    ManagerDown as ManagerDown,
    NotInTrio as NotInTrio,
    NotPausable as NotPausable,
    NotResumable as NotResumable,
    ProviderDown as ProviderDown,
    ProviderNotReady as ProviderNotReady,
    RecorderUnavailable as RecorderUnavailable,
    RunRequestInvalid as RunRequestInvalid,
    RunRequestUnsupported as RunRequestUnsupported,
    SessionBusy as SessionBusy,
    SessionIsClosed as SessionIsClosed,
)
from sessionmgr.manager.handles import (
    FollowUp as FollowUp,
    RunBlock as RunBlock,
    RunHandle as RunHandle,
    SessionHandle as SessionHandle,
)
from sessionmgr.manager.manager import Manager as Manager, open_manager as open_manager
from sessionmgr.manager.owner import (
    ManagerOwner as ManagerOwner,
    describe_holder as describe_holder,
    is_lease_valid as is_lease_valid,
    is_owner_alive as is_owner_alive,
)
from sessionmgr.manager.partial_costs import CostGaps as CostGaps, read_costs as read_costs
from sessionmgr.manager.resume import (
    CONTINUE as CONTINUE,
    FOLLOWS as FOLLOWS,
    recorded_resume_spec as recorded_resume_spec,
    resume_message as resume_message,
    was_interrupted_unanswered as was_interrupted_unanswered,
)
from sessionmgr.manager.resume_spec import (
    ResumeSpec as ResumeSpec,
    restore_options as restore_options,
)
from sessionmgr.manager.run_plan import (
    CommonWishes as CommonWishes,
    RunArguments as RunArguments,
    RunGrant as RunGrant,
    RunRequest as RunRequest,
)
from sessionmgr.manager.run_records import (
    fold_run as fold_run,
    read_session_runs as read_session_runs,
)
from sessionmgr.manager.status import (
    ManagerStatus as ManagerStatus,
    ProviderStatus as ProviderStatus,
    StoreStatus as StoreStatus,
    UsageAndCost as UsageAndCost,
    usage_and_cost as usage_and_cost,
)
from sessionmgr.manager.store_queries import (
    ProviderPause as ProviderPause,
    SessionSummary as SessionSummary,
    read_provider_pauses as read_provider_pauses,
)
from sessionmgr.manager.supervision_tree import translate_group as translate_group
from sessionmgr.manager.text_cursor import TextCursor as TextCursor

__all__ = [
    "BATCH_ARGUMENTS",
    "CONTINUE",
    "DEFAULT_CLOCKS",
    "FOLLOWS",
    "SESSION_ARGUMENTS",
    "ArgumentKind",
    "ArgumentTypeInvalid",
    "ArgumentValueInvalid",
    "BudgetExhausted",
    "BudgetUnenforceable",
    "Clocks",
    "CommonWishes",
    "CostGaps",
    "Cursor",
    "DirectoryMissing",
    "FollowUp",
    "InboxFull",
    "Manager",
    "ManagerClosing",
    "ManagerDown",
    "ManagerOwner",
    "ManagerStatus",
    "NotInTrio",
    "NotPausable",
    "NotResumable",
    "ProviderDown",
    "ProviderNotReady",
    "ProviderPause",
    "ProviderStatus",
    "RecorderUnavailable",
    "ResumeSpec",
    "RunArguments",
    "RunBlock",
    "RunGrant",
    "RunHandle",
    "RunRequest",
    "RunRequestInvalid",
    "RunRequestUnsupported",
    "SessionBusy",
    "SessionHandle",
    "SessionIsClosed",
    "SessionSummary",
    "StoreStatus",
    "TextCursor",
    "UsageAndCost",
    "ask",
    "describe_holder",
    "fold_run",
    "is_lease_valid",
    "is_owner_alive",
    "open_manager",
    "read_costs",
    "read_provider_pauses",
    "read_session_runs",
    "recorded_resume_spec",
    "request_of_arguments",
    "require_arguments",
    "restore_options",
    "resume_message",
    "translate_group",
    "usage_and_cost",
    "was_interrupted_unanswered",
]
