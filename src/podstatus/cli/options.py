"""Turn the table of settings into command-line options.

Options are passed on as text and parsed together with variables and the file, so that all errors
are reported at once.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from podstatus.agent.settings.load import flag_text
from podstatus.agent.settings.model import SETTINGS
from podstatus.agent.settings.schema.scalars import BOOL
from podstatus.agent.settings.schema.setting import Setting

Flags = dict[str, str | None]
StopAtEofOption = Annotated[
    bool,
    typer.Option(
        "--stop-at-eof",
        hidden=True,
        help="Stop when standard input is closed, for example by the exit of the parent process.",
    ),
]


def with_settings(
    command: Callable[..., None], settings: Sequence[Setting] = SETTINGS
) -> Callable[..., None]:
    """Return `command` with an option for each setting in place of its first parameter, `flags`."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    def with_options(**options: Any) -> None:
        flags: Flags = {
            setting.name: flag_text(setting, options.pop(setting.name)) for setting in settings
        }
        command(flags, **options)

    parameters = [*map(_parameter, settings), *own]
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    with_options.__annotations__ = {it.name: it.annotation for it in parameters}
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_options


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
