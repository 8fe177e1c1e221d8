# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks the clients themselves against the vectors. They must write the published bytes."""

import json
import os
import pathlib

from clients import delimited, impb, liveroom, qsiop
from support.checks import Skipped, equal, require
from support.environment import ROOT


def vectors(protocol: str) -> dict[str, dict]:
    places = [ROOT / "Tests" / "HermesWireTests" / "Vectors", pathlib.Path(os.environ.get("HERMES_VECTORS", "/nowhere"))]
    for place in places:
        if (place / f"{protocol}.json").exists():
            content = json.loads((place / f"{protocol}.json").read_text())
            return {entry["name"]: entry for entry in content["good"] + content["bad"]}
    raise Skipped("no vectors here")


def check(protocol: str, made: dict[str, bytes]) -> str:
    known = vectors(protocol)
    for name, data in made.items():
        require(name in known, f"no vector {name}")
        equal(data.hex(), known[name]["hex"], name)
    return f"{len(made)} vectors"


def impb_vectors():
    pb = impb.pb
    text = pb.msg_text_content(text="你好, bob").SerializeToString()
    p2p = pb.p2p_connect(type=0, body=pb.p2pconnect_request(uid=1, target_uid=2).SerializeToString())
    made = {
        "ping": impb.encode(1, impb.PING),
        "ping-max-seq": impb.encode(2**32 - 1, impb.PING),
        "register-request": impb.request(2, 0, impb.user(0, pb.signin_request(nick_name="alice", pwd="s3cret"))),
        "login-request": impb.request(3, 0, impb.user(2, pb.login_request(
            nick_name="爱丽丝", pwd="s3cret", ip="192.168.0.100", port=56741, device_name="iOS", device_id="9F2C",
            version="1.0"))),
        "logout-request": impb.request(4, 0, impb.user(3, pb.logout_request(uid=1))),
        "user-info-request": impb.request(5, 0, impb.user(4, pb.User_info_request(uid=2))),
        "c2c-text": impb.chat(6, impb.c2c(2, pb.text, text, sender=1)),
        "p2p-connect-request": impb.request(9, 3, p2p),
    }
    known = vectors("impb")
    body = pb.base_msg.FromString(bytes.fromhex(known["c2c-location"]["hex"])[8:]).body
    found = pb.msg_location_content.FromString(pb.C2C_msg.FromString(body).content)
    require(found.location.lat > 20 and found.location.lon > 100, f"location: {found}")
    return check("impb", made)


def liveroom_vectors():
    pb = liveroom.pb
    user = liveroom.someone("targetcloud3")
    return check("liveroom", {
        "join": liveroom.encode(liveroom.JOIN, user.SerializeToString()),
        "leave": liveroom.encode(liveroom.LEAVE, user.SerializeToString()),
        "text": liveroom.encode(liveroom.TEXT, pb.ChatMessage(user=user, text="你好, targetcloud").SerializeToString()),
        "gift": liveroom.encode(liveroom.GIFT, pb.GiftMessage(
            user=user, giftname="游艇", giftURL="http://example.invalid/yacht.gif", giftcount=99).SerializeToString()),
        "heartbeat": liveroom.encode(liveroom.HEARTBEAT, liveroom.BEAT),
    })


def qsiop_vectors():
    return check("qsiop", {
        "ping": qsiop.encode(qsiop.PING),
        "pong": qsiop.encode(qsiop.PONG),
        "report-user": qsiop.encode(qsiop.REPORT, {"userid": "10086"}),
        "two-props": qsiop.encode(qsiop.REPORT, {"userid": "10086", "name": "小明"}),
        "value-with-colon": qsiop.encode(qsiop.REPORT, {"url": "http://a/b"}),
    })


def delimited_vectors():
    lengths = [1, 127, 128, 300, 16383, 16384, 65535, 2097151]
    return check("delimited", {f"prefix-{length}": delimited.prefix(length) for length in lengths})


CHECKS = [
    ("clients write the IMPB vectors", impb_vectors),
    ("clients write the LiveRoom vectors", liveroom_vectors),
    ("clients write the QSIOP vectors", qsiop_vectors),
    ("clients write the Delimited vectors", delimited_vectors),
]
