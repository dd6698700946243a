"""What holds for all tests: which signals they take, and how far properties are searched.

Who starts us in the background, or by nohup, has some signals ignored, and then all that we start
ignores them too, which some tests strike with just those. A program that is started takes nothing
of a signal that has a handler here.

Properties are searched a little, hardly, or for long. For long is `--hypothesis-profile=long`.
`brief` is for the runs that prove something else, as that an installed wheel works, beside one that
searches: it tries the same examples each time. How fast examples are drawn says only how busy the
machine is.
"""

import signal

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]

settings.register_profile("default", deadline=None, suppress_health_check=SLOW)
settings.register_profile(
    "brief", deadline=None, suppress_health_check=SLOW, max_examples=15, derandomize=True
)
settings.register_profile("long", deadline=None, suppress_health_check=SLOW, max_examples=20_000)
settings.load_profile("default")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for each in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, lambda number, frame: None)
