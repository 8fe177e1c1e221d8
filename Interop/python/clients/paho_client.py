# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Eclipse Paho for Python with blocking calls. Each call returns the server's answer."""

import itertools
import os
import queue
import secrets
import socket
import ssl
import threading
import time

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from support.broker import Address
from support.checks import Failed, require

PATIENCE = 10.0
V31, V311, V5 = paho.MQTTv31, paho.MQTTv311, paho.MQTTv5


def properties(kind: int, **values) -> Properties | None:
    """Returns the properties of a packet, by their names in Paho, such as `MessageExpiryInterval=5`."""
    made = Properties(kind)
    for name, value in values.items():
        setattr(made, name, value)
    return made if values else None


def with_user_properties(made: Properties, pairs) -> Properties:
    for pair in pairs:
        made.UserProperty = pair  # Paho appends the pair to its list
    return made


class Device:
    """A client with one client id at one address. The network loop runs in Paho's own thread."""

    _fences = itertools.count(1)

    def __init__(self, address: Address, client_id: str | None = None, version: int = V5, clean: bool = True, *,
                 expiry: int | None = None, will: dict | None = None, user: tuple[str, str | None] | None = None,
                 manual: bool = False, keep_alive: int = 60, connect: bool = True, certificate: tuple | None = None,
                 **connect_properties):
        self.address, self.version, self.clean, self.keep_alive = address, version, clean, keep_alive
        self.client_id = secrets.token_hex(6) if client_id is None else client_id
        kind = {} if version == V5 else {"clean_session": clean}
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=self.client_id, protocol=version,
                                  transport="websockets" if address.websocket else "tcp", manual_ack=manual,
                                  reconnect_on_failure=False, **kind)
        if address.websocket:
            self.client.ws_set_options(path="/mqtt")
        if address.authority:
            context = ssl.create_default_context(cafile=address.authority)
            if certificate:
                context.load_cert_chain(*certificate)
            self.client.tls_set_context(context)
        if user:
            self.client.username_pw_set(*user)
        if will:
            self.client.will_set(**will)
        if expiry is not None:
            connect_properties["SessionExpiryInterval"] = expiry
        self.connect_properties = connect_properties
        self.received: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.answers: dict[tuple[str, int], object] = {}
        self.changed = threading.Condition()
        self.connack = None
        self.closed = threading.Event()
        self.close_reason = None
        self.aliases: dict[int, str] = {}
        self.fence_topic: str | None = None
        self.client.on_connect = self._connected
        self.client.on_disconnect = self._disconnected
        self.client.on_message = self._message
        self.client.on_subscribe = lambda c, u, mid, codes, p: self._answer("subscribe", mid, codes)
        self.client.on_unsubscribe = lambda c, u, mid, codes, p: self._answer("unsubscribe", mid, codes)
        self.client.on_publish = lambda c, u, mid, code, p: self._answer("publish", mid, code)
        if connect:
            self.connect()

    # The callbacks of Paho's thread.

    def _connected(self, client, _, flags, code, properties) -> None:
        with self.changed:
            self.connack = (flags, code, properties)
            self.changed.notify_all()

    def _disconnected(self, client, _, flags, code, properties) -> None:
        self.close_reason = code if flags.is_disconnect_packet_from_server else None
        self.closed.set()
        with self.changed:
            self.changed.notify_all()

    def _message(self, client, _, message) -> None:
        alias = getattr(message.properties, "TopicAlias", None) if self.version == V5 else None
        if alias is not None:
            if message.topic:
                self.aliases[alias] = message.topic
            else:
                message.topic = self.aliases[alias].encode()
        self.received.put(message)

    def _answer(self, kind: str, number: int, value) -> None:
        with self.changed:
            self.answers[kind, number] = value
            self.changed.notify_all()

    def _wait(self, condition, what: str):
        with self.changed:
            if not self.changed.wait_for(lambda: condition() or self.closed.is_set(), PATIENCE):
                raise Failed(f"{self.client_id}: no {what} within {PATIENCE:.0f} s")
            require(condition(), f"{self.client_id}: the connection ended before {what} ({self.close_reason})")

    # The calls of a check.

    def connect(self, accepted: bool = True):
        """Connects, and returns (flags, reason code, properties) of the CONNACK. If `accepted` is true, the CONNACK
        must accept the connection."""
        more = {}
        if self.version == V5:
            more = {"clean_start": self.clean, "properties": properties(PacketTypes.CONNECT, **self.connect_properties)}
        self.connack = None
        self.closed.clear()
        self.client.connect(self.address.host, self.address.port, self.keep_alive, **more)
        self.client.loop_start()
        self._wait(lambda: self.connack is not None, "CONNACK")
        if accepted:
            require(not self.connack[1].is_failure, f"{self.client_id} was refused: {self.connack[1]}")
        return self.connack

    @property
    def present(self) -> bool:
        """Whether the server had a session for this client."""
        return self.connack[0].session_present

    def subscribe(self, filters, qos: int = 0, identifier: int | None = None, failing: bool = False, **options) -> list[int]:
        """Subscribes to one or more filters, and returns the reason codes. Failures are allowed only if `failing` is
        true."""
        filters = [filters] if isinstance(filters, str) else filters
        if self.version == V5:
            kind = SubscribeOptions(qos=qos, **options)
            asked = properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=identifier) if identifier else None
            _, number = self.client.subscribe([(name, kind) for name in filters], properties=asked)
        else:
            _, number = self.client.subscribe([(name, qos) for name in filters])
        self._wait(lambda: ("subscribe", number) in self.answers, "SUBACK")
        codes = [code.value for code in self.answers.pop(("subscribe", number))]
        require(len(codes) == len(filters), f"{len(codes)} codes for {len(filters)} filters")
        require(failing or all(code < 0x80 for code in codes), f"refused: {codes}")
        return codes

    def unsubscribe(self, *filters: str) -> list[int]:
        _, number = self.client.unsubscribe(list(filters))
        self._wait(lambda: ("unsubscribe", number) in self.answers, "UNSUBACK")
        return [code.value for code in self.answers.pop(("unsubscribe", number))]

    def publish(self, topic: str, payload="", qos: int = 0, retain: bool = False, wait: bool = True,
                made: Properties | None = None, **values):
        """Publishes a message, waits for the end of the exchange, and returns its reason code."""
        if self.version == V5 and made is None:
            made = properties(PacketTypes.PUBLISH, **values)
        info = self.client.publish(topic, payload, qos, retain, properties=made)
        require(info.rc == paho.MQTT_ERR_SUCCESS, f"publish: {paho.error_string(info.rc)}")
        if not wait:
            return info.mid
        return self.acknowledged(info.mid)

    def acknowledged(self, number: int) -> int:
        self._wait(lambda: ("publish", number) in self.answers, "acknowledgement")
        return self.answers.pop(("publish", number)).value

    def message(self, timeout: float = PATIENCE) -> paho.MQTTMessage:
        try:
            return self.received.get(timeout=timeout)
        except queue.Empty:
            raise Failed(f"{self.client_id}: no message within {timeout:g} s ({self.close_reason})") from None

    def messages(self, count: int) -> list[paho.MQTTMessage]:
        return [self.message() for _ in range(count)]

    def payloads(self, count: int) -> list[str]:
        return [self.message().payload.decode() for _ in range(count)]

    def ack(self, message) -> None:
        """Acknowledges a message. Only for a client with `manual`."""
        self.client.ack(message.mid, message.qos)

    def fence(self, publisher: "Device | None" = None) -> list[paho.MQTTMessage]:
        """Lets the publisher send a mark, and returns all messages that arrived before the mark. Other earlier messages
        will not arrive.

        A publisher's messages arrive in the order in which it sent them, so the check does not need to wait for
        silence.
        """
        publisher = publisher or self
        if self.fence_topic is None:
            self.fence_topic = f"fence/{self.client_id}"
            self.subscribe(self.fence_topic, qos=1)
        mark = f"{next(self._fences)}"
        publisher.publish(self.fence_topic, mark, qos=1)
        found = []
        while True:
            message = self.message()
            if message.topic == self.fence_topic:
                if self.client.manual_ack_get() if hasattr(self.client, "manual_ack_get") else self.client._manual_ack:
                    self.ack(message)
                if message.payload.decode() == mark:
                    return found
            else:
                found.append(message)

    def disconnect(self, reason: int | None = None, **values) -> None:
        """Sends DISCONNECT, and waits until the server has closed the connection, too. Later messages then wait for
        this client.

        Paho closes its socket as soon as the packet is written. A second descriptor keeps the connection open.
        """
        link = self.client.socket()
        held = socket.socket(fileno=os.dup(link.fileno())) if link is not None else None
        if self.version == V5:
            from paho.mqtt.reasoncodes import ReasonCode
            code = ReasonCode(PacketTypes.DISCONNECT, identifier=reason) if reason else None
            self.client.disconnect(reasoncode=code, properties=properties(PacketTypes.DISCONNECT, **values))
        else:
            self.client.disconnect()
        self.ended()
        self.client.loop_stop()
        if held is not None:
            with held:
                self._read_to_end(held)

    def _read_to_end(self, link: socket.socket) -> None:
        link.settimeout(PATIENCE)
        try:
            while link.recv(65_536):
                pass
        except TimeoutError:
            raise Failed(f"{self.client_id}: the server left the connection open for {PATIENCE:.0f} s") from None
        except ConnectionError:
            pass

    def drop(self) -> None:
        """Ends the connection without DISCONNECT, like a lost network."""
        link = self.client.socket()
        self.client._thread_terminate = True
        if link is not None:
            raw = getattr(link, "_socket", link)
            try:
                raw.shutdown(2)
            except OSError:
                pass
        self.closed.wait(PATIENCE)
        self.client.loop_stop()

    def ended(self, timeout: float = PATIENCE):
        """Waits until the server has closed the connection, and returns the reason code (5.0)."""
        require(self.closed.wait(timeout), f"{self.client_id}: the connection is still open after {timeout:g} s")
        return self.close_reason

    def close(self) -> None:
        if not self.closed.is_set() and self.client.is_connected():
            self.client.disconnect()
        self.client.loop_stop()


class Cast:
    """The devices of one check, with their own topics. They are closed after the check."""

    def __init__(self, broker):
        self.broker = broker
        self.devices: list[Device] = []
        self.root = f"interop/{secrets.token_hex(4)}"

    def device(self, *arguments, address: Address | None = None, **more) -> Device:
        made = Device(address or self.broker.tcp, *arguments, **more)
        self.devices.append(made)
        return made

    def topic(self, name: str = "t") -> str:
        return f"{self.root}/{name}"

    def name(self, stem: str = "client") -> str:
        return f"{stem}-{secrets.token_hex(4)}"

    def later(self, seconds: float) -> None:
        """Waits for a time that the check needs, such as an expiry or a delay."""
        time.sleep(seconds)

    def close(self) -> None:
        for device in self.devices:
            try:
                device.close()
            except Exception:  # only the result of the check matters
                pass
