"""Usage lines as other programs write them: `POD`, `[NAME]`, `FILE...`."""

from typing import Any

from typer.core import TyperCommand


class PlainUsageCommand(TyperCommand):
    """A command whose required arguments have no braces; `...` marks those that may be repeated."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = (it for it in self.get_params(ctx) if it.param_type_name == "argument")
        return ["[OPTIONS]", *map(_usage, arguments)]


def _usage(argument: Any) -> str:
    name = argument.human_readable_name
    if name == "COMMAND":
        return "-- COMMAND [ARGS]..."
    many = "..." if argument.nargs != 1 else ""
    return f"{name}{many}" if argument.required else f"[{name}]{many}"
