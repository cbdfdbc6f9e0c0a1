"""The program that runs a command where a container is: `python -I -S run_exec.py SOCKET ORDER`."""

import importlib
import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - little is loaded
    importlib.import_module("nsenter.main").main()
