# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Paho clients that subscribe and then do nothing, for Interop/idle: paho_idle.py PORT COUNT KEEPALIVE."""

import sys
import threading

import paho.mqtt.client as paho

port, count, keepalive = (int(argument) for argument in sys.argv[1:4])
ready = threading.Semaphore(0)
clients = []
for number in range(count):
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.on_connect = lambda client, *_: client.subscribe("idle/0")
    client.on_subscribe = lambda *_: ready.release()
    client.connect("127.0.0.1", port, keepalive=keepalive)
    client.loop_start()
    clients.append(client)
for _ in range(count):
    ready.acquire()
threading.Event().wait()
