# Hermes
# SPDX-License-Identifier: Apache-2.0
"""IMPB: each frame is an 8-byte big-endian header and a protobuf message."""

import struct

from impb import impb_pb2 as pb

from clients.link import Link

PING, REQUEST, CHAT, NOTIFICATION = 1, 2, 3, 4
MAGIC = 0x81


class Refused(Exception):
    """The answer's field isSuc was false."""

    def __init__(self, error):
        super().__init__(f"type {error.type}, code {error.code}: {error.msg}")
        self.error = error


def encode(seq: int, kind: int, body: bytes = b"") -> bytes:
    return struct.pack(">BIBH", MAGIC, seq, kind, len(body)) + body


def request(seq: int, method: int, body) -> bytes:
    return encode(seq, REQUEST, pb.Common(method=method, body=body.SerializeToString()).SerializeToString())


def user(command: int, body) -> pb.User_msg:
    return pb.User_msg(cmd=command, body=body.SerializeToString())


def c2c(to: int, kind: int, content: bytes, sender: int = 0, client_id: str = "", ext=()) -> pb.C2C_msg:
    message = pb.C2C_msg(to=to, type=kind, content=content, client_id=client_id)
    setattr(message, "from", sender)
    for key, value in ext:
        message.ext.add(key=key, value=value)
    return message


def chat(seq: int, message: pb.C2C_msg) -> bytes:
    body = pb.base_msg(type=pb.base_msg.c2c, body=message.SerializeToString())
    return encode(seq, CHAT, body.SerializeToString())


class IMPB(Link):
    """A phone. Its frames are (seq, type, body)."""

    seq = 0
    uid = 0
    token = ""

    def take(self):
        if len(self.bytes) < 8:
            return None
        magic, seq, kind, length = struct.unpack_from(">BIBH", self.bytes)
        assert magic == MAGIC, f"the server sent magic {magic:#x}"
        if len(self.bytes) < 8 + length:
            return None
        body = bytes(self.bytes[8:8 + length])
        del self.bytes[:8 + length]
        return seq, kind, body

    def next(self) -> int:
        self.seq += 1
        return self.seq

    def reply(self, seq: int, timeout: float | None = None) -> bytes:
        """Waits for the answer to a request and returns its `respon`. Raises Refused if isSuc is false."""
        _, _, body = self.expect(lambda f: f[1] == REQUEST and f[0] == seq, f"the reply to {seq}", timeout)
        answer = pb.CommonRespon.FromString(body)
        if not answer.isSuc:
            raise Refused(answer.error)
        return answer.respon

    def ask(self, method: int, body) -> bytes:
        seq = self.next()
        self.write(request(seq, method, body))
        return self.reply(seq)

    def register(self, nick_name: str, password: str):
        body = user(pb.User_msg.sign_in, pb.signin_request(nick_name=nick_name, pwd=password))
        return pb.sigin_response.FromString(self.ask(pb.Common.user, body))

    def login(self, nick_name: str = "", password: str = "", device: str = "phone", token: str = "", **more):
        login = pb.login_request(nick_name=nick_name, pwd=password, device_id=device, device_name=device,
                                 version="1.0", token=token, **more)
        answer = pb.login_response.FromString(self.ask(pb.Common.user, user(pb.User_msg.login, login)))
        self.uid, self.token = answer.uid, answer.token or token
        return answer

    def user_info(self, uid: int):
        body = user(pb.User_msg.user_info, pb.User_info_request(uid=uid))
        return pb.User_info_response.FromString(self.ask(pb.Common.user, body)).user_info

    def ping(self) -> None:
        frame = encode(self.next(), PING)
        self.write(frame)
        self.expect(lambda f: f == (self.seq, PING, b""), "the ping's echo")

    def send(self, to: int, kind: int, content, **more):
        """Sends a message and returns its receipt."""
        data = content if isinstance(content, bytes) else content.SerializeToString()
        seq = self.next()
        self.write(chat(seq, c2c(to, kind, data, **more)))
        return pb.Message_receipt.FromString(self.reply(seq))

    def send_text(self, to: int, text: str, **more):
        return self.send(to, pb.text, pb.msg_text_content(text=text), **more)

    def chat_message(self, what: str = "a chat message", matches=lambda message: True, timeout: float | None = None):
        """Waits for the next C2C message, from another account or from another device of the same account."""
        found = []

        def wanted(frame) -> bool:
            if frame[1] != CHAT:
                return False
            base = pb.base_msg.FromString(frame[2])
            if base.type != pb.base_msg.c2c:
                return False
            message = pb.C2C_msg.FromString(base.body)
            if not matches(message):
                return False
            found.append(message)
            return True

        self.expect(wanted, what, timeout)
        return found[0]

    def notification(self, kind: int, what: str):
        found = []

        def wanted(frame) -> bool:
            if frame[1] != NOTIFICATION:
                return False
            message = pb.Notification_msg.FromString(frame[2])
            if message.type != kind:
                return False
            found.append(message)
            return True

        self.expect(wanted, what)
        return found[0]


def text_of(message: pb.C2C_msg) -> str:
    return pb.msg_text_content.FromString(message.content).text


def sender_of(message: pb.C2C_msg) -> int:
    return getattr(message, "from")
