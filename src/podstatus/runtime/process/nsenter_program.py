"""Program that runs a command in a container: `python -I -S nsenter_program.py SOCKET REQUEST`."""

import importlib
import os
import sys

if __name__ == "__main__":
    # This folder as the package `process`, so that `nsenter` can import from `shim`.
    sys.path.append(os.path.realpath(f"{__file__}/../.."))
    importlib.import_module("process.nsenter.main").main()
