"""Settings for all tests: signal handlers and Hypothesis profiles.

Signals. A program that is started in the background, or by nohup, inherits ignored signals, and so
do its children; some tests send exactly those signals to children. A signal that has a handler here
is not inherited as ignored.

Profiles. The default searches a little, `--hypothesis-profile=long` for a long time. `brief` is for
runs that prove something else, such as the installation of a wheel: it tries the same few examples
each time. Without that option, the variable HYPOTHESIS_PROFILE names the profile. The health check
`too_slow` is off, because it measures the load of the machine.

Coverage. It measures the tests' own process: in the many programs that the tests start, it would
take longer than the programs themselves.
"""

import os
import signal

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]

settings.register_profile("default", deadline=None, suppress_health_check=SLOW)
settings.register_profile(
    "brief", deadline=None, suppress_health_check=SLOW, max_examples=15, derandomize=True
)
settings.register_profile("long", deadline=None, suppress_health_check=SLOW, max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

os.environ.pop("COVERAGE_PROCESS_START", None)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for each in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, lambda number, frame: None)
