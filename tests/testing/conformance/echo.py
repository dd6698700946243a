"""The smallest possible adapter, as in the page."""

from sessionmgr.adapter import NATIVE, Capabilities, ProviderAdapter, RunContext
from sessionmgr.model import MessageReceived, RunStarted


class Echo(ProviderAdapter):
    name = "echo"
    capabilities = Capabilities(streaming=NATIVE)

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await run.emit(MessageReceived(content=run.prompt))
        await run.finish(stop_reason="end_turn")
