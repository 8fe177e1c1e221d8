# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of Delimited: hermes.v1 with a client of the native protocol."""

from google.protobuf.internal.encoder import _VarintBytes

from clients import delimited
from clients.delimited import Refused
from clients.liveroom import GIFT, JOIN, LEAVE, TEXT, pb
from hermes.v1 import (account_pb2, contact_pb2, device_pb2, group_pb2, inbox_pb2, message_pb2, packet_pb2, presence_pb2,
                       room_pb2, signal_pb2, statistics_pb2)
from support.checks import equal, require
from support.world import PASSWORD, World

NOT_AUTHENTICATED, ALREADY_AUTHENTICATED, WRONG_CREDENTIALS, INVALID_TOKEN, NAME_TAKEN = 1001, 1002, 1003, 1004, 1006
INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, CONFLICT, TOO_LARGE = 2001, 2002, 2003, 2004, 2006


def refused(body, what: str, *codes: int):
    try:
        body()
    except Refused as refusal:
        require(not codes or refusal.code in codes, f"{what}: refused with {refusal}, expected {codes}")
        require(refusal.error.message, f"{what}: the error has no message")
        return refusal
    raise AssertionError(f"{what} was not refused")


def with_user(uid: int) -> message_pb2.Conversation:
    return message_pb2.Conversation(uid=uid)


def accounts(world: World):
    app = world.delimited()
    app.ping()
    refused(lambda: app.send(1, "hello"), "sending before authentication", NOT_AUTHENTICATED)
    name = world.name("ann")
    session = app.register(name, PASSWORD)
    require(0 < session.uid < 2**31 and session.token and session.epoch, f"session: {session}")
    require(session.max_frame_bytes >= 1 << 16 and session.idle_timeout_ms > 0, f"limits: {session}")
    app.ping()
    refused(lambda: app.register(world.name("ann"), PASSWORD), "registering twice", ALREADY_AUTHENTICATED)
    refused(lambda: world.delimited().register(name, PASSWORD), "registering a taken name", NAME_TAKEN)
    refused(lambda: world.delimited().register("", PASSWORD), "an empty name", INVALID_ARGUMENT)
    refused(lambda: world.delimited().register(world.name("ann"), "short"), "a short password", INVALID_ARGUMENT)
    again = world.delimited().login(name, PASSWORD)
    equal((again.uid, again.nick_name, again.epoch), (session.uid, name, session.epoch), "the session by password")
    by_token = world.delimited().login(token=again.token)
    equal((by_token.uid, by_token.token), (session.uid, ""), "the session by token")
    refused(lambda: world.delimited().login(name, "wrong password"), "a wrong password", WRONG_CREDENTIALS)
    refused(lambda: world.delimited().login(token="x" * 43), "an invented token", INVALID_TOKEN)


def sending(world: World):
    """Sending, receipts, a repetition with the same client id, and a conflict."""
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.app(ann), world.app(bob)
    first = a.send(bob.uid, "one", client_id="c-1")
    equal((len(first.message_id), first.client_id, first.conversation_seq, first.duplicate), (26, "c-1", 1, False),
          "the receipt")
    event = b.event()
    message = event.message
    equal((message.id, message.from_uid, message.from_nick_name, message.content.text, message.conversation_seq),
          (first.message_id, ann.uid, ann.nick_name, "one", 1), "the message")
    equal((message.conversation.uid, message.own), (ann.uid, False), "its conversation")
    again = a.send(bob.uid, "one", client_id="c-1")
    equal((again.message_id, again.conversation_seq, again.inbox_seq, again.duplicate),
          (first.message_id, first.conversation_seq, first.inbox_seq, True), "the repetition's receipt")
    refused(lambda: a.send(bob.uid, "two", client_id="c-1"), "the same client id with other content", CONFLICT)
    refused(lambda: a.send(2**31 - 1, "hello"), "a message to nobody", NOT_FOUND)
    refused(lambda: a.ask(send=message_pb2.Send(to=with_user(bob.uid))), "a message without content", INVALID_ARGUMENT)
    refused(lambda: a.send(bob.uid, "x", client_id="c" * 65), "a client id of 65 bytes", TOO_LARGE)
    refused(lambda: a.send(bob.uid, "x" * 70_000), "a text of 70,000 bytes", TOO_LARGE)
    last = a.send(bob.uid, "three")
    event_2 = b.event()
    equal((event_2.message.id, event_2.seq), (last.message_id, event.seq + 1), "the next message")
    equal(last.inbox_seq, first.inbox_seq + 1, "seq in the sender's inbox")


def contents(world: World):
    """Every kind of content arrives unchanged."""
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.app(ann), world.app(bob)
    content = message_pb2.Content
    kinds = [
        content(text="你好, 🙂", attributes={"color": "blue"}),
        content(image=content.Image(url="http://x/y.png", width=640, height=480)),
        content(sound=content.Sound(duration_seconds=1.5, source_url="http://x/s", file_name="s.amr")),
        content(location=content.Location(latitude=26.23, longitude=121.47, label="here")),
        content(video=content.Video(url="http://x/v", duration_seconds=9)),
        content(expression=content.Expression(id=7, name="smile")),
        content(custom=content.Custom(type="app/x", data=b"\x00\xff")),
    ]
    for sent in kinds:
        _arrives(a, b, bob, sent)


def newer_contents(world: World):
    """A kind of content that a later version may add arrives unchanged."""
    ann, bob = world.person("ann"), world.person("bob")
    newer = message_pb2.Content()
    newer.ParseFromString(_VarintBytes(14 << 3 | 2) + b"\x03new")
    _arrives(world.app(ann), world.app(bob), bob, newer)


def _arrives(a, b, bob, sent):
    a.send(bob.uid, content=sent)
    equal(b.event().message.content.SerializeToString(deterministic=True), sent.SerializeToString(deterministic=True),
          f"content {sent.WhichOneof('kind')}")


def cursors(world: World):
    """Acknowledging, reconnecting, and synchronizing."""
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.app(ann), world.app(bob)
    world.app(bob, "away").close()  # because this device never acknowledges, the server keeps all entries
    ids = [a.send(bob.uid, f"n {n}").message_id for n in range(20)]
    events = [b.event() for _ in ids]
    start = events[0].seq
    equal([e.seq for e in events], list(range(start, start + 20)), "seqs")
    equal([e.message.id for e in events], ids, "order")
    b.acknowledge(events[9].seq)
    epoch = b.session.epoch
    b.close()
    b = world.app(bob, epoch=epoch, after=events[9].seq)
    equal([b.event().message.id for _ in range(10)], ids[10:], "what came after the cursor")
    answer = b.ask(synchronize=inbox_pb2.Synchronize(after_seq=events[4].seq, limit=5)).synchronized
    equal((answer.count, answer.head_seq, answer.epoch), (5, events[19].seq, epoch), "synchronized")
    equal([b.event().message.id for _ in range(5)], ids[5:10], "what was asked for again")
    b.close()
    by_record = world.app(bob)
    require(by_record.session.acknowledged_seq >= events[9].seq, f"the server's record: {by_record.session}")
    away = world.app(bob, "away")
    equal([away.event().message.id for _ in ids], ids, "what waited for the device that was away")


def expiry(world: World):
    """A message expires while its receiver is offline. The seqs have a gap only where an entry reports the expiry."""
    ann, bob = world.person("ann"), world.person("bob")
    world.app(bob).close()
    a = world.app(ann)
    a.send(bob.uid, "short-lived", expires=1)
    last = a.send(bob.uid, "stays")
    world.delimited().closes(1.5)  # lets the first message expire
    b = world.app(bob)
    expected, texts = 1, []
    while "stays" not in texts:
        event = b.expect(lambda p: p.WhichOneof("body") == "event", "an entry").event
        equal(event.seq, expected, "seq")
        if event.WhichOneof("event") == "expired":
            expected = event.expired.to_seq + 1
        else:
            expected += 1
            texts.append(event.message.content.text)
    equal((texts, event.message.id), (["stays"], last.message_id), "what came")


def reading_and_typing(world: World):
    ann, bob = world.person("ann"), world.person("bob")
    a, b, desk = world.app(ann), world.app(bob), world.app(bob, "desk")
    receipt = a.send(bob.uid, "read me")
    b.event(), desk.event()
    b.put(wanted=False, typing=message_pb2.Typing(conversation=with_user(ann.uid)))
    typing = a.ephemeral("typing")
    equal((typing.uid, typing.conversation.uid, typing.stopped), (bob.uid, bob.uid, False), "typing")
    b.put(wanted=False, typing=message_pb2.Typing(conversation=with_user(ann.uid), stopped=True))
    require(a.ephemeral("typing").stopped, "typing stopped")
    b.ask(mark_read=message_pb2.MarkRead(conversation=with_user(ann.uid), up_to_seq=receipt.conversation_seq))
    mark = a.event("read_mark").read_mark
    equal((mark.uid, mark.conversation.uid, mark.up_to_seq), (bob.uid, bob.uid, 1), "the mark at the author")
    mark = desk.event("read_mark").read_mark
    equal((mark.uid, mark.conversation.uid, mark.up_to_seq), (bob.uid, ann.uid, 1), "the mark at the other device")


def recall(world: World):
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.app(ann), world.app(bob)
    receipt = a.send(bob.uid, "oops")
    b.event()
    refused(lambda: b.ask(recall=message_pb2.Recall(conversation=with_user(ann.uid), message_id=receipt.message_id)),
            "taking back another's message", FORBIDDEN, NOT_FOUND)
    a.ask(recall=message_pb2.Recall(conversation=with_user(bob.uid), message_id=receipt.message_id))
    recalled = b.event("recalled").recalled
    equal((recalled.message_id, recalled.by_uid, recalled.conversation.uid), (receipt.message_id, ann.uid, ann.uid),
          "recalled")
    refused(lambda: a.ask(recall=message_pb2.Recall(conversation=with_user(bob.uid), message_id="0" * 26)),
            "taking back what never was", NOT_FOUND, INVALID_ARGUMENT)


def presence(world: World):
    ann, bob = world.person("ann"), world.person("bob")
    a = world.app(ann)
    answer = a.ask(presence=presence_pb2.PresenceRequest(watch_uids=[bob.uid])).presence
    equal([(p.uid, p.is_online) for p in answer.presences], [(bob.uid, False)], "at first")
    first, second = world.app(bob, "one"), world.phone(bob, "two")
    require(a.ephemeral("presence", matches=lambda p: p.uid == bob.uid).is_online, "online")
    first.close()
    second.ping()
    second.close()
    gone = a.ephemeral("presence", matches=lambda p: p.uid == bob.uid)
    require(not gone.is_online and gone.last_seen_ms > 10**12, f"offline: {gone}")


def rooms(world: World):
    """Clients of Delimited and LiveRoom are in the same room."""
    ann = world.person("ann")
    viewer = world.liveroom()
    viewer.settle("bob")
    a = world.app(ann)
    user = room_pb2.RoomUser(level=3, name="Ann", icon_url="http://x/i.png")

    def room(**request):
        return a.ask(room=room_pb2.RoomRequest(room="lobby", **request))

    state = room(enter=room_pb2.EnterRoom(user=user)).room
    require(state.room == "lobby" and state.member_count >= 2, f"state: {state}")
    joined = viewer.expect(lambda f: f[0] == JOIN, "the join")[1]
    equal((pb.UserInfo.FromString(joined).name, pb.UserInfo.FromString(joined).level), ("Ann", 3), "who joined")
    room(text=room_pb2.RoomText(text="你好"))
    text = pb.ChatMessage.FromString(viewer.expect(lambda f: f[0] == TEXT, "the text")[1])
    equal((text.user.name, text.text), ("Ann", "你好"), "the text")
    room(gift=room_pb2.RoomGift(name="游艇", url="http://x/g.gif", count=9))
    gift = pb.GiftMessage.FromString(viewer.expect(lambda f: f[0] == GIFT, "the gift")[1])
    equal((gift.user.name, gift.giftname, gift.giftcount), ("Ann", "游艇", 9), "the gift")
    room(custom=room_pb2.RoomCustom(type=4711, data=b"\x00\xff"))
    viewer.gets(4711, b"\x00\xff", "the application's own")

    mine = a.ephemeral("room", matches=lambda e: e.WhichOneof("event") == "text")
    equal((mine.room, mine.uid, mine.text.text), ("lobby", ann.uid, "你好"), "one's own text")
    viewer.text("bob", "from a viewer")
    seen = a.ephemeral("room", matches=lambda e: e.WhichOneof("event") == "text" and e.text.text == "from a viewer")
    equal((seen.user.name, seen.uid), ("bob", 0), "who wrote it")
    viewer.gift("bob", "rose", 1)
    equal(a.ephemeral("room", matches=lambda e: e.HasField("gift") and e.gift.name == "rose").user.name, "bob", "the giver")
    viewer.put(4712, b"own")
    equal(a.ephemeral("room", matches=lambda e: e.HasField("custom") and e.custom.type == 4712).custom.data, b"own",
          "the application's own from a viewer")
    room(leave=room_pb2.LeaveRoom())
    left = viewer.expect(lambda f: f[0] == LEAVE, "the leave")[1]
    equal(pb.UserInfo.FromString(left).name, "Ann", "who left")
    refused(lambda: room(text=room_pb2.RoomText(text="from outside")), "talking after leaving")


def devices(world: World):
    """Listing and removing devices. A device that logs in again replaces its older connection."""
    ann = world.person("ann")
    one, two = world.app(ann, "one"), world.app(ann, "two")

    def listed():
        return {d.id: d for d in one.ask(device=device_pb2.DeviceRequest(list=device_pb2.ListDevices())).devices.devices}

    found = listed()
    require(found["one"].is_current and not found["two"].is_current, f"current: {found}")
    require(found["one"].is_online and found["two"].is_online, f"online: {found}")
    newer = world.app(ann, "two")
    kicked = two.kicked()
    equal(kicked.reason, packet_pb2.Kicked.REASON_REPLACED, "why")
    require(two.closes(5), "the replaced connection stays open")
    newer.ping()
    token = newer.token
    one.ask(device=device_pb2.DeviceRequest(remove=device_pb2.RemoveDevice(device_id="two")))
    equal(newer.kicked().reason, packet_pb2.Kicked.REASON_REVOKED, "why")
    require(newer.closes(5), "the removed device's connection stays open")
    require("two" not in listed(), "the removed device is still listed")
    refused(lambda: world.delimited().login(token=token, device_id="two"), "the removed device's token", INVALID_TOKEN)
    refused(lambda: one.ask(device=device_pb2.DeviceRequest(remove=device_pb2.RemoveDevice(device_id="none"))),
            "removing a device that is not there", NOT_FOUND)


def account_changes(world: World):
    ann = world.person("ann")
    one, two = world.app(ann, "one"), world.app(ann, "two")
    account = one.ask(account=account_pb2.AccountRequest(get=account_pb2.AccountSelector(uid=ann.uid))).account
    equal((account.uid, account.nick_name, account.is_online), (ann.uid, ann.nick_name, True), "the account")
    by_name = one.ask(account=account_pb2.AccountRequest(get=account_pb2.AccountSelector(nick_name=ann.nick_name)))
    equal(by_name.account.uid, ann.uid, "the account by name")
    refused(lambda: one.ask(account=account_pb2.AccountRequest(change_password=account_pb2.PasswordChange(
        old_password="wrong password", new_password="another horse"))), "a change with a wrong password")
    one.ask(account=account_pb2.AccountRequest(change_password=account_pb2.PasswordChange(
        old_password=PASSWORD, new_password="another horse")))
    equal(two.kicked().reason, packet_pb2.Kicked.REASON_REVOKED, "the other session")
    refused(lambda: world.delimited().login(token=two.token, device_id="two"), "the other session's token", INVALID_TOKEN)
    refused(lambda: world.delimited().login(ann.nick_name, PASSWORD), "the old password", WRONG_CREDENTIALS)
    world.delimited().login(ann.nick_name, "another horse", device_id="two")
    one.ping()


def log_out(world: World):
    ann = world.person("ann")
    app = world.app(ann)
    app.ask(log_out=account_pb2.LogOut())
    require(app.closes(5), "the connection stays open")
    refused(lambda: world.delimited().login(token=app.token), "a token after logging out", INVALID_TOKEN)


def signals(world: World):
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.app(ann), world.app(bob)
    refused(lambda: a.ask(signal=signal_pb2.Signal(to_uid=bob.uid, session_id="call-0", data=b"x")), "a stranger's signal")
    a.ask(contact=contact_pb2.ContactRequest(add=contact_pb2.AddContact(uid=bob.uid)))
    b.ask(contact=contact_pb2.ContactRequest(answer=contact_pb2.AnswerContact(uid=ann.uid, accept=True)))
    a.ask(signal=signal_pb2.Signal(to_uid=bob.uid, session_id="call-1", data=b"sdp \x00\xff"))
    event = b.ephemeral("signal")
    equal((event.from_uid, event.from_device_id, event.signal.session_id, event.signal.data),
          (ann.uid, "tablet", "call-1", b"sdp \x00\xff"), "the signal")


def unsupported(world: World):
    """An empty packet, an unknown body and a body that only servers send are refused. Groups and statistics are
    accepted."""
    a = world.app(world.person("ann"))
    refused(lambda: a.ask(), "an empty packet")
    a.write(delimited.prefix(6) + b"\x08\x63\xfa\x01\x01x")  # id 99, field 31
    refused(lambda: a.result(99), "an unknown body")
    refused(lambda: a.ask(kicked=packet_pb2.Kicked(message="you")), "a server's body")
    made = a.ask(group=group_pb2.GroupRequest(create=group_pb2.CreateGroup(name="g")))
    equal(made.group.name, "g", "the group")
    reported = a.ask(statistics=statistics_pb2.Statistics(app_version="1"))
    equal(reported.WhichOneof("value"), None, "the answer to statistics")
    a.ping()


def frames(world: World):
    """One byte in each segment, a thousand frames in one write, empty frames, and frames that violate the protocol."""
    ann = world.person("ann")
    a = world.delimited()
    a.drip(delimited.encode(delimited.authenticate(7, "tablet", ann.token)))
    equal(a.result(7).session.uid, ann.uid, "uid")
    a.write(b"\x00" * 100)
    a.write(b"".join(delimited.encode(delimited.Packet(id=n, ping=packet_pb2.Ping())) for n in range(1, 1001)))
    equal([a.frame().id for _ in range(1000)], list(range(1, 1001)), "a thousand pongs")
    for data in (bytes.fromhex("ffffffffff01"), bytes.fromhex("ffffffff0f"), b"\x03\xff\xff\xff", b"\x80\x80\x80\x02" + b"x" * 1000):
        bad = world.delimited()
        bad.write(data)
        require(bad.closes(5), f"the connection stays open after {data[:8].hex()}")
    limit = world.app(ann, "limit")
    size = limit.session.max_frame_bytes
    limit.write(delimited.prefix(size + 1))
    require(limit.closes(5), "a length above the limit does not close the connection")
    a.ping()


def blast(world: World):
    """A thousand messages are sent without waiting. Their receipts and their deliveries are in order."""
    ann, bob = world.person("ann"), world.person("bob")
    a, b = world.app(ann), world.app(bob)
    a.write(b"".join(delimited.encode(delimited.text_to(n, bob.uid, f"n {n}", f"c-{n}")) for n in range(1, 1001)))
    receipts = [a.result(n).receipt for n in range(1, 1001)]
    equal([r.conversation_seq for r in receipts], list(range(1, 1001)), "conversation seqs")
    events = [b.event() for _ in receipts]
    equal([e.message.id for e in events], [r.message_id for r in receipts], "ids in order")
    equal([e.seq for e in events], list(range(events[0].seq, events[0].seq + 1000)), "seqs")


CHECKS = [
    ("Delimited: register, authenticate by password and token", accounts),
    ("Delimited: send, receipts, sending again, conflict", sending),
    ("Delimited: every kind of content", contents),
    ("Delimited: a kind of content that nobody here knows", newer_contents),
    ("Delimited: cursors and synchronize", cursors),
    ("Delimited: expired messages are accounted for", expiry),
    ("Delimited: read marks and typing", reading_and_typing),
    ("Delimited: recall", recall),
    ("Delimited: presence", presence),
    ("Delimited: rooms, together with LiveRoom", rooms),
    ("Delimited: devices", devices),
    ("Delimited: account and password", account_changes),
    ("Delimited: logging out", log_out),
    ("Delimited: signals", signals),
    ("Delimited: what is not offered is refused with a code", unsupported),
    ("Delimited: frames, whole and broken", frames),
    ("Delimited: a thousand messages pipelined", blast),
]
