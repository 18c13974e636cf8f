"""A server on this machine that speaks the hub's protocol, and can lie, stall or vanish."""

import functools
import hashlib
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Files of one repository by path; large ones are elsewhere, as on the real hub."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = dict(files)
        self.sent = dict(files)  # what is sent for a path, which may be a lie
        self.heads = {}  # headers that are lies, by path
        self.cuts = {}  # path: after how many bytes a connection stalls or closes, once each
        self.stall = threading.Event()
        self.status = None  # for every request
        self.requests = []
        self.address = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(files):
    hub = Hub(files)
    thread = threading.Thread(target=hub.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield hub
    finally:
        hub.stall.set()
        hub.shutdown()
        hub.server_close()
        thread.join()


@functools.cache
def _digest(content):
    return hashlib.sha256(content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server
        hub.requests.append((self.command, self.path, dict(self.headers)))
        asked = re.fullmatch(r"/[\w.-]+/[\w.-]+/resolve/(\w+)/(.+)", self.path)
        path = asked[2] if asked else self.path.removeprefix("/cdn/")
        if hub.status or path not in hub.files:
            self._begin(hub.status or 404, {"Content-Length": "0"})
            return
        content = hub.files[path]
        facts = {"X-Repo-Commit": COMMIT, "ETag": '"0f1e"', "Content-Length": str(len(content))}
        if asked and path.endswith((".onnx", "_data", "large")):  # a large file: elsewhere
            digest = _digest(content)
            facts |= {"X-Linked-Size": str(len(content)), "X-Linked-Etag": f'"{digest}"'}
            facts |= {
                "Location": f"http://localhost:{hub.server_port}/cdn/{path}",
                "Content-Length": "0",
            }
            self._begin(302, facts | hub.heads.get(path, {}))
        elif self.command == "HEAD":
            self._begin(200, facts | hub.heads.get(path, {}))
        else:
            self._send(path)

    def _begin(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, path):
        hub, whole = self.server, self.server.sent[path]
        start = int(re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])
        rest = whole[start:]
        length = {"Content-Length": str(len(rest)), "ETag": '"0f1e"'}
        span = {"Content-Range": f"bytes {start}-{len(whole) - 1}/{len(whole)}"}
        self._begin(206 if start else 200, length | (span if start else {}))
        if path in hub.cuts:
            n, fault = hub.cuts.pop(path)
            self.wfile.write(rest[:n])
            self.wfile.flush()
            if fault == "stall":
                hub.stall.wait(60)
            self.close_connection = True
            return
        self.wfile.write(rest)

    def log_message(self, *_):
        pass
