# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of TLS on every listener, with OpenSSL as the client and with a separate server."""

import os
import shutil
import signal
import ssl
import subprocess
import time

from clients.delimited import Delimited
from clients.impb import IMPB
from clients.link import Closed
from clients.liveroom import LiveRoom
from clients.qsiop import QSIOP
from support.checks import Skipped, equal, require
from support.server import Server
from support.world import PASSWORD


def certificate(directory: str, name: str) -> str:
    """Makes a self-signed certificate for localhost. Returns its serial number in the form of Python's ssl."""
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{directory}/{name}.key", "-out", f"{directory}/{name}.crt"],
        capture_output=True, text=True)
    require(made.returncode == 0, f"openssl: {made.stderr[-300:]}")
    return ssl._ssl._test_decode_cert(f"{directory}/{name}.crt")["serialNumber"]


def trusting(path: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=path)


def everywhere():
    """All four protocols work in TLS. Plain text on a TLS port affects no other client. After SIGHUP, the server uses
    the new certificate."""
    if not shutil.which("openssl"):
        raise Skipped("openssl is missing")
    server = Server()
    try:
        place = server.own_directory
        first, second = certificate(place, "first"), certificate(place, "second")
        for ending in ("crt", "key"):
            shutil.copy(f"{place}/first.{ending}", f"{place}/live.{ending}")
        for name in ("impb", "liveroom", "qsiop", "delimited"):
            server.environment[f"HERMES_LISTENERS_{name.upper()}_TLS_CERTIFICATE"] = f"{place}/live.crt"
            server.environment[f"HERMES_LISTENERS_{name.upper()}_TLS_PRIVATE_KEY"] = f"{place}/live.key"
        server.start()
        context = trusting(f"{place}/first.crt")
        ports = server.ports
        phone = IMPB(ports["impb"], tls=context)
        answer = phone.register("tls", PASSWORD)
        phone.login("tls", PASSWORD)
        app = Delimited(ports["delimited"], tls=context)
        equal(app.login("tls", PASSWORD).uid, answer.uid, "uid")
        equal(app.socket.getpeercert()["serialNumber"], first, "the certificate")
        watch = QSIOP(ports["qsiop"], tls=context)
        equal(watch.report(answer.uid, device="watch", token=phone.token).get("code"), "0", "the report's code")
        LiveRoom(ports["liveroom"], tls=context).settle("ann")
        sent = phone.send_text(answer.uid, "x" * 40_000)  # to the same account, in several TLS records
        equal(app.event().message.id, sent.message_id, "the message")
        plain = Delimited(ports["delimited"])
        try:
            plain.ping()
        except (Closed, OSError, TimeoutError, AssertionError):
            pass
        else:
            raise AssertionError("plain text was served on a TLS port")

        for ending in ("crt", "key"):
            shutil.copy(f"{place}/second.{ending}", f"{place}/live.{ending}")
        server.process.send_signal(signal.SIGHUP)
        renewed = trusting(f"{place}/second.crt")
        deadline = time.monotonic() + 5
        while True:  # the server handles the signal at an unknown time
            try:
                link = Delimited(ports["delimited"], tls=renewed)
                break
            except ssl.SSLError:
                require(time.monotonic() < deadline, "after SIGHUP the old certificate is still shown")
        equal(link.socket.getpeercert()["serialNumber"], second, "the new certificate")
        app.ping()
        phone.ping()

        with open(f"{place}/live.crt", "w") as file:
            file.write("nonsense")
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)  # the invalid certificate must have no visible effect
        Delimited(ports["delimited"], tls=renewed).ping()
        require(os.path.exists(f"/proc/{server.process.pid}"), "the server ended on a bad certificate")
        equal(server.stop(), 0, "exit code")
    finally:
        server.remove()


CHECKS = [("TLS on every listener, and a new certificate on SIGHUP", everywhere)]
