from sessionmgr.testing.adapter_conformance import (
    AdapterCase as AdapterCase,
    AdapterConformance as AdapterConformance,
    Play as Play,
)
from sessionmgr.testing.faulty_store import (
    Fault as Fault,
    FaultyStore as FaultyStore,
)
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
from sessionmgr.testing.scripted_provider import (
    Script as Script,
    ScriptedProvider as ScriptedProvider,
    write_script as write_script,
)
from sessionmgr.testing.seeded_schedule import run_scheduled as run_scheduled

__all__ = [
    "AdapterCase",
    "AdapterConformance",
    "Fault",
    "FaultyStore",
    "MockConversation",
    "MockSdk",
    "ModelServer",
    "Play",
    "Recording",
    "Script",
    "ScriptedProvider",
    "broken_laws",
    "command_of",
    "open_model_server",
    "recorder_of",
    "run_scheduled",
    "with_sdk",
    "write_script",
]
