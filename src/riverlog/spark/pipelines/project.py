"""The project file, `spark-pipeline.yml`: found, read, and complained about with line numbers.

The fields are Spark's. It is read here and not by PySpark because `status` need not load Spark, and because
Spark's complaints do not say where in the file they belong.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import yaml

from riverlog.spark.pipelines.failures import PipelineError, ProjectNotFound

SPEC_NAMES: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
_FIELDS: Final = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
DEFAULT_CATALOG: Final = "spark_catalog"
DEFAULT_DATABASE: Final = "default"


class SpecError(PipelineError):
    """The project file is wrong at a line."""

    def __init__(self, path: Path, line: int, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{path.name}:{line}: {message}", remedy=remedy)
        self.path = path
        self.line = line
        self.what = message


@dataclass(frozen=True, slots=True)
class Project:
    spec_path: Path
    name: str
    storage: str
    catalog: str
    database: str
    configuration: Mapping[str, str]
    globs: tuple[str, ...]

    @property
    def directory(self) -> Path:
        return self.spec_path.parent

    @property
    def local_storage(self) -> Path | None:
        """The storage root as a path, if it is on this machine's file system."""
        parts = urlsplit(self.storage)
        if parts.scheme == "file":
            return Path(unquote(parts.path))
        return None if parts.scheme else self.directory / self.storage

    @property
    def state_directory(self) -> Path:
        """What the runner keeps: beside the checkpoints, or in the project when those are elsewhere."""
        storage = self.local_storage
        return self.directory / ".riverlog" if storage is None else storage / "_riverlog"

    def files(self) -> list[Path]:
        """The definitions, in the order in which Spark reads them."""
        found = (path for glob in self.globs for path in self.directory.glob(glob))
        return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def find(start: Path) -> Path:
    """The project file at `start`, which may be the file itself, or of the nearest directory above."""
    if start.is_file():
        return start.resolve()
    if not start.is_dir():
        raise ProjectNotFound(f"{start}: no such file or directory", remedy="riverlog pipeline init NAME")
    for directory in (start.resolve(), *start.resolve().parents):
        found = [directory / name for name in SPEC_NAMES if (directory / name).is_file()]
        if len(found) > 1:
            raise PipelineError(
                f"{directory} has both {SPEC_NAMES[0]} and {SPEC_NAMES[1]}", remedy="remove one of them"
            )
        if found:
            return found[0]
    raise ProjectNotFound(
        f"no {SPEC_NAMES[0]} in {start} or above it",
        remedy="go into the project, name it, or make one with `riverlog pipeline init NAME`",
    )


def load(spec_path: Path) -> Project:
    try:
        node = yaml.compose(spec_path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(spec_path, line, f"not YAML: {error.problem or error}") from None
    if not isinstance(node, yaml.MappingNode):
        raise SpecError(spec_path, 1, "the project file must have fields, name and storage at least")
    fields = _Fields(spec_path, node)
    return Project(
        spec_path,
        name=fields.text("name"),
        storage=fields.text("storage"),
        catalog=fields.text("catalog", DEFAULT_CATALOG),
        database=fields.text("database", fields.text("schema", DEFAULT_DATABASE)),
        configuration=fields.configuration(),
        globs=fields.globs(),
    )


class _Fields:
    def __init__(self, path: Path, node: yaml.MappingNode) -> None:
        self._path = path
        self._values = {key.value: value for key, value in node.value}
        for key, _ in node.value:
            if key.value not in _FIELDS:
                raise self._wrong(key, f"unknown field {key.value!r}", f"the fields are {', '.join(_FIELDS)}")

    def text(self, name: str, default: str | None = None) -> str:
        node = self._values.get(name)
        if node is None:
            if default is None:
                raise SpecError(self._path, 1, f"the field {name!r} is missing", remedy=f"add `{name}: …`")
            return default
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self._wrong(node, f"{name} must be a text")
        return str(node.value)

    def configuration(self) -> dict[str, str]:
        node = self._values.get("configuration")
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, "configuration must be fields with texts")
        for key, value in node.value:
            if value.tag != "tag:yaml.org,2002:str":
                raise self._wrong(
                    value, f"{key.value} must be a text", f'put it in quotes: "{getattr(value, "value", "")}"'
                )
        return {key.value: value.value for key, value in node.value}

    def globs(self) -> tuple[str, ...]:
        node = self._values.get("libraries")
        if node is None:
            return ()
        found: list[str] = []
        entries: list[Any] = _built(node) if isinstance(node, yaml.SequenceNode) else [None]
        for entry in entries:
            try:
                found.append(self._checked(node, entry["glob"]["include"]))
            except (KeyError, TypeError):
                remedy = "libraries: [{glob: {include: transformations/**}}]"
                raise self._wrong(node, "libraries must be a list of globs", remedy) from None
        return tuple(found)

    def _checked(self, node: yaml.Node, glob: str) -> str:
        """Spark takes a file, or everything below a directory."""
        if glob.endswith("/**") and "*" not in glob[:-3]:
            return f"{glob}/*"
        if any(sign in glob for sign in "*?["):
            raise self._wrong(
                node, f"the glob {glob!r} is not one that Spark takes", "name a file, or DIRECTORY/**"
            )
        return glob

    def _wrong(self, node: yaml.Node, message: str, remedy: str = "") -> SpecError:
        return SpecError(self._path, node.start_mark.line + 1, message, remedy=remedy)


def _built(node: yaml.Node) -> Any:
    """What the node says, as plain lists, dictionaries and texts."""
    return yaml.safe_load(yaml.serialize(node))
