# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The broker of the MQTT checks: `hermes serve`, or Debian's mosquitto to test the checks themselves."""

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from support.checks import Skipped, require
from support.server import Server, binary, free_ports

LISTENERS = ("mqtt", "http")
ACCOUNT, PASSWORD = "interop", "correct horse"


def certificates(directory: str) -> None:
    """Makes an authority, a certificate for localhost and 127.0.0.1, and a client certificate. All are valid for two
    days."""
    if not shutil.which("openssl"):
        raise Skipped("openssl is missing")

    def openssl(*arguments: str) -> None:
        made = subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True, text=True)
        require(made.returncode == 0, f"openssl {arguments[0]}: {made.stderr[-300:]}")

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=Interop CA", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign", "-keyout", "ca.key", "-out", "ca.crt")
    for name, names in (("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:interop")):
        with open(f"{directory}/{name}.ext", "w") as file:
            file.write(f"subjectAltName={names}\n")
        openssl("req", *key, "-subj", f"/CN={'interop' if name == 'client' else 'localhost'}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")


@dataclasses.dataclass
class Address:
    """The address to which a client connects."""

    port: int
    authority: str | None = None
    """The file of the authority that the client trusts, or None without TLS."""
    websocket: bool = False
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The URL in the form of Paho C and mqtt.js."""
        if self.websocket:
            return f"{'wss' if self.authority else 'ws'}://{self.host}:{self.port}/mqtt"
        return f"{'mqtts' if self.authority else 'mqtt'}://{self.host}:{self.port}"


class HermesBroker:
    """`hermes serve` with MQTT over TCP and WebSocket. Clients may be anonymous or use one account."""

    name = "hermes"

    def __init__(self, settings: dict[str, str] | None = None, secure: bool = False):
        self.server = Server(settings, listeners=LISTENERS)
        self.authority = None
        place = self.server.own_directory
        if secure:
            certificates(place)
            self.authority = f"{place}/ca.crt"
            for name in LISTENERS:
                self.server.environment[f"HERMES_LISTENERS_{name.upper()}_TLS_CERTIFICATE"] = f"{place}/server.crt"
                self.server.environment[f"HERMES_LISTENERS_{name.upper()}_TLS_PRIVATE_KEY"] = f"{place}/server.key"
        self.tcp = Address(self.server.ports["mqtt"], self.authority)
        self.websocket = Address(self.server.ports["http"], self.authority, websocket=True)

    def start(self) -> "HermesBroker":
        self.server.start()
        return self

    def add_account(self) -> None:
        """Creates `ACCOUNT` with the server's command line while the server runs."""
        place = f"{self.server.own_directory}/password"
        with open(place, "w") as file:
            file.write(PASSWORD + "\n")
        command = [binary(), "user", "add", ACCOUNT, "--password-file", place, "--data", self.server.data]
        made = subprocess.run(command, env=self.server.environment, capture_output=True, text=True, timeout=30)
        require(made.returncode == 0, f"hermes user add: {made.stdout}{made.stderr}")

    def restart(self) -> None:
        """Stops the server with SIGTERM and starts it again."""
        require(self.server.stop() == 0, "the exit code after SIGTERM is not 0")
        self.server.start()

    def kill(self) -> None:
        """Kills the server, like a crash, and starts it again."""
        self.server.kill()
        self.server.start()

    def running(self) -> None:
        require(self.server.process.poll() is None, f"it ended with {self.server.process.returncode}")

    def stop(self) -> int:
        return self.server.stop()

    def tail(self) -> str:
        return self.server.tail(4000)

    def remove(self) -> None:
        self.server.remove()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_) -> None:
        self.remove()


class MosquittoBroker(HermesBroker):
    """Debian's mosquitto in place of the server."""

    name = "mosquitto"

    def __init__(self, settings: dict[str, str] | None = None, secure: bool = False):
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        if not os.access(program, os.X_OK):
            raise Skipped("mosquitto is missing (Debian: apt-get install mosquitto)")
        self.place = tempfile.mkdtemp(prefix="hermes-interop-mosquitto-")
        os.chmod(self.place, 0o777)  # mosquitto drops its root rights
        self.authority = None
        tls = ""
        if secure:
            certificates(self.place)
            os.chmod(f"{self.place}/server.key", 0o644)
            self.authority = f"{self.place}/ca.crt"
            tls = f"cafile {self.authority}\ncertfile {self.place}/server.crt\nkeyfile {self.place}/server.key\n"
        tcp, websocket = free_ports(2)
        self.tcp, self.websocket = Address(tcp, self.authority), Address(websocket, self.authority, websocket=True)
        self.log = f"{self.place}/log"
        with open(f"{self.place}/mosquitto.conf", "w") as file:
            file.write(f"allow_anonymous true\npersistence true\npersistence_location {self.place}/\nsys_interval 1\n"
                       f"max_inflight_messages 1000\nmax_queued_messages 0\nretain_available true\n"
                       f"listener {tcp} 127.0.0.1\n{tls}listener {websocket} 127.0.0.1\nprotocol websockets\n{tls}")
        self.command = [program, "-c", f"{self.place}/mosquitto.conf"]
        self.process: subprocess.Popen | None = None

    def start(self) -> "MosquittoBroker":
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.tcp.port), timeout=1).close()
                return self
            except OSError:
                require(self.process.poll() is None and time.monotonic() < deadline, self.tail)
                time.sleep(0.02)  # polling another process, bounded by the deadline

    def add_account(self) -> None:
        raise Skipped("mosquitto has no accounts")

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        raise Skipped("mosquitto keeps nothing over a crash")

    def running(self) -> None:
        require(self.process.poll() is None, f"it ended with {self.process.returncode}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)

    def tail(self) -> str:
        return open(self.log, errors="replace").read()[-2000:]

    def remove(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)
