"""Program that runs a command in a container: `python -I -S nsenter_program.py SOCKET REQUEST`."""

import importlib
import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - loads as few modules as possible
    importlib.import_module("nsenter.main").main()
