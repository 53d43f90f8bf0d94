"""Where in a Python file a text stands: the line of an option or a topic, for a finding about it.

A definition's own line is the one of its decorator, which may be far from the mistake.
"""

import ast
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from riverlog.spark.pipelines.checks.findings import Place


def place_of_text(near: Place, texts: Sequence[str]) -> Place:
    """The first of the texts that stands in the definition at `near`, or after it, or in its file at all."""
    lines = _texts_in(near.path)
    end = _end_of_definition(near)
    for text in texts:
        found = [line for line, value in lines if value == text]
        within = [line for line in found if near.line <= line <= end]
        if within:
            return Place(near.path, within[0])
    for text in texts:
        found = [line for line, value in lines if value == text]
        if found:
            return Place(near.path, found[0])
    return near


@lru_cache(maxsize=64)
def _tree(path: str) -> ast.Module | None:
    try:
        return ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


@lru_cache(maxsize=64)
def _texts_in(path: str) -> tuple[tuple[int, str], ...]:
    tree = _tree(path)
    nodes = ast.walk(tree) if tree is not None else ()
    found = [
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return tuple(sorted(found))


def _end_of_definition(near: Place) -> int:
    tree = _tree(near.path)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= near.line <= (node.end_lineno or node.lineno):
                return node.end_lineno or node.lineno
        elif isinstance(node, ast.Expr) and node.lineno <= near.line <= (node.end_lineno or 0):
            return node.end_lineno or node.lineno
    return near.line
