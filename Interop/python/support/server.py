# Hermes
# SPDX-License-Identifier: Apache-2.0
"""A `hermes serve` process with its own data directory and free ports."""

import functools
import http.client
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from support.environment import ROOT

LISTENERS = ("impb", "liveroom", "qsiop", "delimited", "http")

# The interop programs send more than one phone does, so their limits are higher. Separate checks test the limits.
GENEROUS = {
    "HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": "5000",
    "HERMES_LIMITS_REQUESTS_PER_SECOND": "1000000",
    "HERMES_LIMITS_REGISTRATIONS_PER_ADDRESS": "0",
    "HERMES_LIMITS_REGISTRATIONS_PER_HOUR": "0",
    # A fast machine writes more messages to an offline device than an inbox stores by default.
    "HERMES_LIMITS_INBOX": "1024 GiB",
    "HERMES_LIMITS_INBOX_ENTRIES": "100000000",
    "HERMES_LIMITS_UNREAD_PER_ACCOUNT": "1024 GiB",
    "HERMES_QSIOP_REQUIRE_TOKEN": "true",
}


def binary() -> str:
    """Returns the path of the server's program: HERMES_BIN, or the release build, or the debug build."""
    chosen = os.environ.get("HERMES_BIN")
    candidates = [chosen] if chosen else [str(ROOT / ".build" / kind / "hermes") for kind in ("release", "debug")]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    sys.exit(f"interop: no server binary at {' or '.join(candidates)}; run `swift build -c release` or set HERMES_BIN")


@functools.cache
def bench() -> str:
    """Makes a release build of `hermes-bench`, and returns the program's path."""
    built = subprocess.run([ROOT / "scripts" / "bench", "--compile"], stdout=subprocess.PIPE, text=True, check=True)
    return built.stdout.strip()


def free_ports(count: int) -> list[int]:
    """Returns different ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Server:
    """Starts, kills, stops and watches one server. After a restart, the server has the same ports and data."""

    def __init__(self, settings: dict[str, str] | None = None, data: str | None = None,
                 arguments: list[str] | None = None, listeners: tuple[str, ...] = LISTENERS):
        self.own_directory = tempfile.mkdtemp(prefix="hermes-interop-")
        self.data = data or os.path.join(self.own_directory, "data")
        self.ports = dict(zip(listeners, free_ports(len(listeners))))
        self.log = os.path.join(self.own_directory, "server.log")
        self.arguments = arguments or []
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("HERMES_")}
        self.environment.setdefault("SWIFT_BACKTRACE", "enable=yes,color=no,interactive=no,threads=all,sanitize=no")
        self.environment["HERMES_DATA_DIRECTORY"] = self.data
        for name in {*LISTENERS, "mqtt"}:
            self.environment[f"HERMES_LISTENERS_{name.upper()}_ENABLED"] = "true" if name in self.ports else "false"
        for name, port in self.ports.items():
            self.environment[f"HERMES_LISTENERS_{name.upper()}_PORT"] = str(port)
        self.environment.update(GENEROUS)
        self.environment.update(settings or {})
        self.process: subprocess.Popen | None = None

    def launch(self) -> subprocess.Popen:
        """Starts the process without waiting for it to be ready."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [binary(), "serve", *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.environment,
                cwd=self.own_directory,
            )
        return self.process

    def start(self, timeout: float = 30) -> "Server":
        """Starts the process, and waits until all its ports accept connections and /readyz no longer reports
        “starting”."""
        self.launch()
        deadline = time.monotonic() + timeout
        for port in self.ports.values():
            while True:
                if self.process.poll() is not None:
                    raise RuntimeError(f"the server ended with {self.process.returncode}: {self.tail()}")
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"port {port} does not accept: {self.tail()}") from None
                    time.sleep(0.02)  # polling another process, bounded by the deadline
        while "http" in self.ports and self.is_starting():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server is not ready: {self.tail()}")
            time.sleep(0.02)  # polling another process, bounded by the deadline
        return self

    def is_starting(self) -> bool:
        """Whether /readyz reports “starting”. The HTTP port opens before all other ports. The result is False if the
        port uses TLS."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=5)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status == 503 and b"starting" in answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """Kills the process with SIGKILL, like a crash."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self, timeout: float = 20) -> int:
        """Stops the process with SIGTERM, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the server did not stop within {timeout} s of SIGTERM: {self.tail()}") from None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.own_directory, ignore_errors=True)

    def tail(self, characters: int = 2000) -> str:
        try:
            return pathlib.Path(self.log).read_text(errors="replace")[-characters:]
        except OSError:
            return ""

    def resident_bytes(self) -> int:
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def sockets(self) -> int:
        """Returns the number of open sockets. It does not include files, because a busy store opens more files."""
        place = f"/proc/{self.process.pid}/fd"
        count = 0
        for name in os.listdir(place):
            try:
                count += os.readlink(os.path.join(place, name)).startswith("socket:")
            except OSError:
                pass  # the descriptor was closed in the meantime
        return count

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *_) -> None:
        self.remove()
