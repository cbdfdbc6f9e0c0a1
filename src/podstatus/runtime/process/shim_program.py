"""Program of the shim of one pod: `python -I -S shim_program.py POD_FOLDER SANDBOX_ID`.

In isolated mode (-I -S) only the standard library can be imported; the shim package lies beside
this file.
"""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent))
    sys.exit(importlib.import_module("shim.main").main(sys.argv[1:]))
