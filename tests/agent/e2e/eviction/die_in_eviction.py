"""`podstatus run` that is killed before the n-th durable step of an eviction.

    python -m tests.agent.e2e.eviction.die_in_eviction 3 run --root-dir …

The steps are those of die_after.py, counted from the record of the eviction on.
"""

import sys
from typing import Any

from podstatus.cli.main import main
from podstatus.client.typed.pods import HttpPodApi
from podstatus.status.manager import StatusManager
from tests.agent.e2e.process.die_after import Countdown


class EvictionCountdown(Countdown):
    """Counts from the first file in the folder of records on."""

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._counts and event == "os.rename" and "/evictions/" in str(arguments[0]):
            self._counts = True
        super().audit(event, arguments)


if __name__ == "__main__":
    countdown = EvictionCountdown(int(sys.argv.pop(1)))
    for name in ("set_pod_status", "terminate_pod"):
        setattr(StatusManager, name, countdown.counted(getattr(StatusManager, name)))
    for name in ("patch_pod_status", "delete_pod"):
        setattr(HttpPodApi, name, countdown.asked(getattr(HttpPodApi, name)))
    sys.addaudithook(countdown.audit)
    main()
