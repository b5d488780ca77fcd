"""Completion in shells: click's own, with values that have a comma or a blank.

Lists such as ``twin,c`` and columns such as ``air temp`` are values here, which click's scripts
for fish and bash would cut.
"""

import shlex

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
)


@add_completion_class
class Bash(BashComplete):
    """Completion in bash, which inserts a value as it is: it has to be quoted."""

    def format_completion(self, item: CompletionItem) -> str:
        """Write the type and the value."""
        value = item.value if item.type != "plain" else shlex.quote(str(item.value))
        return f"{item.type},{value}"


@add_completion_class
class Fish(FishComplete):
    """Completion in fish, split at the first comma only."""

    source_template = FishComplete.source_template.replace("string split ", "string split --max 1 ")
