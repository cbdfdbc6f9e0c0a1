"""The source of truth for pod status on a node: the kubelet's status manager in Python.

`public_api` has the exported names. They are imported at first use, so that a command that needs
none of them starts faster.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from podstatus.public_api import *  # noqa: F403 - as listed there in __all__
else:

    def __getattr__(name: str) -> Any:
        try:
            return getattr(importlib.import_module("podstatus.public_api"), name)
        except AttributeError:
            raise AttributeError(f"module 'podstatus' has no attribute {name!r}") from None

    def __dir__() -> list[str]:
        return [*globals(), *__getattr__("__all__")]
