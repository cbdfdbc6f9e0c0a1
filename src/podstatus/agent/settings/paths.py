"""Value types of paths. Parsing reads the home directory and the current directory."""

from pathlib import Path

from podstatus.agent.settings.schema.scalars import text_type
from podstatus.agent.settings.schema.setting import InvalidValueError


def _parse_path(text: str) -> Path:
    if not text or "\0" in text:
        raise InvalidValueError(text, "a path")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise InvalidValueError(text, "a path: this user has no home directory") from error


def _parse_paths(text: str) -> tuple[Path, ...]:
    return tuple(_parse_path(part.strip()) for part in text.split(",") if part.strip())


PATH = text_type("PATH", _parse_path, "a path")
PATHS = text_type("PATHS", _parse_paths, "a comma-separated list of paths", allow_empty=True)
