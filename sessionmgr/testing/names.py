"""Lazy exports of the test kit: its main names, and the module that each is imported from."""

from typing import Final

from sessionmgr.lazy_exports import lazy_exports

PUBLIC: Final = {
    "sessionmgr.testing.adapter_conformance": ("AdapterCase", "AdapterConformance", "Play"),
    "sessionmgr.testing.faulty_store": ("Fault", "FaultyStore"),
    "sessionmgr.testing.invariants": ("broken_laws",),
    "sessionmgr.testing.mock_sdk": ("MockConversation", "MockSdk", "with_sdk"),
    "sessionmgr.testing.model_server": ("ModelServer", "open_model_server"),
    "sessionmgr.testing.player": ("Recording", "command_of", "recorder_of"),
    "sessionmgr.testing.seeded_schedule": ("run_scheduled",),
    "sessionmgr.testing.rehearsal": (
        "RehearsalHost",
        "agent_environment",
        "refused_hosts_message",
        "unrehearsable_jobs",
    ),
    "sessionmgr.testing.script": (
        "Ask",
        "Crash",
        "Hang",
        "Say",
        "Scripts",
        "Step",
        "Think",
        "Tool",
        "Use",
        "Wait",
    ),
    "sessionmgr.testing.scripted_provider": (
        "Script",
        "ScriptedProvider",
        "scripted",
        "write_script",
    ),
}
__getattr__, __dir__ = lazy_exports("sessionmgr.testing", PUBLIC)
