"""Triggers that Spark does not open to sources and sinks in Python: found in the files of a project.

Spark itself says so when the query starts, which in a project is after everything else has been made.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from riverlog.spark.pipelines.checks.findings import Finding, Place

_CLOSED: Final = {"continuous": "the continuous trigger", "realTime": "real-time mode"}
_REMEDY: Final = "use trigger(processingTime=…), at 100 milliseconds or less"


def closed_triggers(path: Path, tree: ast.AST) -> Iterator[Finding]:
    """Where the file asks for one."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        for keyword in node.keywords if node.func.attr == "trigger" else ():
            if keyword.arg in _CLOSED:
                what = f"{_CLOSED[keyword.arg]} is not open to sources and sinks in Python, as riverlog's are"
                yield Finding(Place(str(path), keyword.value.lineno), what, _REMEDY)
