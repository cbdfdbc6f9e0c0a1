"""The client of an API server: credentials, requests, watches, and their errors.

No other package talks to an API server. `rest` sends requests, `auth` and `kubeconfig` resolve the
server and the credentials, `informer` keeps a copy of objects, `typed` implements the ports of
other packages. `ApiClient` is the async client, `SyncClient` has the same calls without async code;
docs/how-to/talk-to-an-api-server.md has examples. The meaning of an object (terminal, mirror) never
belongs here. Needs `podstatus[agent]`. `public_api` has the exported names, which are imported at
first use. Tests: tests/client.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podstatus.client.public_api import *  # noqa: F403 - as listed there in __all__
else:

    def __getattr__(name: str) -> Any:
        try:
            exports = importlib.import_module("podstatus.client.public_api")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"podstatus.client needs {error.name}; install it with: "
                "pip install 'podstatus[agent]'",
                name=error.name,
            ) from error
        return getattr(exports, name)
