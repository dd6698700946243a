"""The port: the base class of adapters, the context of their runs, and their discovery."""

from sessionmgr.adapter.adapter import (
    AppendMessage as AppendMessage,
    AskHealth as AskHealth,
    InterruptRun as InterruptRun,
    ProviderAdapter as ProviderAdapter,
    ReleaseSession as ReleaseSession,
    StartRun as StartRun,
)
from sessionmgr.adapter.approval import (
    Allow as Allow,
    ApprovalRequest as ApprovalRequest,
    Approve as Approve,
    Decision as Decision,
    Deny as Deny,
    Effect as Effect,
)
from sessionmgr.adapter.connections import (
    Closable as Closable,
    Connect as Connect,
    Connection as Connection,
    ConnectionSpec as ConnectionSpec,
    Conversation as Conversation,
    Driver as Driver,
    KeyedSpec as KeyedSpec,
)
from sessionmgr.adapter.discovery import (
    GROUP as GROUP,
    find_adapter as find_adapter,
    installed_adapters as installed_adapters,
)
from sessionmgr.adapter.errors import (
    AdapterBroken as AdapterBroken,
    CapabilityMissing as CapabilityMissing,
    OptionInvalid as OptionInvalid,
    PermissionRefused as PermissionRefused,
    ProviderUnknown as ProviderUnknown,
    SecretFileRefused as SecretFileRefused,
    SessionError as SessionError,
    StartRefused as StartRefused,
)
from sessionmgr.adapter.health import Health as Health
from sessionmgr.adapter.options import Options as Options, resolve_options as resolve_options
from sessionmgr.adapter.permission_map import (
    HARMLESS as HARMLESS,
    MappedMode as MappedMode,
    PermissionMap as PermissionMap,
)
from sessionmgr.adapter.run_context import (
    UNLIMITED_BUDGET as UNLIMITED_BUDGET,
    Budget as Budget,
    RunContext as RunContext,
    RunControl as RunControl,
    RunSpec as RunSpec,
    StopReason as StopReason,
    is_valid_amount as is_valid_amount,
)
from sessionmgr.model import (
    EMULATED as EMULATED,
    NATIVE as NATIVE,
    UNSUPPORTED as UNSUPPORTED,
    Capabilities as Capabilities,
    Negotiation as Negotiation,
)

__all__ = [
    "EMULATED",
    "GROUP",
    "HARMLESS",
    "NATIVE",
    "UNLIMITED_BUDGET",
    "UNSUPPORTED",
    "AdapterBroken",
    "Allow",
    "AppendMessage",
    "ApprovalRequest",
    "Approve",
    "AskHealth",
    "Budget",
    "Capabilities",
    "CapabilityMissing",
    "Closable",
    "Connect",
    "Connection",
    "ConnectionSpec",
    "Conversation",
    "Decision",
    "Deny",
    "Driver",
    "Effect",
    "Health",
    "InterruptRun",
    "KeyedSpec",
    "MappedMode",
    "Negotiation",
    "OptionInvalid",
    "Options",
    "PermissionMap",
    "PermissionRefused",
    "ProviderAdapter",
    "ProviderUnknown",
    "ReleaseSession",
    "RunContext",
    "RunControl",
    "RunSpec",
    "SecretFileRefused",
    "SessionError",
    "StartRefused",
    "StartRun",
    "StopReason",
    "find_adapter",
    "installed_adapters",
    "is_valid_amount",
    "resolve_options",
]
