"""What happens in a session, as a closed union of types; what we do not know is kept as it is."""

from sessionmgr.model.event.account import (
    CompactionCompleted as CompactionCompleted,
    CompactionFailed as CompactionFailed,
    CompactionStarted as CompactionStarted,
    RateLimitUpdated as RateLimitUpdated,
    RetryScheduled as RetryScheduled,
    SessionStatsUpdated as SessionStatsUpdated,
    TokenUsageUpdated as TokenUsageUpdated,
)
from sessionmgr.model.event.codec import (
    EVENT_TYPES as EVENT_TYPES,
    AnyEvent as AnyEvent,
    KnownEvent as KnownEvent,
    decode_event as decode_event,
    encode_event as encode_event,
    encode_events as encode_events,
)
from sessionmgr.model.event.envelope import (
    Event as Event,
    UnknownEvent as UnknownEvent,
    stamp as stamp,
)
from sessionmgr.model.event.incident import (
    ErrorOccurred as ErrorOccurred,
    EventsPruned as EventsPruned,
    OutputReceived as OutputReceived,
    PolicyViolation as PolicyViolation,
    RawReceived as RawReceived,
    StallSuspected as StallSuspected,
)
from sessionmgr.model.event.life import (
    ProcessExited as ProcessExited,
    ProviderSessionUpdated as ProviderSessionUpdated,
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
    TurnCompleted as TurnCompleted,
)
from sessionmgr.model.event.talk import (
    ImageReceived as ImageReceived,
    MessageReceived as MessageReceived,
    MessageSent as MessageSent,
    MessageStreamed as MessageStreamed,
    PlanEntry as PlanEntry,
    PlanUpdated as PlanUpdated,
    ReasoningReceived as ReasoningReceived,
    ReasoningStreamed as ReasoningStreamed,
)
from sessionmgr.model.event.tool import (
    ToolApproval as ToolApproval,
    ToolApprovalDenied as ToolApprovalDenied,
    ToolApprovalGranted as ToolApprovalGranted,
    ToolApprovalRequested as ToolApprovalRequested,
    ToolCallCompleted as ToolCallCompleted,
    ToolCallEnded as ToolCallEnded,
    ToolCallFailed as ToolCallFailed,
    ToolCallStarted as ToolCallStarted,
    ToolCallUpdated as ToolCallUpdated,
)
