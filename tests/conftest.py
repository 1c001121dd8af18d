"""Settings of every test. Hypothesis has no deadline: on a busy machine, or if an example compiles, time says nothing.

No test reads the file of options of the user who runs the tests.
"""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile("yomi", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("yomi")

os.environ["XDG_CONFIG_HOME"] = str(Path(__file__).parent / "no-config")
