"""Options made of settings.

They are passed on as text and parsed together with variables and the file, so that all errors are
reported at once.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from podstatus.agent.settings.model import SETTINGS
from podstatus.agent.settings.schema.scalars import BOOL
from podstatus.agent.settings.schema.setting import Setting
from podstatus.cli.options import replace_parameter

Flags = dict[str, str | None]


def with_settings(
    command: Callable[..., None], settings: Sequence[Setting] = SETTINGS
) -> Callable[..., None]:
    """Return `command` with an option for each setting in place of its parameter `flags`."""

    def flags(**options: Any) -> Flags:
        return {setting.name: _flag_text(setting, options[setting.name]) for setting in settings}

    return replace_parameter(command, "flags", [*map(_parameter, settings)], flags)


def _parameter(setting: Setting) -> inspect.Parameter:
    switch = setting.value_type is BOOL
    names = [f"{setting.option}/--no-{setting.flag}" if switch else setting.option]
    if setting.short:
        names.append(f"-{setting.short}")
    option = typer.Option(
        *names,
        metavar=None if switch else setting.value_type.metavar,
        help=f"{setting.help} Default: {setting.default_help or setting.default or 'none'}.",
        show_default=False,
        rich_help_panel=setting.group,
    )
    kind: Any = bool | None if switch else str | None
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind, option],
    )


def _flag_text(setting: Setting, value: object) -> str | None:
    if value is None or setting.value_type is not BOOL:
        return None if value is None else str(value)
    return "true" if value else "false"
