# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks with programs in other languages: mosquitto_pub, _sub and _rr, Eclipse Paho C, mqtt.js. All are from Debian
packages."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import threading

from clients.paho_client import Cast
from support.broker import Address
from support.checks import Skipped, equal, require
from support.environment import apt, cache

HERE = pathlib.Path(__file__).resolve().parents[2] / "mqtt"
PATIENCE = 30
VERSIONS = {"3.1.1": "311", "5.0": "5"}
_tried: set[str] = set()


def needed(package: str, there) -> None:
    """Tries once to install a Debian package. Skips the check if the package is still missing."""
    if not there() and package not in _tried:
        _tried.add(package)
        apt(package)
    if not there():
        raise Skipped(f"{package} is missing (Debian: apt-get install {package})")


# --- mosquitto_pub and mosquitto_sub -------------------------------------------------------------------------------


class Tools:
    def __init__(self, cast: Cast, version: str, address: Address | None = None):
        needed("mosquitto-clients", lambda: shutil.which("mosquitto_sub"))
        address = address or cast.broker.tcp
        self.cast = cast
        self.common = ["-h", address.host, "-p", f"{address.port}", "-V", VERSIONS[version]]
        if address.authority:
            self.common += ["--cafile", address.authority]

    def pub(self, *words: str, text: str | None = None) -> None:
        try:
            done = subprocess.run(["mosquitto_pub", *self.common, *words], input=text, capture_output=True, text=True,
                                  timeout=PATIENCE if text is None else PATIENCE / 3)
        except subprocess.TimeoutExpired:
            # With -l, the program sometimes hangs after the end of its input (eclipse-mosquitto/mosquitto#1448). The
            # subscriber checks that all lines were published.
            require(text is not None, "mosquitto_pub does not end")
            return
        require(done.returncode == 0, f"mosquitto_pub ended with {done.returncode}: {done.stderr.strip()}")

    def sub(self, *words: str) -> "Listener":
        return Listener(["mosquitto_sub", *self.common, "-W", f"{PATIENCE}", *words])

    def rr(self, *words: str) -> str:
        done = subprocess.run(["mosquitto_rr", *self.common, "-W", "10", *words], capture_output=True, text=True,
                              timeout=PATIENCE)
        require(done.returncode == 0, f"mosquitto_rr ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout


class Listener:
    """A running mosquitto_sub. The output of `-d` shows when it has subscribed."""

    def __init__(self, command: list[str]):
        line_by_line = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
        self.process = subprocess.Popen([*line_by_line, *command, "-d"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said: list[str] = []
        while True:
            line = self.process.stdout.readline()
            self.said.append(line)
            if line.startswith("Subscribed"):
                break
            require(line, f"mosquitto_sub ended: {''.join(self.said[-3:])}")

    def end(self, code: int = 0) -> list[str]:
        """Waits for the end of the program, and returns the output lines that are messages."""
        timer = threading.Timer(PATIENCE + 5, self.process.kill)
        timer.start()
        lines = [line.rstrip("\n") for line in self.said + self.process.stdout.readlines()]
        self.process.wait()
        timer.cancel()
        require(self.process.returncode == code, f"mosquitto_sub ended with {self.process.returncode}: {lines[-3:]}")
        return [line.removeprefix("m:") for line in lines if line.startswith("m:")]


def tools(cast: Cast, version: str, address: str = "tcp"):
    """Messages of every QoS from lines of standard input, and a retained message that is replaced and removed."""
    t = Tools(cast, version, getattr(cast.broker, address))
    for qos in "012":
        listener = t.sub("-t", cast.topic("#"), "-q", "2", "-C", "200", "-F", "m:%t %q %r %p")
        t.pub("-t", cast.topic("x"), "-q", qos, "-l", text="".join(f"{n}\n" for n in range(200)))
        equal(listener.end(), [f"{cast.topic('x')} {qos} 0 {n}" for n in range(200)], f"QoS {qos}")
    t.pub("-t", cast.topic("kept"), "-m", "old", "-r", "-q", "1")
    t.pub("-t", cast.topic("kept"), "-m", "new", "-r", "-q", "1")
    equal(t.sub("-t", cast.topic("kept"), "-q", "1", "-C", "1", "-F", "m:%r %p").end(), ["1 new"], "the retained message")
    t.pub("-t", cast.topic("kept"), "-n", "-r", "-q", "1")
    listener = t.sub("-t", cast.topic("#"), "-C", "1", "-F", "m:%p")
    t.pub("-t", cast.topic("other"), "-m", "live")
    equal(listener.end(), ["live"], "after clearing")


def tools_session(cast: Cast, version: str):
    """With mosquitto_sub -c, messages that are published between two runs arrive in the second run."""
    t = Tools(cast, version)
    name = cast.name()
    listener = t.sub("-i", name, "-c", "-t", cast.topic(), "-q", "2", "-C", "1", "-F", "m:%p")
    t.pub("-t", cast.topic(), "-m", "first", "-q", "1")
    equal(listener.end(), ["first"], "while it was there")
    t.pub("-t", cast.topic(), "-q", "2", "-l", text="".join(f"{n}\n" for n in range(50)))
    listener = t.sub("-i", name, "-c", "-t", cast.topic(), "-q", "2", "-C", "50", "-F", "m:%p")
    equal(listener.end(), [f"{n}" for n in range(50)], "what waited")


def tools_will(cast: Cast, version: str):
    t = Tools(cast, version)
    listener = t.sub("-t", cast.topic("will"), "-q", "1", "-C", "1", "-F", "m:%q %p")
    dying = t.sub("-t", cast.topic("x"), "--will-topic", cast.topic("will"), "--will-payload", "lost", "--will-qos", "1")
    dying.process.kill()
    dying.process.communicate()
    equal(listener.end(), ["1 lost"], "the will")


def tools_properties(cast: Cast):
    """Every property of PUBLISH with -D, printed as JSON; a shared subscription; and mosquitto_rr."""
    t = Tools(cast, "5.0")
    listener = t.sub("-t", cast.topic(), "-q", "1", "-C", "1", "-F", "m:%j")
    t.pub("-t", cast.topic(), "-q", "1", "-m", "x", "-D", "publish", "content-type", "a/b",
          "-D", "publish", "user-property", "k", "v", "-D", "publish", "response-topic", cast.topic("r"),
          "-D", "publish", "message-expiry-interval", "60", "-D", "publish", "payload-format-indicator", "1",
          "-D", "publish", "correlation-data", "c")
    found = json.loads(listener.end()[0])
    values = found.get("properties", found)
    equal(values.get("content-type"), "a/b", "content type")
    equal(values.get("response-topic"), cast.topic("r"), "response topic")
    require("k" in json.dumps(values.get("user-properties", "")), f"user properties: {values}")
    shared = t.sub("-t", f"$share/g/{cast.topic('s')}", "-q", "1", "-C", "3", "-F", "m:%p")
    t.pub("-t", cast.topic("s"), "-q", "1", "-l", text="1\n2\n3\n")
    equal(shared.end(), ["1", "2", "3"], "a shared subscription")
    answering = cast.device()
    answering.client.on_message = lambda client, _, message: client.publish(
        message.properties.ResponseTopic, b"answer to " + message.payload)
    answering.subscribe(cast.topic("q"), 1)
    equal(t.rr("-t", cast.topic("q"), "-e", cast.topic("a"), "-m", "this").strip(), "answer to this", "mosquitto_rr")


def tools_older(cast: Cast):
    """A connection with -V mqttv31 is refused, and the output names the version as the reason."""
    t = Tools(cast, "5.0")
    t.common[t.common.index("-V") + 1] = "mqttv31"
    done = subprocess.run(["mosquitto_pub", *t.common, "-t", cast.topic(), "-m", "x"], capture_output=True, text=True,
                          timeout=PATIENCE)
    require(done.returncode != 0, "MQTT 3.1 was served")
    require("version" in done.stderr.lower() + done.stdout.lower(), f"it says: {done.stderr}{done.stdout}")


# --- Paho C --------------------------------------------------------------------------------------------------------


def paho_c() -> str:
    """Returns the path of the compiled program. It is compiled again only if its source has changed."""
    needed("libpaho-mqtt-dev", lambda: os.path.exists("/usr/include/MQTTClient.h"))
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise Skipped("a C compiler is missing")
    source = HERE / "paho.c"
    program = cache() / f"paho-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        made = subprocess.run([compiler, "-O1", "-Wall", "-o", f"{program}.new", str(source), "-lpaho-mqtt3cs"],
                              capture_output=True, text=True)
        require(made.returncode == 0, f"{compiler}: {made.stderr[-600:]}")
        os.replace(f"{program}.new", program)
    return str(program)


def node() -> str:
    needed("node-mqtt", lambda: shutil.which("node") and os.path.isdir("/usr/share/nodejs/mqtt"))
    return shutil.which("node")


def external(cast: Cast, program, scenario: str, version: str, address: str):
    where: Address = getattr(cast.broker, address)
    started = program()
    url = where.url
    command = [started, scenario, "5" if version == "5.0" else "4", url, cast.root]
    environment = dict(os.environ)
    if program is node:
        command.insert(1, str(HERE / "client.js"))
        environment["NODE_PATH"] = "/usr/share/nodejs"
    if where.authority:
        command.append(where.authority)
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=environment)
    require(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.strip()[-400:]}{done.stdout.strip()[-200:]}")


SCENARIOS = {"qualities": "QoS, order, large payloads", "retained": "retained", "session": "a session's messages wait",
             "will": "will"}
PLAIN, SECURE = [], []
for version in VERSIONS:
    PLAIN += [(f"mosquitto_pub and _sub {version}: QoS, retained", tools, version),
              (f"mosquitto_pub and _sub {version}: a session's messages wait", tools_session, version),
              (f"mosquitto_pub and _sub {version}: will", tools_will, version)]
    SECURE += [(f"mosquitto_pub and _sub {version}: TLS", tools, version)]
PLAIN += [("mosquitto_pub, _sub and _rr 5.0: properties, shared, request and response", tools_properties),
          ("mosquitto_pub 3.1: refused", tools_older)]
for kind, program in (("Paho C", paho_c), ("mqtt.js", node)):
    for version in VERSIONS:
        for scenario, words in SCENARIOS.items():
            PLAIN.append((f"{kind} {version}: {words}", external, program, scenario, version, "tcp"))
        PLAIN.append((f"{kind} {version}: WebSocket", external, program, "qualities", version, "websocket"))
        SECURE.append((f"{kind} {version}: TLS", external, program, "qualities", version, "tcp"))
        # Over WebSocket in TLS, Paho C 1.3.11 damages large payloads. The other clients do not.
        secure = "retained" if program is paho_c else "qualities"
        SECURE.append((f"{kind} {version}: WebSocket in TLS", external, program, secure, version, "websocket"))
    PLAIN.append((f"{kind} 5.0: properties", external, program, "properties", "5.0", "tcp"))
