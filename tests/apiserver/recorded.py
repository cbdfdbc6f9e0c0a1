"""Exchanges with a real kube-apiserver v1.36.4, by family."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "conformance" / "http.jsonl.gz"


@cache
def scenarios() -> list[dict[str, Any]]:
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def family(name: str) -> list[dict[str, Any]]:
    """Return the scenarios of one family, in the order of recording."""
    return [record for record in scenarios() if f"-{name}-" in record["name"]]
