"""Config maps for tests of the client."""

import json


def config_map(name: str, **data: str) -> bytes:
    return json.dumps({"metadata": {"name": name}, "data": data}).encode()
