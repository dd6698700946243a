"""Stop reasons: which of several counts."""

from sessionmgr.otp import Actor, Killed, Shutdown, Supervisor, child


async def test_the_first_reason_to_stop_counts() -> None:
    async with Supervisor(child(Actor, id="a", restart="temporary")) as sup:
        ref = sup.ref("a")
        ref.stop(Shutdown("first"))
        ref.stop(Shutdown("second"))
        assert await ref.wait() == Shutdown("first")


async def test_a_kill_counts_more_than_a_stop_before_it() -> None:
    async with Supervisor(child(Actor, id="a", restart="temporary")) as sup:
        ref = sup.ref("a")
        ref.stop(Shutdown("first"))
        ref.kill()
        assert await ref.wait() == Killed()
