"""A schema registry that really listens: schemas by id and by subject, and failures on demand."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ServedRegistry:
    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, int] = {}
        self.asked: list[str] = []
        self.logins: list[str | None] = []
        self.failures: list[int] = []
        self.address = ""

    def add(self, schema: object, subject: str | None = None, **more: object) -> int:
        schema_id = len(self.schemas) + 1
        self.schemas[schema_id] = {"schema": json.dumps(schema), **more}
        if subject is not None:
            self.subjects[subject] = schema_id
        return schema_id

    def answer(self, path: str) -> tuple[int, object]:
        if self.failures:
            return self.failures.pop(0), {"message": "try again"}
        match path.strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, self.schemas[int(number)]
            case ["subjects", subject, "versions", "latest"] if subject in self.subjects:
                return 200, {"subject": subject, "version": 1, **self.schemas[self.subjects[subject]]}
            case _:
                return 404, {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def serving_registry() -> Iterator[ServedRegistry]:
    registry = ServedRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            registry.logins.append(self.headers.get("Authorization"))
            status, document = registry.answer(self.path)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Not on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
