# Hermes
# SPDX-License-Identifier: Apache-2.0
"""A blocking connection that collects frames. The protocols' subclasses cut the frames out of the bytes."""

import socket
import struct
import time


class Closed(Exception):
    """The server closed the connection."""


class Link:
    """A connection. Frames that no call has requested yet are in `waiting`, in order of arrival."""

    def __init__(self, port: int, source: str | None = None, timeout: float = 10, host: str = "127.0.0.1", tls=None):
        self.timeout = timeout
        self.bytes = bytearray()
        self.waiting: list = []
        try:
            self.socket = socket.create_connection((host, port), timeout, (source, 0) if source else None)
        except OSError:
            if not source:
                raise
            self.socket = socket.create_connection((host, port), timeout)  # this system cannot bind to the address
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")

    # The protocols' subclasses override this. It removes one frame from self.bytes and returns it, or None.
    def take(self):
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drip(self, data: bytes) -> None:
        """Sends each byte in its own segment."""
        for byte in data:
            self.socket.sendall(bytes([byte]))

    def frame(self, timeout: float | None = None):
        """Returns the next frame of any kind."""
        if self.waiting:
            return self.waiting.pop(0)
        return self._read(time.monotonic() + (self.timeout if timeout is None else timeout))

    def _read(self, deadline: float):
        while True:
            frame = self.take()
            if frame is not None:
                return frame
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("nothing came in time")
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(1 << 18)
            except (TimeoutError, socket.timeout):
                raise TimeoutError("nothing came in time") from None
            except ConnectionError:
                data = b""
            if not data:
                raise Closed("the server closed the connection")
            self.bytes += data

    def expect(self, matches, what: str, timeout: float | None = None):
        """Returns the first frame that matches. The other frames stay in `waiting`."""
        for index, frame in enumerate(self.waiting):
            if matches(frame):
                return self.waiting.pop(index)
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            try:
                frame = self._read(deadline)
            except (TimeoutError, Closed) as error:
                raise type(error)(f"waiting for {what}: {error}; came instead: {self._others()}") from None
            if matches(frame):
                return frame
            self.waiting.append(frame)

    def _others(self) -> str:
        return "; ".join(repr(frame).replace("\n", " ")[:160] for frame in self.waiting[-3:]) or "nothing"

    def closes(self, timeout: float | None = None) -> bool:
        """Returns whether the server closes the connection in time. Frames that arrive before that are added to
        `waiting`."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        try:
            while True:
                self.waiting.append(self._read(deadline))
        except Closed:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        try:
            self.socket.close()
        except OSError:
            pass

    def reset(self) -> None:
        """Closes the connection with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()
