"""Static types agree with the behaviour at run time."""

from tests.otp import typing_sample


async def test_the_sample_for_type_checkers_runs(autojump_clock: object) -> None:
    assert await typing_sample.main() == [13, 0, ["42", "2", "4"]]
