from sessionmgr.testing.adapter_conformance import (
    AdapterCase as AdapterCase,
    AdapterConformance as AdapterConformance,
    Play as Play,
)
from sessionmgr.testing.faulty_store import Fault as Fault, FaultyStore as FaultyStore
from sessionmgr.testing.invariants import broken_laws as broken_laws
from sessionmgr.testing.mock_sdk import (
    MockConversation as MockConversation,
    MockSdk as MockSdk,
    with_sdk as with_sdk,
)
from sessionmgr.testing.model_server import (
    ModelServer as ModelServer,
    open_model_server as open_model_server,
)
from sessionmgr.testing.player import (
    Recording as Recording,
    command_of as command_of,
    recorder_of as recorder_of,
)
from sessionmgr.testing.rehearsal import (
    RehearsalHost as RehearsalHost,
    agent_environment as agent_environment,
    refused_hosts_message as refused_hosts_message,
    unrehearsable_jobs as unrehearsable_jobs,
)
from sessionmgr.testing.script import (
    Ask as Ask,
    Crash as Crash,
    Hang as Hang,
    Say as Say,
    Scripts as Scripts,
    Step as Step,
    Think as Think,
    Tool as Tool,
    Use as Use,
    Wait as Wait,
)
from sessionmgr.testing.scripted_provider import (
    Script as Script,
    ScriptedProvider as ScriptedProvider,
    scripted as scripted,
    write_script as write_script,
)
from sessionmgr.testing.seeded_schedule import run_scheduled as run_scheduled

__all__ = [
    "AdapterCase",
    "AdapterConformance",
    "Ask",
    "Crash",
    "Fault",
    "FaultyStore",
    "Hang",
    "MockConversation",
    "MockSdk",
    "ModelServer",
    "Play",
    "Recording",
    "RehearsalHost",
    "Say",
    "Script",
    "ScriptedProvider",
    "Scripts",
    "Step",
    "Think",
    "Tool",
    "Use",
    "Wait",
    "agent_environment",
    "broken_laws",
    "command_of",
    "open_model_server",
    "recorder_of",
    "refused_hosts_message",
    "run_scheduled",
    "scripted",
    "unrehearsable_jobs",
    "with_sdk",
    "write_script",
]
