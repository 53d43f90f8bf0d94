"""What is wrong with the files of a project, seen without Spark."""

import ast
from pathlib import Path

from riverlog.spark.pipelines.checks.findings import Finding, Place
from riverlog.spark.pipelines.checks.trigger_checks import closed_triggers
from riverlog.spark.pipelines.project import Project


def files_wrong_with(project: Project) -> list[Finding]:
    """The definitions' files: there must be some, in a language that Spark reads, and they must parse."""
    spec = Place(str(project.spec_path), 1)
    files = project.files()
    if not files:
        globs = ", ".join(project.globs) or "no globs"
        return [Finding(spec, f"the libraries ({globs}) match no file", "name the files under `libraries`")]
    findings = []
    for path in files:
        place = Place(str(path), 1)
        if path.suffix not in (".py", ".sql"):
            findings.append(
                Finding(place, "Spark reads .py and .sql files only", "move it, or narrow the glob")
            )
        elif path.suffix == ".py":
            findings += _wrong_in_python(path)
    return findings


def _wrong_in_python(path: Path) -> list[Finding]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except SyntaxError as error:
        return [Finding(Place(str(path), error.lineno or 1), f"not Python: {error.msg}", "correct the line")]
    return list(closed_triggers(path, tree))
