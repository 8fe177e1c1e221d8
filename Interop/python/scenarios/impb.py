# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of IMPB with an old phone app."""

from clients import impb
from clients.impb import pb, sender_of, text_of
from support.checks import equal, require
from support.world import PASSWORD, World


def refused(body, what: str, kind: int | None = None):
    try:
        body()
    except impb.Refused as refusal:
        if kind is not None:
            equal(refusal.error.type, kind, f"{what}: error.type")
        require(refusal.error.msg, f"{what}: the error has no message")
        return refusal.error
    raise AssertionError(f"{what} was not refused")


def accounts(world: World):
    """Registration, login, a wrong password, an unknown name, a taken name, and the token."""
    phone = world.impb()
    name = world.name("ann")
    registered = phone.register(name, PASSWORD)
    require(0 < registered.uid < 2**31 and registered.token, f"registered: {registered}")
    other = world.impb()
    refused(lambda: other.register(name, PASSWORD), "registering a taken name")
    refused(lambda: other.register(name.upper(), PASSWORD), "registering a taken name in capitals")
    login = world.impb().login(name, PASSWORD)
    equal(login.uid, registered.uid, "uid at login")
    require(login.token, "no token at login")
    refused(lambda: world.impb().login(name, "wrong password"), "a wrong password", pb.ErrorMsg.invalid_params)
    unknown = refused(lambda: world.impb().login(world.name("nobody"), PASSWORD), "an unknown name")
    wrong = refused(lambda: world.impb().login(name, "wrong again"), "a wrong password")
    equal(unknown.msg, wrong.msg, "the message for an unknown name and for a wrong password")
    again = world.impb()
    again.login(token=login.token)
    equal(again.uid, registered.uid, "uid at login by token")
    refused(lambda: world.impb().login(token="x" * 43), "an invented token")


def unicode_name(world: World):
    name = world.name("爱丽丝")
    uid = world.impb().register(name, "пароль-🔑").uid
    phone = world.impb()
    phone.login(name, "пароль-🔑")
    equal(phone.user_info(uid).nick_name, name, "the name")


def pings(world: World):
    phone = world.impb()
    for seq in (0, 1, 2**31, 2**32 - 1):
        frame = impb.encode(seq, impb.PING)
        phone.write(frame)
        equal(phone.frame(), (seq, impb.PING, b""), "the echo before login")
    person = world.person("ann")
    phone.login(person.nick_name, PASSWORD)
    phone.ping()


def drip(world: World):
    """A login with one byte in each segment, and then a thousand pings in one write."""
    person = world.person("ann")
    phone = world.impb()
    login = pb.login_request(nick_name=person.nick_name, pwd=PASSWORD, device_id="phone")
    phone.drip(impb.request(77, pb.Common.user, impb.user(pb.User_msg.login, login)))
    equal(pb.login_response.FromString(phone.reply(77)).uid, person.uid, "uid")
    phone.write(b"".join(impb.encode(seq, impb.PING) for seq in range(1000)))
    for seq in range(1000):
        phone.expect(lambda f: f[:2] == (seq, impb.PING), f"echo {seq}")


def not_logged_in(world: World):
    person = world.person("bob")
    stranger = world.impb()
    refused(lambda: stranger.send_text(person.uid, "hello"), "a message before login")
    refused(lambda: stranger.user_info(person.uid), "user_info before login")
    request = pb.p2p_connect(type=0, body=pb.p2pconnect_request(target_uid=person.uid).SerializeToString())
    refused(lambda: stranger.ask(pb.Common.p2p_connect, request), "p2p before login")
    stranger.ping()


def both_ways(world: World):
    """Text, location, sound, expression, custom and unknown contents in both directions, and receipts. The server
    overwrites `from`."""
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.phone(ann), world.phone(bob)
    place = pb.msg_location_content(location=pb.msg_location_content.Location(lat=26.23, lon=121.47))
    contents = [
        (pb.text, pb.msg_text_content(text="你好, 🙂")),
        (pb.image, pb.msg_img_content(img_url="http://x/y.png")),
        (pb.location, place),
        (pb.sound, pb.msg_sound_content(sound_duration=1.5, source_url="http://x/s", location_url="/s", fild_nme="s.amr")),
        (pb.expression, pb.msg_expression_content(eid=7, name="smile")),
        (pb.custom, pb.msg_cumstom_content(info=pb.ext_key_info(key="k", value="v"))),
        (4, b"\x0a\x03any"),       # video: the published schema has no body for it
        (99, b"\x00\xff\xfe"),     # a type that neither side knows
    ]
    for one, other, me, you in ((a, b, ann, bob), (b, a, bob, ann)):
        for kind, content in contents:
            data = content if isinstance(content, bytes) else content.SerializeToString()
            receipt = one.send(you.uid, kind, data, sender=4711, ext=[("color", "blue"), ("größe", "12")])
            equal(len(receipt.message_id), 26, f"length of the message id of type {kind}")
            require(receipt.server_time > 10**12 and receipt.seq > 0, f"receipt: {receipt}")
            message = other.chat_message(f"a message of type {kind}")
            equal(message.type, kind, "type")
            equal(message.content, data, f"content of type {kind}")
            equal((sender_of(message), message.to), (me.uid, you.uid), "from and to")
            equal(message.message_id, receipt.message_id, "message id")
            equal([(e.key, e.value) for e in message.ext], [("color", "blue"), ("größe", "12")], f"ext of type {kind}")
            equal(message.from_info.nick_name, me.nick_name, "from_info")


def idempotent(world: World):
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.phone(ann), world.phone(bob)
    first = a.send_text(bob.uid, "once", client_id="c-1")
    second = a.send_text(bob.uid, "once", client_id="c-1")
    equal(second.message_id, first.message_id, "message id of the repetition")
    require(second.duplicate, "the repetition is not marked")
    refused(lambda: a.send_text(bob.uid, "something else", client_id="c-1"), "the same client id with other content")
    a.send_text(bob.uid, "fence")
    equal([text_of(b.chat_message()) for _ in range(2)], ["once", "fence"], "what arrived")


def refusals(world: World):
    """An unknown receiver, undecodable requests, and unknown methods, commands and message types."""
    ann = world.person("ann")
    a = world.phone(ann)
    refused(lambda: a.send_text(2**31 - 1, "hello"), "a message to nobody")
    refused(lambda: a.send_text(-5, "hello"), "a message to a negative uid")
    a.write(bytes.fromhex("8100000001020003ffffff"))
    refused(lambda: a.reply(1), "a body that is no protobuf", pb.ErrorMsg.invalid_params)
    a.write(impb.encode(501, impb.REQUEST, pb.Common(method=0, body=b"\xff\xff\xff").SerializeToString()))
    refused(lambda: a.reply(501), "an inner body that is no protobuf", pb.ErrorMsg.invalid_params)
    a.write(impb.encode(502, impb.REQUEST, pb.Common(method=4, body=b"").SerializeToString()))
    refused(lambda: a.reply(502), "method respond")
    a.write(impb.encode(503, impb.REQUEST, b"\x08\x63"))
    refused(lambda: a.reply(503), "an unknown method")
    a.write(impb.encode(504, impb.REQUEST, pb.Common(method=0, body=b"\x08\x63").SerializeToString()))
    refused(lambda: a.reply(504), "an unknown user command")
    a.write(impb.encode(505, impb.CHAT, b"\xff\xff\xff"))
    refused(lambda: a.reply(505), "a chat message that is no protobuf", pb.ErrorMsg.invalid_params)
    a.write(impb.encode(506, impb.CHAT, pb.base_msg(type=3, body=b"").SerializeToString()))
    refused(lambda: a.reply(506), "a broadcast from a client")
    a.ping()


def bad_magic(world: World):
    neighbour = world.phone(world.person("ann"))
    for data in (bytes.fromhex("8000000001010000"), b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 64):
        phone = world.impb()
        phone.write(data)
        require(phone.closes(5), f"the connection stays open after {data[:8].hex()}")
    neighbour.ping()


def unknown_type(world: World):
    """The server answers an unknown frame type or closes the connection. It echoes a ping with a body or closes the
    connection."""
    for data in (bytes.fromhex("8100000001090000"), bytes.fromhex("8100000001010003616263")):
        phone = world.impb()
        phone.write(data)
        try:
            phone.frame(5)
        except Exception as error:
            require(type(error).__name__ == "Closed", f"neither an answer nor a close: {error}")


def info_and_presence(world: World):
    ann, bob = world.person("ann"), world.person("bob")
    a = world.phone(ann, ip="192.168.0.100", port=56741)
    equal(a.user_info(ann.uid).is_online, 1, "one's own is_online")
    info = a.user_info(bob.uid)
    equal((info.uid, info.nick_name, info.is_online), (bob.uid, bob.nick_name, 0), "an absent user")
    world.phone(bob)
    equal(a.user_info(bob.uid).is_online, 1, "is_online of a present user")
    refused(lambda: a.user_info(2**31 - 1), "user_info of nobody")


def offline(world: World):
    """Messages for an offline user wait in order for each of the user's devices. Delivered messages do not come
    again."""
    ann, bob = world.person("ann"), world.person("bob")
    for device in ("one", "two"):
        world.phone(bob, device).close()
    a = world.phone(ann)
    ids = [a.send_text(bob.uid, f"waiting {n}").message_id for n in range(50)]
    for device, entries in (("one", 50), ("two", 51)):  # the second device also gets the fence for the first
        phone = world.phone(bob, device)
        notification = phone.notification(pb.Notification_msg.offline_msg, "that messages wait")
        equal(pb.offline_msg_notification.FromString(notification.body).count, entries, f"what waits for {device}")
        phone.write(impb.encode(9, impb.NOTIFICATION, notification.SerializeToString()))  # the notification's receipt
        equal([phone.chat_message().message_id for _ in ids], ids, f"what waited for device {device}")
        phone.ping()  # the next frame confirms all deliveries
        phone.close()
        phone = world.phone(bob, device)
        fence = a.send_text(bob.uid, f"fence {device}").message_id
        new = phone.chat_message(matches=lambda m: m.message_id not in ids or True)
        while text_of(new).startswith("fence") and new.message_id != fence:
            new = phone.chat_message()  # the fence for the other device also waited for this device
        equal(new.message_id, fence, "the first message after coming back")
        phone.ping()


def replaced(world: World):
    ann = world.person("ann")
    first, other = world.phone(ann, "phone"), world.phone(ann, "desk")
    second = world.phone(ann, "phone")
    require(first.closes(5), "the older connection of the same device stays open")
    other.ping()
    second.ping()


def logout(world: World):
    ann = world.person("ann")
    phone = world.phone(ann)
    token = phone.token
    phone.ask(pb.Common.user, impb.user(pb.User_msg.logout, pb.logout_request(uid=ann.uid)))
    refused(lambda: world.impb().login(token=token), "a token after logout")


def pull_and_ack(world: World):
    """The extension for explicit acknowledgements and for pulling again."""
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.phone(ann), world.phone(bob)
    ids = [a.send_text(bob.uid, f"n {n}").message_id for n in range(5)]
    got = [b.chat_message() for _ in ids]
    equal([m.seq for m in got], list(range(got[0].seq, got[0].seq + 5)), "seqs")

    def message(command: int, body) -> bytes:
        return b.ask(pb.Common.message, pb.Message_msg(cmd=command, body=body.SerializeToString()))

    answer = pb.pull_response.FromString(message(pb.Message_msg.pull, pb.pull_request(after_seq=got[1].seq, limit=10)))
    equal((answer.head_seq, answer.count), (got[4].seq, 3), "head and count")
    equal([b.chat_message().message_id for _ in range(3)], ids[2:], "what was pulled")
    message(pb.Message_msg.ack, pb.ack_request(up_to_seq=got[4].seq))


def p2p(world: World):
    ann, bob, absent = world.person("ann"), world.person("bob"), world.person("eve")
    a = world.phone(ann, ip="10.0.0.1", port=40001)

    def connect(target: int):
        body = pb.p2pconnect_request(uid=ann.uid, target_uid=target).SerializeToString()
        return pb.p2pconnect_response.FromString(a.ask(pb.Common.p2p_connect, pb.p2p_connect(type=0, body=body)))

    def befriend(other) -> None:
        phone = world.phone(other)
        ask = pb.add_friend_req(target_id=str(ann.uid)).SerializeToString()
        phone.ask(pb.Common.friend, pb.Friend_msg(cmd=pb.Friend_msg.add_friend, body=ask))
        yes = pb.receive_friend_req(target_uid=str(other.uid), is_receive=True).SerializeToString()
        a.ask(pb.Common.friend, pb.Friend_msg(cmd=pb.Friend_msg.receive_friend, body=yes))
        phone.close()

    refused(lambda: connect(bob.uid), "a link to a stranger")
    befriend(bob)
    befriend(absent)
    b = world.phone(bob, ip="10.0.0.2", port=40002)
    answer = connect(bob.uid)
    require(answer.is_online and answer.is_exit, f"online and existing: {answer}")
    equal((answer.sponsor_ip_info.ip, answer.sponsor_ip_info.port), ("10.0.0.1", 40001), "own address")
    require(not answer.HasField("target_ip_info"), f"the other has not agreed: {answer}")
    equal(answer.sponsor_ip_info.sock_ip, a.socket.getsockname()[0], "own observed address")

    asked = b.notification(pb.Notification_msg.p2p_receive_connect_req, "notification 4")
    equal(asked.target_uid, bob.uid, "notification 4 is for")
    body = pb.p2p_receive_connect_notification.FromString(asked.body)
    equal((body.sponsor_uid, body.sponsor_ip_info.ip), (ann.uid, "10.0.0.1"), "who asks")

    post = pb.p2p_post_ip_request(sponsor_uid=ann.uid, uid=bob.uid, isReady=True,
                                  ip_info=pb.Ip_info(ip="10.0.0.2", port=50002)).SerializeToString()
    posted = pb.p2p_post_ip_response.FromString(b.ask(pb.Common.p2p_connect, pb.p2p_connect(type=2, body=post)))
    require(posted.is_suc, "post_ip was not passed on")
    ready = a.notification(pb.Notification_msg.p2p_connect_ready, "notification 5")
    body = pb.p2p_connect_ready_notification.FromString(ready.body)
    equal(body.uid, bob.uid, "who is ready")
    require(body.port > 0 and body.ip, f"where: {body}")

    answer = connect(absent.uid)
    equal((answer.is_online, answer.is_exit), (False, True), "an absent user")
    refused(lambda: connect(2**31 - 1), "a link to nobody")


CHECKS = [
    ("IMPB: register, login, wrong password, token", accounts),
    ("IMPB: names and passwords in Unicode", unicode_name),
    ("IMPB: pings come back unchanged, before and after login", pings),
    ("IMPB: one byte a segment, and a thousand frames in one", drip),
    ("IMPB: nothing but pings before login", not_logged_in),
    ("IMPB: every kind of content both ways, with receipts", both_ways),
    ("IMPB: sending again is safe", idempotent),
    ("IMPB: what cannot be understood is refused, and the connection lives", refusals),
    ("IMPB: a wrong magic closes the connection", bad_magic),
    ("IMPB: unknown types are survived", unknown_type),
    ("IMPB: user info and presence", info_and_presence),
    ("IMPB: messages wait for each device of an absent user", offline),
    ("IMPB: the same device again replaces the older connection", replaced),
    ("IMPB: logout revokes the token", logout),
    ("IMPB: pull and acknowledge (extension)", pull_and_ack),
    ("IMPB: setting up a direct link", p2p),
]
