#!/usr/bin/env python3
"""A web server whose answers a test chooses: web.py FOLDER PORT [CERTIFICATE].

FOLDER/mode says how it answers: ok, truncated, endless, slow, bomb, 500, to-file, to-http, or hangs.
FOLDER/list is what it serves, with an ETag; CrowdSec's stream is FOLDER/all.json and
FOLDER/delta.json, for the key in FOLDER/key. FOLDER/requests.log has a line for each answer.
"""
import gzip
import hashlib
import http.server
import os
import socketserver
import ssl
import sys
import time
import urllib.parse

folder, port = sys.argv[1], int(sys.argv[2])


def content(name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self):  # the library's own asks a name server
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", port


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=(), length=None):
        with open(os.path.join(folder, "requests.log"), "a", encoding="ascii") as log:
            log.write(f"{status} {self.path}\n")
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        if self.headers.get("X-Api-Key") != content("key").decode().strip():
            return self.answer(403, b'{"message":"access forbidden"}')
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        name = "all.json" if query["startup"] == ["true"] else "delta.json"
        return self.answer(200, content(name), [("Content-Type", "application/json")])

    def do_GET(self):  # pylint: disable=invalid-name,too-many-return-statements
        mode = content("mode").decode().strip()
        if mode == "500":
            return self.answer(500, b"oops")
        if mode == "hangs":
            time.sleep(600)
        if mode == "to-file":
            return self.answer(302, headers=[("Location", f"file://{folder}/list")])
        if mode == "to-http":
            return self.answer(302, headers=[("Location", "http://127.0.0.1:1/list")])
        if mode == "endless":
            self.send_response(200)
            self.end_headers()
            line = b"198.18.0.1\n" * 10_000
            while True:
                self.wfile.write(line)
        if mode == "bomb":
            body = gzip.compress(b"\0" * (256 << 20))
            return self.answer(200, body, [("Content-Encoding", "gzip")])
        if self.path.startswith("/v1/"):
            return self.stream()
        body = content("list")
        tag = '"' + hashlib.sha256(body).hexdigest()[:16] + '"'
        if mode == "truncated":
            self.close_connection = True
            return self.answer(200, body[: len(body) // 2], length=len(body))
        if mode == "slow":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(1)
            return None
        if self.headers.get("If-None-Match") == tag:
            return self.answer(304, headers=[("ETag", tag)])
        return self.answer(200, body, [("ETag", tag)])


server = Server(("127.0.0.1", port), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
