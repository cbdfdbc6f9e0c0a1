"""Run as a program, `python -I -S run_shim.py POD_FOLDER SANDBOX_ID`: the shim of one pod.

Isolated (-I -S) nothing but the standard library can be imported; the shim lies beside this file.
"""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent))
    sys.exit(importlib.import_module("shim.main").main(sys.argv[1:]))
