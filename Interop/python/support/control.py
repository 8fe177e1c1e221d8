# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The control socket of a server. The command line uses it, too."""

import json
import socket


def control(directory: str, request: str, /, **values) -> dict:
    """Sends a request, as the command line does, and returns the server's answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"{directory}/control.sock")
        connection.sendall(json.dumps({request: values}).encode() + b"\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    document = json.loads(answer)
    if "failed" in document:
        raise AssertionError(document)
    return document
