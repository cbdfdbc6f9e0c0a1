"""Write values as JSON and YAML."""

from typing import Any

import msgspec

from podstatus.cli.terminal import write
from podstatus.kube.scalars.time import Time


def write_json(value: object) -> None:
    """Write indented JSON with sorted keys."""
    text = msgspec.json.encode(value, order="sorted", enc_hook=_encode_value)
    write(f"{msgspec.json.format(text, indent=4).decode()}\n")


def write_json_line(value: object) -> None:
    """Write JSON on one line."""
    write(f"{msgspec.json.encode(value, enc_hook=_encode_value).decode()}\n")


def write_yaml(value: object, *, one_of_many: bool = False) -> None:
    """Write YAML; `one_of_many` begins it with a document separator."""
    import yaml

    plain = msgspec.to_builtins(value, enc_hook=_encode_value)
    separator = "---\n" if one_of_many else ""
    write(f"{separator}{yaml.safe_dump(plain, allow_unicode=True)}")


def _encode_value(value: object) -> Any:
    if isinstance(value, Time):
        return str(value)
    raise NotImplementedError(f"cannot encode a {type(value).__name__}")
