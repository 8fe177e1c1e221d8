# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks with gmqtt (an independent implementation) and aiomqtt, which asyncio applications use."""

import asyncio
import logging
import ssl

import aiomqtt
import gmqtt
from gmqtt.mqtt.constants import MQTTv50, MQTTv311
from paho.mqtt.packettypes import PacketTypes

from clients.paho_client import Cast, properties, with_user_properties
from support.broker import Address
from support.checks import equal, require

for name in ("gmqtt", "mqtt"):
    logging.getLogger(name).setLevel(logging.CRITICAL)
PATIENCE = 10
VERSIONS = {"3.1.1": (MQTTv311, aiomqtt.ProtocolVersion.V311), "5.0": (MQTTv50, aiomqtt.ProtocolVersion.V5)}


def run(body, *arguments):
    async def quietly():
        # gmqtt leaves a task that tries to reconnect.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        return await asyncio.wait_for(body(*arguments), 60)

    return asyncio.run(quietly())


# --- gmqtt ---------------------------------------------------------------------------------------------------------


class Gmqtt:
    """A gmqtt client that puts received messages into a queue."""

    def __init__(self, client_id: str, clean: bool = True, will: gmqtt.Message | None = None, **more):
        self.client = gmqtt.Client(client_id, clean_session=clean, will_message=will, **more)
        self.received: asyncio.Queue = asyncio.Queue()
        self.subscribed, self.ended = asyncio.Event(), asyncio.Event()
        self.granted = ()
        self.flags = None
        self.client.set_config({"reconnect_retries": 0})
        self.client.on_message = self._message
        self.client.on_subscribe = self._subscribed
        self.client.on_connect = lambda client, flags, rc, properties: setattr(self, "flags", flags)
        self.client.on_disconnect = lambda *_: self.ended.set()

    def _message(self, client, topic, payload, qos, properties):
        self.received.put_nowait((topic, bytes(payload), qos, properties))
        return 0

    def _subscribed(self, client, mid, qos, properties):
        self.granted = qos
        self.subscribed.set()

    async def connect(self, address: Address, version: int) -> "Gmqtt":
        secure = ssl.create_default_context(cafile=address.authority) if address.authority else False
        await asyncio.wait_for(self.client.connect(address.host, address.port, ssl=secure, version=version), PATIENCE)
        return self

    async def subscribe(self, topic: str, qos: int, **more):
        self.subscribed.clear()
        self.client.subscribe(topic, qos, **more)
        await asyncio.wait_for(self.subscribed.wait(), PATIENCE)
        require(all(code < 0x80 for code in self.granted), f"refused: {self.granted}")

    async def message(self):
        return await asyncio.wait_for(self.received.get(), PATIENCE)

    async def close(self):
        self.client.stop_reconnect()
        await self.client.disconnect()

    async def drop(self):
        """Ends the connection like a lost network."""
        self.client.stop_reconnect()
        self.client._connection._transport.abort()
        await asyncio.wait_for(self.ended.wait(), PATIENCE)


async def _gmqtt(cast: Cast, version: int):
    address = cast.broker.tcp
    a, b = await Gmqtt(cast.name()).connect(address, version), await Gmqtt(cast.name()).connect(address, version)
    await b.subscribe(cast.topic("#"), 2)
    for qos in (0, 1, 2):
        for n in range(100):
            a.client.publish(cast.topic(f"{qos}"), f"{n}", qos=qos)
        found = [await b.message() for _ in range(100)]
        equal([(t, int(p), q) for t, p, q, _ in found], [(cast.topic(f"{qos}"), n, qos) for n in range(100)], f"QoS {qos}")
    a.client.publish(cast.topic("kept"), "kept", qos=1, retain=True)
    equal((await b.message())[3]["retain"], 0, "the flag for who was there")
    late = await Gmqtt(cast.name()).connect(address, version)
    await late.subscribe(cast.topic("kept"), 1)
    topic, payload, qos, more = await late.message()
    equal((payload, qos, more["retain"]), (b"kept", 1, 1), "the retained message")
    late.client.publish(cast.topic("kept"), "", qos=1, retain=True)
    equal((await b.message())[1], b"", "the clearing")
    dying = Gmqtt(cast.name(), will=gmqtt.Message(cast.topic("will"), "lost", qos=1))
    await dying.connect(address, version)
    await dying.drop()
    equal((await b.message())[:3], (cast.topic("will"), b"lost", 1), "the will")
    for one in (a, b, late):
        await one.close()


async def _gmqtt_session(cast: Cast, version: int):
    more = {"session_expiry_interval": 600} if version == MQTTv50 else {}
    a = await Gmqtt(cast.name()).connect(cast.broker.tcp, version)
    name = cast.name()
    b = await Gmqtt(name, clean=False, **more).connect(cast.broker.tcp, version)
    equal(b.flags, 0, "session present")
    await b.subscribe(cast.topic(), 2)
    await b.close()
    for n in range(50):
        a.client.publish(cast.topic(), f"{n}", qos=1 + n % 2)
    await asyncio.wait_for(a.client._wait_qos_queue_drained(), PATIENCE)
    watch = await Gmqtt(cast.name()).connect(cast.broker.tcp, version)
    await watch.subscribe(cast.topic("fence"), 1)
    a.client.publish(cast.topic("fence"), "", qos=2)
    await watch.message()
    again = await Gmqtt(name, clean=False, **more).connect(cast.broker.tcp, version)
    equal(again.flags, 1, "session present")
    found = [await again.message() for _ in range(50)]
    for qos in (1, 2):
        equal([int(p) for _, p, q, _ in found if q == qos], [n for n in range(50) if 1 + n % 2 == qos], f"QoS {qos}")
    for one in (a, again, watch):
        await one.close()


async def _gmqtt_five(cast: Cast):
    version = MQTTv50
    a = await Gmqtt(cast.name(), topic_alias_maximum=5).connect(cast.broker.tcp, version)
    b = await Gmqtt(cast.name(), topic_alias_maximum=5).connect(cast.broker.tcp, version)
    await b.subscribe(cast.topic("+"), 1, subscription_identifier=77)
    pairs = [("k", "v"), ("k", "w")]
    a.client.publish(cast.topic("p"), "x", qos=1, user_property=pairs, content_type="text/plain", message_expiry_interval=60,
                     response_topic=cast.topic("r"), correlation_data=b"7", payload_format_id=1)
    topic, payload, qos, found = await b.message()
    equal((topic, payload), (cast.topic("p"), b"x"), "the message")
    equal([tuple(pair) for pair in found["user_property"]], pairs, "user properties")
    equal((found["content_type"], found["response_topic"], found["correlation_data"], found["subscription_identifier"]),
          (["text/plain"], [cast.topic("r")], [b"7"], [77]), "properties")
    require(58 <= found["message_expiry_interval"][0] <= 60, f"expiry {found['message_expiry_interval']}")
    for n in range(20):
        a.client.publish(cast.topic("alias"), f"{n}", qos=1)
    equal([(t, p) for t, p, _, _ in [await b.message() for _ in range(20)]],
          [(cast.topic("alias"), f"{n}".encode()) for n in range(20)], "topics, by the server's aliases if it uses any")
    for one in (a, b):
        await one.close()


# --- aiomqtt -------------------------------------------------------------------------------------------------------


def aio(cast: Cast, version, address: Address | None = None, **more) -> aiomqtt.Client:
    address = address or cast.broker.tcp
    if address.authority:
        more["tls_context"] = ssl.create_default_context(cafile=address.authority)
    if address.websocket:
        more |= {"transport": "websockets", "websocket_path": "/mqtt"}
    return aiomqtt.Client(address.host, address.port, protocol=version, timeout=PATIENCE,
                          identifier=more.pop("identifier", cast.name()), **more)


async def _next(client: aiomqtt.Client) -> aiomqtt.Message:
    return await asyncio.wait_for(anext(aiter(client.messages)), PATIENCE)


async def _aiomqtt(cast: Cast, version, address: Address | None = None):
    will = aiomqtt.Will(cast.topic("will"), b"lost", qos=1)
    async with aio(cast, version, address) as a, aio(cast, version, address) as b:
        await b.subscribe(cast.topic("#"), qos=2)
        for qos in (0, 1, 2):
            for n in range(100):
                await a.publish(cast.topic(f"{qos}"), f"{n}", qos=qos)
            found = [await _next(b) for _ in range(100)]
            equal([(int(m.payload), m.qos) for m in found], [(n, qos) for n in range(100)], f"QoS {qos}")
        await a.publish(cast.topic("kept"), "kept", qos=1, retain=True)
        require(not (await _next(b)).retain, "the flag for who was there")
        async with aio(cast, version, address) as late:
            await late.subscribe(cast.topic("kept"), qos=1)
            message = await _next(late)
            equal((message.payload, message.retain), (b"kept", True), "the retained message")
            await late.publish(cast.topic("kept"), b"", qos=1, retain=True)
        equal((await _next(b)).payload, b"", "the clearing")
        try:
            async with aio(cast, version, address, will=will) as dying:
                link = dying._client.socket()
                getattr(link, "_socket", link).shutdown(2)
                await asyncio.wait_for(dying._disconnected, PATIENCE)
        except aiomqtt.MqttError:
            pass
        equal((await _next(b)).payload, b"lost", "the will")


async def _aiomqtt_five(cast: Cast):
    version = aiomqtt.ProtocolVersion.V5
    name = cast.name()
    durable = {"identifier": name, "clean_start": False,
               "properties": properties(PacketTypes.CONNECT, SessionExpiryInterval=600)}
    async with aio(cast, version, **durable) as b:
        await b.subscribe(cast.topic(), qos=1)
    async with aio(cast, version) as a:
        made = with_user_properties(properties(PacketTypes.PUBLISH, ContentType="a/b"), [("k", "v")])
        for n in range(20):
            await a.publish(cast.topic(), f"{n}", qos=1, properties=made)
    async with aio(cast, version, **durable) as again:
        found = [await _next(again) for _ in range(20)]
        equal([int(m.payload) for m in found], list(range(20)), "what waited")
        equal((found[0].properties.ContentType, found[0].properties.UserProperty), ("a/b", [("k", "v")]), "properties")


def transport(address: str):
    return lambda cast, number: run(_aiomqtt, cast, number, getattr(cast.broker, address))


PLAIN = [(f"gmqtt {name}: QoS, order, retained, will", lambda cast, number: run(_gmqtt, cast, number), numbers[0])
         for name, numbers in VERSIONS.items()]
PLAIN += [(f"gmqtt {name}: a session's messages wait", lambda cast, number: run(_gmqtt_session, cast, number), numbers[0])
          for name, numbers in VERSIONS.items()]
PLAIN += [("gmqtt 5.0: properties, aliases", lambda cast: run(_gmqtt_five, cast))]
PLAIN += [(f"aiomqtt {name}: QoS, order, retained, will", transport("tcp"), numbers[1])
          for name, numbers in VERSIONS.items()]
PLAIN += [(f"aiomqtt {name}: WebSocket", transport("websocket"), numbers[1]) for name, numbers in VERSIONS.items()]
PLAIN += [("aiomqtt 5.0: a session's messages wait", lambda cast: run(_aiomqtt_five, cast))]
SECURE = [(f"gmqtt {name}: TLS", lambda cast, number: run(_gmqtt, cast, number), numbers[0])
          for name, numbers in VERSIONS.items()]
SECURE += [("aiomqtt 5.0: TLS", transport("tcp"), VERSIONS["5.0"][1]),
           ("aiomqtt 5.0: WebSocket in TLS", transport("websocket"), VERSIONS["5.0"][1])]
