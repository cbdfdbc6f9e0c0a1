"""Put values into a file or a pipe, or on a terminal, for other programs to read."""

from typing import Any

import msgspec
import yaml

from podstatus.agent.screen import show
from podstatus.kube.scalars.time import Time


def show_json(value: object) -> None:
    """Print it over several lines, keys by name."""
    text = msgspec.json.encode(value, order="sorted", enc_hook=_plain)
    show(f"{msgspec.json.format(text, indent=4).decode()}\n")


def show_json_line(value: object) -> None:
    """Print it on one line."""
    show(f"{msgspec.json.encode(value, enc_hook=_plain).decode()}\n")


def show_yaml(value: object, *, one_of_many: bool = False) -> None:
    """Print it; one of many begins with the line that separates them."""
    plain = msgspec.to_builtins(value, enc_hook=_plain)
    begin = "---\n" if one_of_many else ""
    show(f"{begin}{yaml.safe_dump(plain, allow_unicode=True)}")


def _plain(value: object) -> Any:
    if isinstance(value, Time):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} does not travel")
