# Hermes
# SPDX-License-Identifier: Apache-2.0
"""A server over TLS. It speaks HTTP/2 (PyPI's `h2`) with clients that ask for it, and otherwise HTTP/1.1 (Python's
own). It records the requests, and a function makes the answers."""

import dataclasses
import datetime
import http.server
import ipaddress
import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.events
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclasses.dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes = b""
    is_http2: bool = False


def certificate(directory: str) -> tuple[str, str]:
    """Makes a self-signed certificate for 127.0.0.1. Returns the paths of the certificate and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hermes interop")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    paths = (f"{directory}/fake.pem", f"{directory}/fake.key")
    with open(paths[0], "wb") as file:
        file.write(made.public_bytes(serialization.Encoding.PEM))
    with open(paths[1], "wb") as file:
        file.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                     serialization.NoEncryption()))
    return paths


class _Old(http.server.BaseHTTPRequestHandler):
    """One HTTP/1.1 connection of a ``Fake``. The ``Fake`` is the property ``server``."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, self.rfile.read(int(headers.get("content-length", "0"))))
        status, more, body = self.server.answered(request)
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_) -> None:
        pass


class Fake:
    """The server. `answer(request)` returns (status, headers, body)."""

    def __init__(self, directory: str, answer):
        self.authority, key = certificate(directory)
        self.answer = answer
        self.requests: list[Request] = []
        self.condition = threading.Condition()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(self.authority, key)
        self.tls.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def wait(self, matches, count: int = 1, timeout: float = 20) -> list[Request]:
        """Waits until `count` requests match, and returns the matching requests."""
        deadline = time.monotonic() + timeout
        with self.condition:
            while True:
                found = [request for request in self.requests if matches(request)]
                left = deadline - time.monotonic()
                if len(found) >= count:
                    return found
                if left <= 0:
                    paths = [request.path for request in self.requests]
                    raise AssertionError(f"{len(found)} of {count} requests within {timeout} s; all: {paths}")
                self.condition.wait(left)

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            with self.tls.wrap_socket(plain, server_side=True) as connection:
                if connection.selected_alpn_protocol() == "h2":
                    self._speak(connection)
                else:
                    _Old(connection, connection.getpeername(), self)
        except OSError:
            pass  # the other end has closed, or does not trust the certificate

    def _speak(self, connection: ssl.SSLSocket) -> None:
        link = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        link.initiate_connection()
        connection.sendall(link.data_to_send())
        open_requests: dict[int, Request] = {}
        while data := connection.recv(65536):
            for event in link.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    headers = {self._text(name): self._text(value) for name, value in event.headers}
                    open_requests[event.stream_id] = Request(headers.pop(":path"), headers, is_http2=True)
                elif isinstance(event, h2.events.DataReceived):
                    open_requests[event.stream_id].body += event.data
                    link.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    self._finish(link, event.stream_id, open_requests.pop(event.stream_id))
            connection.sendall(link.data_to_send())

    def _finish(self, link, stream: int, request: Request) -> None:
        status, headers, body = self.answered(request)
        link.send_headers(stream, [(":status", str(status)), *headers.items()])
        link.send_data(stream, body.encode() if isinstance(body, str) else body, end_stream=True)

    def answered(self, request: Request):
        answer = self.answer(request)
        with self.condition:
            self.requests.append(request)
            self.condition.notify_all()
        return answer

    @staticmethod
    def _text(value) -> str:
        return value.decode() if isinstance(value, bytes) else value
