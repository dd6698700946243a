"""Plain values: what happened, what became of it, what it cost and what was allowed.

No I/O, no clock, no trio.
"""

from sessionmgr.model.capability import (
    CAPABILITIES as CAPABILITIES,
    EMULATED as EMULATED,
    NATIVE as NATIVE,
    UNSUPPORTED as UNSUPPORTED,
    Capabilities as Capabilities,
    Degraded as Degraded,
    Negotiation as Negotiation,
    Support as Support,
    negotiate as negotiate,
)
from sessionmgr.model.end import (
    ENDS as ENDS,
    Cause as Cause,
    End as End,
    Reason as Reason,
)
from sessionmgr.model.event import (
    EVENT_TYPES as EVENT_TYPES,
    AnyEvent as AnyEvent,
    CompactionCompleted as CompactionCompleted,
    CompactionFailed as CompactionFailed,
    CompactionStarted as CompactionStarted,
    ErrorOccurred as ErrorOccurred,
    Event as Event,
    EventsPruned as EventsPruned,
    ImageReceived as ImageReceived,
    KnownEvent as KnownEvent,
    MessageReceived as MessageReceived,
    MessageSent as MessageSent,
    MessageStreamed as MessageStreamed,
    OutputReceived as OutputReceived,
    PlanEntry as PlanEntry,
    PlanUpdated as PlanUpdated,
    PolicyViolation as PolicyViolation,
    ProcessExited as ProcessExited,
    ProviderSessionUpdated as ProviderSessionUpdated,
    RateLimitUpdated as RateLimitUpdated,
    RawReceived as RawReceived,
    ReasoningReceived as ReasoningReceived,
    ReasoningStreamed as ReasoningStreamed,
    RetryScheduled as RetryScheduled,
    RunCancelled as RunCancelled,
    RunCompleted as RunCompleted,
    RunEnded as RunEnded,
    RunFailed as RunFailed,
    RunPaused as RunPaused,
    RunRateLimited as RunRateLimited,
    RunStarted as RunStarted,
    RunTimedOut as RunTimedOut,
    SessionClosed as SessionClosed,
    SessionCreated as SessionCreated,
    SessionReopened as SessionReopened,
    SessionStatsUpdated as SessionStatsUpdated,
    StallSuspected as StallSuspected,
    TokenUsageUpdated as TokenUsageUpdated,
    ToolApproval as ToolApproval,
    ToolApprovalDenied as ToolApprovalDenied,
    ToolApprovalGranted as ToolApprovalGranted,
    ToolApprovalRequested as ToolApprovalRequested,
    ToolCallCompleted as ToolCallCompleted,
    ToolCallEnded as ToolCallEnded,
    ToolCallFailed as ToolCallFailed,
    ToolCallStarted as ToolCallStarted,
    ToolCallUpdated as ToolCallUpdated,
    TurnCompleted as TurnCompleted,
    UnknownEvent as UnknownEvent,
    decode_event as decode_event,
    encode_event as encode_event,
    encode_events as encode_events,
    stamp as stamp,
)
from sessionmgr.model.failure import (
    Failure as Failure,
    FailureKind as FailureKind,
)
from sessionmgr.model.ids import (
    Kind as Kind,
    kind_of as kind_of,
    new_id as new_id,
)
from sessionmgr.model.json import (
    Json as Json,
    Unreadable as Unreadable,
    Untyped as Untyped,
    encode_json as encode_json,
    parse_json as parse_json,
    parse_typed as parse_typed,
)
from sessionmgr.model.ledger import (
    Booking as Booking,
    UsageLedger as UsageLedger,
    UsageReport as UsageReport,
)
from sessionmgr.model.permission import (
    Fidelity as Fidelity,
    Permission as Permission,
    PermissionDenial as PermissionDenial,
    PermissionMode as PermissionMode,
    PermissionModeName as PermissionModeName,
)
from sessionmgr.model.reduce import (
    reduce as reduce,
    reduce_all as reduce_all,
)
from sessionmgr.model.run import (
    Image as Image,
    Run as Run,
    RunResult as RunResult,
    ToolCalls as ToolCalls,
    decode_result as decode_result,
    decode_run as decode_run,
)
from sessionmgr.model.schema import (
    event_schema as event_schema,
    result_schema as result_schema,
)
from sessionmgr.model.session import (
    Session as Session,
)
from sessionmgr.model.snapshot import (
    Snapshot as Snapshot,
)
from sessionmgr.model.status import (
    TERMINAL as TERMINAL,
    TERMINAL_TYPES as TERMINAL_TYPES,
    TRANSITIONS as TRANSITIONS,
    RunStatus as RunStatus,
    Step as Step,
    advance as advance,
)
from sessionmgr.model.tool_summary import tool_summary as tool_summary
from sessionmgr.model.usage import (
    Cost as Cost,
    Provenance as Provenance,
    Usage as Usage,
    total_cost as total_cost,
)
