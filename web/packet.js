// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * The readers in this file turn proto3 JSON into plain objects. In these objects, every field is present and has its
 * type, even if the server has sent something else. 64-bit integers become numbers. Epochs stay texts, because they are
 * only compared.
 *
 * A shape is "" (text), 0 (number), false (boolean), "bytes" (base64), "epoch", "map", a result of `oneOf`, `[shape]`
 * for a list, or an object of shapes. A field whose name ends in "?" is null if it is absent. Shapes that are also used
 * in requests have a range instead of 0 (see `flawOf`).
 *
 * @typedef {any} Shape
 */

/** The largest number of items of a list that are read. The server's own limit is 1,000. */
const maxItems = 5000;

/** @param {string} prefix @param {string} names @returns {Shape} */
const oneOf = (prefix, names) => ({ prefix: `${prefix}_`, names: ["unspecified", ...names.split(" ")] });

/** The types of numbers, with their ranges. */
const uint32 = { min: 0, max: 2 ** 32 - 1 };
const int32 = { min: -(2 ** 31), max: 2 ** 31 - 1 };
const uint64 = { min: 0, max: 2n ** 64n - 1n };
export const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
export const double = { min: -Infinity, max: Infinity };

const conversation = { "uid?": uint32, "groupId?": uint32 };
const content = {
    "text?": "",
    "image?": { url: "", width: uint32, height: uint32 },
    "sound?": { durationSeconds: double, sourceUrl: "", locationUrl: "", fileName: "" },
    "location?": { latitude: double, longitude: double, label: "" },
    "video?": { url: "", durationSeconds: double, thumbnailUrl: "" },
    "expression?": { id: int32, name: "" },
    "custom?": { type: "", data: "bytes" },
    attributes: "map",
};
const message = {
    id: "",
    conversation,
    conversationSeq: 0,
    fromUid: 0,
    fromNickName: "",
    clientId: "",
    content,
    serverTimeMs: 0,
    own: false,
    recalled: false,
};
const presence = { uid: 0, isOnline: false, lastSeenMs: 0 };
const account = { uid: 0, nickName: "", avatarUrl: "", isOnline: false, createdAtMs: 0 };
const contact = {
    uid: 0,
    nickName: "",
    avatarUrl: "",
    state: oneOf("STATE", "accepted requested incoming blocked"),
    isOnline: false,
};
const member = {
    uid: uint32,
    nickName: "",
    role: oneOf("ROLE", "member administrator owner"),
    mutedUntilMs: int64,
};
const group = {
    id: 0,
    name: "",
    avatarUrl: "",
    muted: false,
    historyOpen: false,
    memberCount: 0,
    members: [member],
    createdAtMs: 0,
};
const conversationSummary = { conversation, name: "", lastSeq: 0, lastMessageAtMs: 0, readSeq: 0, unread: 0 };
const device = {
    id: "",
    name: "",
    platform: "",
    appVersion: "",
    isOnline: false,
    lastSeenMs: 0,
    acknowledgedSeq: 0,
    isCurrent: false,
};
const push = {
    id: "",
    title: "",
    body: "",
    dataJson: "",
    collapseKey: "",
    expiresAtMs: 0,
    priority: oneOf("PRIORITY", "normal high"),
    topic: "",
    topicSeq: 0,
    topicEpoch: "epoch",
    messageType: "",
    messageBytes: "",
};
const roomUser = { level: int32, name: "", iconUrl: "" };
const roomText = { text: "" };
const roomGift = { name: "", url: "", count: int32 };
const roomCustom = { type: uint32, data: "bytes" };
const roomEvent = {
    room: "",
    "user?": roomUser,
    uid: 0,
    "joined?": {},
    "left?": {},
    "text?": roomText,
    "gift?": roomGift,
    "custom?": roomCustom,
    "notice?": { text: "" },
    "kicked?": { reason: "" },
    topicSeq: 0,
    topicEpoch: "epoch",
};
const signal = {
    toUid: uint32,
    sessionId: "",
    "address?": {
        localHost: "",
        localPort: uint32,
        observedHost: "",
        observedPort: uint32,
        ready: false,
        seenByServer: false,
    },
    "data?": "bytes",
    "end?": { reason: "" },
};
const error = { code: 0, message: "", retryAfterMs: 0 };
const advice = { notBeforeMs: 0, windowMs: 0, address: "", ticket: "" };

const event = {
    seq: 0,
    serverTimeMs: 0,
    "message?": message,
    "readMark?": { conversation, uid: 0, upToSeq: 0 },
    "recalled?": { conversation, messageId: "", conversationSeq: 0, byUid: 0 },
    "contact?": { kind: oneOf("KIND", "requested accepted declined removed"), uid: 0, nickName: "", message: "" },
    "group?": {
        kind: oneOf("KIND", "created changed members_added members_removed dissolved"),
        group,
        byUid: 0,
        uids: [0],
    },
    "push?": push,
    "call?": { kind: oneOf("KIND", "ringing answered missed ended"), withUid: 0, sessionId: "", durationSeconds: 0 },
    "expired?": { toSeq: 0 },
};

const packet = {
    id: 0,
    "result?": {
        "error?": error,
        "session?": {
            uid: 0,
            nickName: "",
            token: "",
            epoch: "epoch",
            headSeq: 0,
            acknowledgedSeq: 0,
            serverTimeMs: 0,
            idleTimeoutMs: 0,
            maxFrameBytes: 0,
            serverVersion: "",
            heartbeatPriorSeconds: 0,
            inboxReset: false,
        },
        "receipt?": {
            messageId: "",
            clientId: "",
            conversationSeq: 0,
            inboxSeq: 0,
            serverTimeMs: 0,
            duplicate: false,
        },
        "synchronized?": { epoch: "epoch", headSeq: 0, oldestSeq: 0, count: 0 },
        "contacts?": { contacts: [contact], more: false },
        "group?": group,
        "groups?": { groups: [group], more: false },
        "presence?": { presences: [presence] },
        "room?": { room: "", memberCount: 0 },
        "devices?": { devices: [device] },
        "account?": account,
        "history?": { messages: [message], more: false },
        "conversations?": { conversations: [conversationSummary], more: false },
    },
    "event?": event,
    "ephemeral?": {
        "typing?": { conversation, uid: 0, stopped: false },
        "presence?": presence,
        "room?": roomEvent,
        "signal?": { fromUid: 0, fromDeviceId: "", signal },
    },
    "notice?": {
        kind: oneOf("KIND", "shutdown reconnect operator token_expires"),
        message: "",
        "reconnect?": advice,
        expiresAtMs: 0,
    },
    "kicked?": {
        reason: oneOf("REASON", "replaced disabled revoked protocol timeout limit shutdown"),
        message: "",
        "reconnect?": advice,
        code: 0,
    },
    "pong?": { clientTimeMs: 0, serverTimeMs: 0 },
};

/** @param {string} names @param {Shape} shape @returns {Shape} */
const all = (names, shape) => Object.fromEntries(names.split(" ").map((name) => [name, shape]));

/** The names of enum values. The server ignores names that it does not know. */
const word = { names: [] };
/** The fields that have the same type in all requests. */
const fields = {
    nickName: "",
    password: "",
    invitation: "",
    token: "",
    device: { id: "", name: "", platform: "", appVersion: "", networkLabel: "" },
    to: conversation,
    clientId: "",
    content,
    expiresInSeconds: uint32,
    conversation,
    after: conversation,
    upToSeq: uint64,
    beforeSeq: uint64,
    messageId: "",
    stopped: false,
    uid: uint32,
    accept: false,
    message: "",
    afterUid: uint32,
    limit: uint32,
    name: "",
    memberUids: [uint32],
    groupId: uint32,
    afterGroupId: uint32,
    avatarUrl: "",
    muted: false,
    historyOpen: false,
    addUids: [uint32],
    removeUids: [uint32],
    changeRoles: [member],
    watchUids: [uint32],
    unwatchUids: [uint32],
    appState: word,
    user: roomUser,
    deviceId: "",
    service: word,
    appId: "",
    oldPassword: "",
    newPassword: "",
    removeDevice: false,
    clientTimeMs: int64,
};

/** The shape of the app's requests. The app may set only one of the fields whose names end in "?". */
export const requestShape = {
    ...all("register? send? markRead? typing? recall? presence? ping? logOut? history? conversations?", fields),
    "contact?": all("add? answer? remove? block? unblock? list?", fields),
    "group?": all("create? get? list? change? changeMembers? leave? dissolve?", fields),
    "room?": { room: "", ...all("enter? leave?", fields), "text?": roomText, "gift?": roomGift, "custom?": roomCustom },
    "device?": all("list? remove? setPushToken? clearPushToken?", fields),
    "signal?": signal,
    "account?": {
        ...all("changeProfile? changePassword? revokeTokens?", fields),
        "get?": { "uid?": uint32, "nickName?": "" },
    },
};

/**
 * Reads a value by its shape.
 *
 * @param {Shape} shape
 * @param {any} value
 * @returns {any}
 */
function read(shape, value) {
    if (shape === "epoch") return typeof value === "string" || typeof value === "number" ? String(value) : "0";
    if (shape === "" || shape === "bytes") return typeof value === "string" ? value : "";
    if (shape === false) return value === true;
    if (shape === 0 || shape.max) {
        const number = typeof value === "string" || typeof value === "number" ? Number(value) : 0;
        return Number.isFinite(number) ? number : 0;
    }
    if (Array.isArray(shape)) {
        return Array.isArray(value) ? value.slice(0, maxItems).map((item) => read(shape[0], item)) : [];
    }
    const fields = value !== null && typeof value === "object" ? value : {};
    if (shape === "map") {
        return Object.fromEntries(Object.entries(fields).filter((pair) => typeof pair[1] === "string"));
    }
    if (shape.names) {
        const word = String(value).replace(shape.prefix, "").toLowerCase();
        const name = typeof value === "number" ? shape.names[value] : word;
        return shape.names.includes(name) ? name : "unspecified";
    }
    /** @type {any} */
    const result = {};
    for (const [key, inner] of Object.entries(shape)) {
        const isOptional = key.endsWith("?");
        const name = isOptional ? key.slice(0, -1) : key;
        const isAbsent = isOptional && (fields[name] === undefined || fields[name] === null);
        result[name] = isAbsent ? null : read(inner, fields[name]);
    }
    return result;
}

/**
 * Reads a packet of the server.
 *
 * @param {unknown} text
 * @param {number} maxLength The longest text that is read, in characters.
 * @throws {HermesError} `protocolViolation`.
 */
export function readPacket(text, maxLength) {
    if (typeof text !== "string") throw violation("the server sent binary data over a connection for JSON");
    if (text.length > maxLength) throw violation(`the server sent a frame of ${text.length} characters`);
    let json;
    try {
        json = JSON.parse(text);
    } catch {
        throw violation("the server sent a frame that is not JSON");
    }
    if (json === null || typeof json !== "object") throw violation("the server sent JSON that is not a packet");
    return read(packet, json);
}

/** @param {string} message */
export const violation = (message) => new HermesError(ErrorCode.protocolViolation, message);

/**
 * An event for the app. Events with a `seq` above 0 are entries of the inbox. Each entry arrives once and in order.
 *
 * | type | fields |
 * | --- | --- |
 * | message | `message` |
 * | readMark | `readMark`: `{ conversation, uid, upToSeq }` |
 * | recalled | `recalled`: `{ conversation, messageId, conversationSeq, byUid }` |
 * | contact | `contact`: `{ kind, uid, nickName, message }` |
 * | group | `group`: `{ kind, group, byUid, uids }` |
 * | push | `push` |
 * | call | `call` |
 * | gap | `gap`: `{ from, to }`: the server deleted these entries before this device got them |
 * | inboxReset | none: the server lost its store, or entries of the inbox; what the app had not received may be lost |
 * | unknown | none: an entry of a kind that this version does not know |
 *
 * @typedef {{ type: string, seq: number, epoch: string, time: number, [field: string]: any }} InboxEvent
 */

/** The kinds of events: all optional fields of an event, except `expired`. */
const kinds = Object.keys(event)
    .filter((key) => key.endsWith("?") && key !== "expired?")
    .map((key) => key.slice(0, -1));

/**
 * Turns a `hermes.v1.Event` into an event for the app.
 *
 * @param {any} wire
 * @param {string} epoch
 * @returns {InboxEvent}
 */
export function inboxEvent(wire, epoch) {
    const { seq, serverTimeMs: time, expired } = wire;
    if (expired) return gapEvent(seq, Math.max(seq, expired.toSeq), epoch);
    const type = kinds.find((kind) => wire[kind]) ?? "unknown";
    return type === "unknown" ? { type, seq, epoch, time } : { type, seq, epoch, time, [type]: wire[type] };
}

/**
 * An entry of the inbox. At a login, it shows the server whether the server still has the same entries.
 *
 * @typedef {object} KnownEntry
 * @property {number} seq
 * @property {string} id The id of the message or push; empty for other kinds, and for an entry that is not for this
 *   device.
 * @property {number} time The time of the commit, in milliseconds since 1970.
 */

/**
 * Returns what identifies an entry; null if the event stands for deleted entries.
 *
 * @param {any} wire
 * @returns {KnownEntry | null}
 */
export function knownEntry(wire) {
    const { seq, serverTimeMs: time, expired, message, push, oversized } = wire;
    return expired ? null : { seq, id: (message ?? push ?? oversized)?.id ?? "", time };
}

/**
 * The event for entries that the server has deleted.
 *
 * @param {number} from
 * @param {number} to
 * @param {string} epoch
 * @returns {InboxEvent}
 */
export function gapEvent(from, to, epoch) {
    return { type: "gap", seq: to, epoch, time: 0, gap: { from, to } };
}

/**
 * The name of a message or a push, by which it is recognized if it has another seq; null for other entries.
 *
 * @param {InboxEvent} event
 * @returns {string | null}
 */
export function entryName(event) {
    // A message to oneself makes two entries with the same id.
    const { type, message, push } = event;
    if (type === "message" && message.id) return message.own ? ownName(message.id) : `message ${message.id}`;
    return type === "push" && push.id ? `push ${push.id}` : null;
}

/**
 * The name of a message's entry in its sender's inbox.
 *
 * @param {string} id
 */
export const ownName = (id) => `own ${id}`;
