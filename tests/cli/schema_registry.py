"""A small schema registry for tests: subjects, versions and schemas by number, over a registry's REST calls.

No registry is to be had as a package, so this one speaks as much of that interface as registry clients use.
It keeps what it is given and checks no compatibility. A Protobuf schema may come as text, which is compiled,
or in the compiled form that clients send; who asks with `format=serialized` is given the compiled form, as
by Confluent's registry.
"""

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.cli.proto_text import compile_text

Answer = tuple[int, Any]
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass
class SchemaRegistry:
    url: str = ""
    password: str = ""
    """`USER:PASSWORD` in base64 that is asked for, if any."""
    schemas: list[dict[str, Any]] = field(default_factory=list)
    """By number, from 1."""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def register(self, subject: str, text: str, kind: str = "AVRO", references: Any = ()) -> int:
        schema = {"schema": text, "schemaType": kind, "references": list(references)}
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def get(self, path: str, query: str = "") -> Answer:
        status, document = self._find(path)
        if status == 200 and document["schemaType"] == "PROTOBUF" and "format=serialized" in query.split("&"):
            document = {**document, "schema": _compiled(document["schema"])}
        return status, document

    def _find(self, path: str) -> Answer:
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            number = int(found[1])
            if not 0 < number <= len(self.schemas):
                return 404, {"error_code": 40403, "message": "Schema not found"}
            return 200, {"id": number, **self.schemas[number - 1]}
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(latest|\d+)", path):
            return self._version(unquote(found[1]), found[2])
        return 404, "<html>no such page</html>"

    def post(self, path: str, body: Any) -> Answer:
        found = re.fullmatch(r"/subjects/([^/]+)/versions", path)
        if found is None:
            return 404, "<html>no such page</html>"
        check = _compiled if body.get("schemaType", "AVRO") == "PROTOBUF" else json.loads
        try:
            check(body["schema"])
        except ValueError as error:
            return 422, {"error_code": 42201, "message": f"Invalid schema: {error}"}
        kind, references = body.get("schemaType", "AVRO"), body.get("references") or ()
        return 200, {"id": self.register(unquote(found[1]), body["schema"], kind, references)}

    def _version(self, subject: str, version: str) -> Answer:
        numbers = self.subjects.get(subject)
        if numbers is None:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        place = len(numbers) if version == "latest" else int(version)
        if not 0 < place <= len(numbers):
            return 404, {"error_code": 40402, "message": f"Version {version} not found."}
        number = numbers[place - 1]
        return 200, {"subject": subject, "version": place, "id": number, **self.schemas[number - 1]}


def _compiled(text: str) -> str:
    """Of a text, or of what is compiled already."""
    try:
        base64.b64decode(text, validate=True)
        return text
    except ValueError:
        return base64.b64encode(compile_text(text).SerializeToString()).decode()


@contextmanager
def serving() -> Iterator[SchemaRegistry]:
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            self._reply(registry.get(asked.path, asked.query))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._reply(registry.post(urlsplit(self.path).path, body))

        def _reply(self, answer: Answer) -> None:
            registry.requests.append(f"{self.command} {self.path}")
            if registry.password and self.headers["Authorization"] != f"Basic {registry.password}":
                answer = 401, {"error_code": 401, "message": "Unauthorized"}
            status, document = answer
            data = (document if isinstance(document, str) else json.dumps(document)).encode()
            self.send_response(status)
            self.send_header("Content-Type", _MEDIA_TYPE)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
