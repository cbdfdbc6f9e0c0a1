"""The `podstatus` command, which collects its garbage when it is sent SIGUSR1."""

import gc
import signal

from podstatus.cli.main import main

if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: gc.collect() and None)
    main()
