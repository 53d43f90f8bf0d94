"""Letters of options that had another meaning in some command: they go on there, with a warning.

One letter means one thing in every command, which a test holds. What a letter was taken from is named with
the option that took its place; help leaves it out.
"""

import copy
from typing import Any

from typer.core import TyperCommand

from riverlog.cli.printing.output import warn


def still_taking(**letters: str) -> type[TyperCommand]:
    """A command in which the options of these parameters go by a letter more, each with a warning."""

    class WithOldLetters(TyperCommand):
        def __init__(self, *arguments: Any, **attributes: Any) -> None:
            super().__init__(*arguments, **attributes)
            self.old = {
                each.name: _second(each, letters[each.name]) for each in self.params if each.name in letters
            }
            self.params += self.old.values()

        def invoke(self, ctx: Any) -> Any:
            for name, option in self.old.items():
                if value := ctx.params.pop(option.name):
                    warn(f"{letters[name]} will go: use {option.instead}")
                    ctx.params[name] = [*ctx.params[name], *value] if option.multiple else value
            return super().invoke(ctx)

    return WithOldLetters


def _second(option: Any, letter: str) -> Any:
    """The same option under a letter alone."""
    second = copy.copy(option)
    second.instead = " or ".join(option.opts)
    second.name, second.opts, second.hidden = f"old_{option.name}", [letter], True
    return second
