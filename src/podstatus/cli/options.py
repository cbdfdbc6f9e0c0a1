"""The settings as options of a command: one for each, all of them texts.

They are read together with the other sources, so that all mistakes are told at once.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from podstatus.agent.settings.load import flag_text
from podstatus.agent.settings.schema.scalars import BOOL
from podstatus.agent.settings.schema.setting import Setting
from podstatus.agent.settings.schema.table import SETTINGS

Flags = dict[str, str | None]


def with_settings(
    command: Callable[..., None], settings: Sequence[Setting] = SETTINGS
) -> Callable[..., None]:
    """A command that is given the flags of these settings, besides the options of its own."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    def taken(**given: Any) -> None:
        flags: Flags = {
            setting.name: flag_text(setting, given.pop(setting.name)) for setting in settings
        }
        command(flags, **given)

    parameters = [*map(_parameter, settings), *own]
    taken.__name__, taken.__doc__ = command.__name__, command.__doc__
    taken.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    taken.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return taken


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
