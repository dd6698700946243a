"""Lazy exports: the kit's public names by module; each module is imported on first use.

A command does not have to load the modules that it does not need.
"""

from typing import Final

from sessionmgr.lazy_exports import lazy_exports

PUBLIC: Final = {
    "sessionmgr.adapter.kit.bounded_file": (
        "LARGEST_TEXT",
        "FileRefusedError",
        "read_bounded_bytes",
        "read_bounded_text",
        "read_json_object",
        "read_optional_file",
    ),
    "sessionmgr.adapter.kit.change_signal": ("ChangeSignal",),
    "sessionmgr.adapter.kit.child_run": (
        "ChildPhase",
        "ChildRun",
    ),
    "sessionmgr.adapter.kit.command_line": (
        "GIT_VALUED",
        "LAUNCH_ARGUMENTS",
        "LAUNCHER_COMMANDS",
        "MULTI_CALL",
        "PREFIX_COMMANDS",
        "SHELLS",
        "CommandCall",
        "CommandWords",
        "NotSimpleError",
        "ShellWord",
        "SimpleCommand",
        "command_of_argv",
        "commands_of_line",
        "find_command_ranges",
        "is_opaque_command",
        "launch_argument",
        "plain_argv",
        "read_script",
        "shell_script_index",
        "shell_word",
        "split_argv",
    ),
    "sessionmgr.adapter.kit.connection_pool": (
        "ConnectionLease",
        "ConnectionPool",
    ),
    "sessionmgr.adapter.kit.conversation_adapter": ("ConversationAdapter",),
    "sessionmgr.adapter.kit.conversation_run": (
        "ConversationRun",
        "PhasedConversationRun",
    ),
    "sessionmgr.adapter.kit.delegating_adapter": ("DelegatingAdapter", "combined_capabilities"),
    "sessionmgr.adapter.kit.file_fingerprint": (
        "FilesState",
        "directory_and_parents",
        "directory_states",
        "file_state",
        "files_state",
    ),
    "sessionmgr.adapter.kit.file_follower": (
        "MEGABYTE",
        "GrowingFile",
    ),
    "sessionmgr.adapter.kit.follow_ups": ("FollowUps",),
    "sessionmgr.adapter.kit.function_tools": (
        "AnyTool",
        "FunctionTool",
        "FunctionTools",
        "ToolOutcome",
        "serve_mcp_message",
        "tool_description",
    ),
    "sessionmgr.adapter.kit.future": ("Future",),
    "sessionmgr.adapter.kit.images": (
        "MAX_IMAGE_BYTES",
        "ImageCollector",
        "ImageRefusedError",
        "PromptImage",
        "read_images",
    ),
    "sessionmgr.adapter.kit.json_rpc_caller": (
        "JsonRpcCaller",
        "PeerReply",
        "PeerRequest",
        "RpcAnswer",
        "RpcCall",
        "RpcOutgoing",
        "RpcRefusal",
    ),
    "sessionmgr.adapter.kit.json_rpc_connection": (
        "JsonRpcConnection",
        "JsonRpcConversation",
        "decode_by_method",
    ),
    "sessionmgr.adapter.kit.json_rpc_peer": (
        "BUSY",
        "DEADLINE",
        "WRITE_BUFFER_FULL",
        "JsonRpcPeer",
    ),
    "sessionmgr.adapter.kit.paths": (
        "PROTECTED_DIRECTORIES",
        "PROTECTED_FILES",
        "is_protected",
        "resolve_within",
    ),
    "sessionmgr.adapter.kit.program_version": (
        "missing_program_reason",
        "outdated_failure",
        "read_version",
        "version_numbers",
    ),
    "sessionmgr.adapter.kit.readiness": ("program_health",),
    "sessionmgr.adapter.kit.request_handler": (
        "TOO_MANY_REQUESTS",
        "RequestHandler",
    ),
    "sessionmgr.adapter.kit.run_adapter": ("RunAdapter",),
    "sessionmgr.adapter.kit.run_end": (
        "config_failure",
        "connection_failure",
        "exit_failure",
        "finish_with_output",
        "parse_output",
        "process_exit_event",
        "start_failure",
    ),
    "sessionmgr.adapter.kit.session_pool": ("SessionPool",),
    "sessionmgr.adapter.kit.stdio_child": ("StdioChild",),
    "sessionmgr.adapter.kit.stdio_connection": (
        "StdioConnection",
        "StdioConversation",
        "read_size",
    ),
    "sessionmgr.adapter.kit.structured_output": (
        "schema_fault",
        "validate_output",
    ),
    "sessionmgr.adapter.kit.undecoded": ("undecoded_event",),
}
__getattr__, __dir__ = lazy_exports("sessionmgr.adapter.kit", PUBLIC)
