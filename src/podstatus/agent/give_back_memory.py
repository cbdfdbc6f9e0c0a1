"""Give memory back to the system that a burst of work needed, and nobody uses any more."""

import ctypes
import gc


def give_back_memory() -> None:
    """As far as this system can: the C library of Linux keeps what was freed for the next time."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
