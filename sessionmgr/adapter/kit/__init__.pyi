from sessionmgr.adapter.kit.bounded_file import (
    LARGEST_TEXT as LARGEST_TEXT,
    FileRefusedError as FileRefusedError,
    read_bounded_bytes as read_bounded_bytes,
    read_bounded_text as read_bounded_text,
    read_json_object as read_json_object,
    read_optional_file as read_optional_file,
)
from sessionmgr.adapter.kit.change_signal import ChangeSignal as ChangeSignal
from sessionmgr.adapter.kit.child_run import ChildPhase as ChildPhase, ChildRun as ChildRun
from sessionmgr.adapter.kit.command_line import (
    GIT_VALUED as GIT_VALUED,
    LAUNCH_ARGUMENTS as LAUNCH_ARGUMENTS,
    LAUNCHER_COMMANDS as LAUNCHER_COMMANDS,
    MULTI_CALL as MULTI_CALL,
    PREFIX_COMMANDS as PREFIX_COMMANDS,
    SHELLS as SHELLS,
    CommandCall as CommandCall,
    CommandWords as CommandWords,
    NotSimpleError as NotSimpleError,
    ShellWord as ShellWord,
    SimpleCommand as SimpleCommand,
    command_of_argv as command_of_argv,
    commands_of_line as commands_of_line,
    find_command_ranges as find_command_ranges,
    is_opaque_command as is_opaque_command,
    launch_argument as launch_argument,
    plain_argv as plain_argv,
    read_script as read_script,
    shell_script_index as shell_script_index,
    shell_word as shell_word,
    split_argv as split_argv,
)
from sessionmgr.adapter.kit.connection_pool import (
    ConnectionLease as ConnectionLease,
    ConnectionPool as ConnectionPool,
)
from sessionmgr.adapter.kit.conversation_adapter import ConversationAdapter as ConversationAdapter
from sessionmgr.adapter.kit.conversation_run import (
    ConversationRun as ConversationRun,
    PhasedConversationRun as PhasedConversationRun,
)
from sessionmgr.adapter.kit.delegating_adapter import (
    DelegatingAdapter as DelegatingAdapter,
    combined_capabilities as combined_capabilities,
)
from sessionmgr.adapter.kit.file_fingerprint import (
    FilesState as FilesState,
    directory_and_parents as directory_and_parents,
    directory_states as directory_states,
    file_state as file_state,
    files_state as files_state,
)
from sessionmgr.adapter.kit.file_follower import MEGABYTE as MEGABYTE, GrowingFile as GrowingFile
from sessionmgr.adapter.kit.follow_ups import FollowUps as FollowUps
from sessionmgr.adapter.kit.function_tools import (
    AnyTool as AnyTool,
    FunctionTool as FunctionTool,
    FunctionTools as FunctionTools,
    ToolOutcome as ToolOutcome,
    serve_mcp_message as serve_mcp_message,
    tool_description as tool_description,
)
from sessionmgr.adapter.kit.future import Future as Future
from sessionmgr.adapter.kit.images import (
    MAX_IMAGE_BYTES as MAX_IMAGE_BYTES,
    ImageCollector as ImageCollector,
    ImageRefusedError as ImageRefusedError,
    PromptImage as PromptImage,
    read_images as read_images,
)
from sessionmgr.adapter.kit.json_rpc_caller import (
    JsonRpcCaller as JsonRpcCaller,
    PeerReply as PeerReply,
    PeerRequest as PeerRequest,
    RpcAnswer as RpcAnswer,
    RpcCall as RpcCall,
    RpcOutgoing as RpcOutgoing,
    RpcRefusal as RpcRefusal,
)
from sessionmgr.adapter.kit.json_rpc_connection import (
    JsonRpcConnection as JsonRpcConnection,
    JsonRpcConversation as JsonRpcConversation,
    decode_by_method as decode_by_method,
)
from sessionmgr.adapter.kit.json_rpc_peer import (
    BUSY as BUSY,
    DEADLINE as DEADLINE,
    WRITE_BUFFER_FULL as WRITE_BUFFER_FULL,
    JsonRpcPeer as JsonRpcPeer,
)
from sessionmgr.adapter.kit.paths import (
    PROTECTED_DIRECTORIES as PROTECTED_DIRECTORIES,
    PROTECTED_FILES as PROTECTED_FILES,
    is_protected as is_protected,
    resolve_within as resolve_within,
)
from sessionmgr.adapter.kit.program_version import (
    missing_program_reason as missing_program_reason,
    outdated_failure as outdated_failure,
    read_version as read_version,
    version_numbers as version_numbers,
)
from sessionmgr.adapter.kit.readiness import program_health as program_health
from sessionmgr.adapter.kit.request_handler import (
    TOO_MANY_REQUESTS as TOO_MANY_REQUESTS,
    RequestHandler as RequestHandler,
)
from sessionmgr.adapter.kit.run_adapter import RunAdapter as RunAdapter
from sessionmgr.adapter.kit.run_end import (
    config_failure as config_failure,
    connection_failure as connection_failure,
    exit_failure as exit_failure,
    finish_with_output as finish_with_output,
    parse_output as parse_output,
    process_exit_event as process_exit_event,
    start_failure as start_failure,
)
from sessionmgr.adapter.kit.session_pool import SessionPool as SessionPool
from sessionmgr.adapter.kit.stdio_child import StdioChild as StdioChild
from sessionmgr.adapter.kit.stdio_connection import (
    StdioConnection as StdioConnection,
    StdioConversation as StdioConversation,
    read_size as read_size,
)
from sessionmgr.adapter.kit.structured_output import (
    schema_fault as schema_fault,
    validate_output as validate_output,
)
from sessionmgr.adapter.kit.undecoded import undecoded_event as undecoded_event

__all__ = [
    "BUSY",
    "DEADLINE",
    "GIT_VALUED",
    "LARGEST_TEXT",
    "LAUNCHER_COMMANDS",
    "LAUNCH_ARGUMENTS",
    "MAX_IMAGE_BYTES",
    "MEGABYTE",
    "MULTI_CALL",
    "PREFIX_COMMANDS",
    "PROTECTED_DIRECTORIES",
    "PROTECTED_FILES",
    "SHELLS",
    "TOO_MANY_REQUESTS",
    "WRITE_BUFFER_FULL",
    "AnyTool",
    "ChangeSignal",
    "ChildPhase",
    "ChildRun",
    "CommandCall",
    "CommandWords",
    "ConnectionLease",
    "ConnectionPool",
    "ConversationAdapter",
    "ConversationRun",
    "DelegatingAdapter",
    "FileRefusedError",
    "FilesState",
    "FollowUps",
    "FunctionTool",
    "FunctionTools",
    "Future",
    "GrowingFile",
    "ImageCollector",
    "ImageRefusedError",
    "JsonRpcCaller",
    "JsonRpcConnection",
    "JsonRpcConversation",
    "JsonRpcPeer",
    "NotSimpleError",
    "PeerReply",
    "PeerRequest",
    "PhasedConversationRun",
    "PromptImage",
    "RequestHandler",
    "RpcAnswer",
    "RpcCall",
    "RpcOutgoing",
    "RpcRefusal",
    "RunAdapter",
    "SessionPool",
    "ShellWord",
    "SimpleCommand",
    "StdioChild",
    "StdioConnection",
    "StdioConversation",
    "ToolOutcome",
    "combined_capabilities",
    "command_of_argv",
    "commands_of_line",
    "config_failure",
    "connection_failure",
    "decode_by_method",
    "directory_and_parents",
    "directory_states",
    "exit_failure",
    "file_state",
    "files_state",
    "find_command_ranges",
    "finish_with_output",
    "is_opaque_command",
    "is_protected",
    "launch_argument",
    "missing_program_reason",
    "outdated_failure",
    "parse_output",
    "plain_argv",
    "process_exit_event",
    "program_health",
    "read_bounded_bytes",
    "read_bounded_text",
    "read_images",
    "read_json_object",
    "read_optional_file",
    "read_script",
    "read_size",
    "read_version",
    "resolve_within",
    "schema_fault",
    "serve_mcp_message",
    "shell_script_index",
    "shell_word",
    "split_argv",
    "start_failure",
    "tool_description",
    "undecoded_event",
    "validate_output",
    "version_numbers",
]
