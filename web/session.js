// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";
import { longestInterval } from "./heartbeat.js";
import { InboxTracker, SeenEntries } from "./inbox.js";
import { entryName, gapEvent, inboxEvent, knownEntry, ownName, violation } from "./packet.js";
import { ClockOffset, DeliveryCounter, TopicTracker } from "./statistics.js";

/**
 * @typedef {{ nickName: string, password: string } | { token: string }
 *   | { register: true, nickName: string, password: string, invitation?: string }} Credential
 */

/**
 * An inbox entry that is being delivered to the app.
 *
 * @typedef {object} Delivery
 * @property {import("./packet.js").InboxEvent} event
 * @property {string | null} name The name from `entryName`.
 * @property {number} incarnation The inbox that the seq belongs to.
 * @property {number} bytes The length of the entry's frame.
 * @property {boolean} isRepeat Whether the app has seen this entry before, with another seq.
 */

/**
 * An instruction to the owner.
 *
 * @typedef {{ do: "send", body: any, id: number } | { do: "answer", id: number, result: any }
 *   | { do: "answerFailed", id: number, error: HermesError } | { do: "deliver", delivery: Delivery }
 *   | { do: "live", type: string, event: any } | { do: "forgetEntries" }
 *   | { do: "resetCursor", taken: number, received: number }
 *   | { do: "loggedIn", session: any, heartbeatAtMost: number | null, heartbeatPrior: number | null }
 *   | { do: "refused", error: HermesError }
 *   | { do: "kicked", error: HermesError, mayReturn: boolean, advice: any, isBreach: boolean }
 *   | { do: "shutdownAnnounced", advice: any } | { do: "reconnectAdvised", advice: any }} Effect
 */

/** The ids of packets whose answers the session itself handles. */
const ID = { authentication: 1, heartbeat: 2, presence: 3, synchronize: 4, statistics: 6 };
/** The largest number of accounts that a client may watch, and that one request may contain. */
const maxWatched = 1000;
/** The first id of a request that enters a room again. It is far above the ids of the app's requests. */
const firstReturn = 2 ** 50;
/** The number of remembered logins without an answer, and the time that they are remembered, in milliseconds. */
const maxStrays = 16;
const strayMilliseconds = 300_000;
/**
 * The delay of the first upload of statistics after a login, in milliseconds. It keeps uploads apart from a storm of
 * logins.
 */
const uploadAfterLogin = 60_000;

/**
 * The client's side of the native protocol. It turns packets into effects, and keeps the requests that must be repeated
 * on the next connection. The class does no I/O. `now` is in milliseconds of one fixed clock; `date` is in milliseconds
 * since 1970.
 */
export class Session {
    /** @type {Credential | null} */
    credential = null;
    /** @type {number | null} The inbox's account, if it is known before the login. */
    owner = null;
    /**
     * Whether the credential certainly belongs to the owner. If this is false and the owner is unknown, the login does
     * not contain the cursor.
     */
    isOwnerCertain = false;
    /** Whether an earlier run ended before the app had taken the last `inboxReset`. */
    owesReset = false;
    inbox = new InboxTracker();
    /** @type {import("./packet.js").KnownEntry | null} The newest entry that has arrived in this inbox. */
    newest = null;
    seen = new SeenEntries();
    statistics = new DeliveryCounter();
    clock = new ClockOffset();
    /** The page's state. While the page is not in the foreground, the server pushes messages at once. */
    appState = "foreground";
    /** @type {number | null} The longest frame that the server accepts, in bytes; null if it is unknown. */
    maxFrameBytes = null;
    /** @type {number[]} The times of the abandoned logins. If such a login arrives late at the server, it may
     *   replace a later login. */
    strays = [];
    #device;
    #isOwn;
    #statisticsInterval;
    #incarnation = 0;
    /** @type {{ since: number, upTo: number } | null} The entries that are still valid: entries of the incarnations
     *   from `since` on, with seqs up to `upTo`. */
    #carried = null;
    #isAuthenticating = false;
    #mayBeRegistered = false;
    /** The last credential from the app, as JSON. */
    #requested = "";
    #registerIsUnanswered = false;
    #askedAt = 0;
    #ticket = "";
    /** @type {Map<number, string>} The client ids of sent messages without a receipt, by packet id. */
    #sending = new Map();
    /** @type {Map<number, { room: string, user: any }>} The rooms that the app is entering, by packet id. */
    #entering = new Map();
    /** @type {Map<string, any>} The rooms to enter again on the next connection. */
    #rooms = new Map();
    /** @type {Map<number, string>} The rooms that are being entered again, by packet id. */
    #returning = new Map();
    #lastReturn = firstReturn;
    #topics = new TopicTracker();
    /** @type {Set<number>} The accounts to watch again on the next connection. */
    #watched = new Set();
    /** @type {number | null} */
    #uploadAt = null;

    /**
     * @param {object} options
     * @param {{ id: string, name?: string, platform?: string, appVersion?: string }} options.device
     * @param {(clientId: string) => boolean} options.isOwn Whether a message is or was in this device's outbox.
     * @param {number | null} options.statisticsInterval The time between two uploads, in milliseconds; null if there
     *   are no uploads.
     */
    constructor({ device, isOwn, statisticsInterval }) {
        this.#device = device;
        this.#isOwn = isOwn;
        this.#statisticsInterval = statisticsInterval;
    }

    /** The time at which to call `deadlineReached`; null if there is none. */
    get nextDeadline() {
        const next = Math.min(this.inbox.nextDeadline ?? Infinity, this.#uploadAt ?? Infinity);
        return next === Infinity ? null : next;
    }

    /**
     * Sets the credential for a login of the app. It may be for another account.
     *
     * @param {Credential} credential
     * @param {boolean} isOwners Whether the credential certainly belongs to the inbox's account.
     */
    logIn(credential, isOwners) {
        const text = JSON.stringify(credential);
        if (text !== this.#requested) this.#mayBeRegistered = false;
        this.#requested = text;
        this.credential = credential;
        this.isOwnerCertain = isOwners;
        // The ticket belongs to the previous account.
        this.#ticket = "";
    }

    /**
     * Logs in on the opened connection.
     *
     * @param {number} date
     * @param {Effect[]} effects
     */
    connected(date, effects) {
        const credential = this.credential;
        if (!credential) throw new HermesError(ErrorCode.closed, "log in first");
        this.maxFrameBytes = null;
        this.#isAuthenticating = true;
        this.#askedAt = date;
        if ("register" in credential) {
            const { nickName, password, invitation = "" } = credential;
            this.#registerIsUnanswered = true;
            const register = { nickName, password, invitation, device: this.description };
            effects.push({ do: "send", body: { register }, id: ID.authentication });
        } else {
            this.#authenticate("token" in credential ? { token: credential.token } : { password: credential }, effects);
        }
    }

    /**
     * Handles the end of the login. From now on, the client may send requests.
     *
     * @param {number} now
     * @param {Effect[]} effects
     */
    becameLive(now, effects) {
        const interval = this.#statisticsInterval;
        if (interval !== null) this.#uploadAt = now + Math.min(interval, uploadAfterLogin) * (1 + Math.random());
        for (const [room, user] of this.#rooms) {
            this.#lastReturn += 1;
            this.#returning.set(this.#lastReturn, room);
            effects.push({ do: "send", body: { room: { room, enter: { user } } }, id: this.#lastReturn });
        }
        // If the state is the server's default, nothing needs to be sent.
        if (!this.#watched.size && this.appState === "foreground") return;
        const presence = { watchUids: [...this.#watched].sort((a, b) => a - b), ...this.#wireState };
        effects.push({ do: "send", body: { presence }, id: ID.presence });
    }

    /**
     * @param {"foreground" | "background" | "suspended"} state
     * @param {boolean} isLive
     * @param {Effect[]} effects
     */
    appStateChanged(state, isLive, effects) {
        if (state === this.appState) return;
        this.appState = state;
        const presence = { appState: `APP_STATE_${state.toUpperCase()}` };
        if (isLive) effects.push({ do: "send", body: { presence }, id: ID.presence });
    }

    /**
     * Records a written packet, if it must be repeated on the next connection.
     *
     * @param {any} body
     * @param {number} id
     */
    wrote(body, id) {
        if (body.send) this.#sending.set(id, body.send.clientId);
        if (body.room?.enter && !this.#returning.has(id)) {
            this.#entering.set(id, { room: body.room.room, user: body.room.enter.user });
        }
        if (body.room?.leave) {
            this.#rooms.delete(body.room.room);
            this.#topics.forget(body.room.room);
            for (const [entering, { room }] of this.#entering) {
                if (room === body.room.room) this.#entering.delete(entering);
            }
        }
        if (body.presence) this.#watch(body.presence);
    }

    /**
     * Applies a request by the server's rules. If the session remembered more accounts than the server allows, the
     * server would refuse the whole request on the next connection. Then no account would be watched.
     *
     * @param {{ watchUids?: number[], unwatchUids?: number[] }} request
     */
    #watch({ watchUids = [], unwatchUids = [] }) {
        const isUser = (/** @type {number} */ uid) => Number.isInteger(uid) && uid >= 1 && uid < 2 ** 31;
        const isTaken = [watchUids, unwatchUids].every((uids) => uids.length <= maxWatched && uids.every(isUser));
        if (!isTaken) return;
        for (const uid of unwatchUids) this.#watched.delete(uid);
        for (const uid of watchUids) if (this.#watched.size < maxWatched) this.#watched.add(uid);
    }

    /** @param {number} date */
    heartbeat(date) {
        return { body: { ping: { clientTimeMs: String(date) } }, id: ID.heartbeat };
    }

    /**
     * Handles a packet from the server.
     *
     * @param {any} packet The result of `readPacket`.
     * @param {number} bytes The length of the packet's frame.
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    received(packet, bytes, now, date, effects) {
        const { id, result, event, ephemeral, notice, kicked, pong } = packet;
        if (result) {
            if (id < 16) this.#answered(result, id, now, date, effects);
            else this.#finished(result, id, now, date, effects);
        } else if (event) {
            this.#arrived(event, bytes, now, date, effects);
        } else if (ephemeral) {
            for (const type of ["typing", "presence", "signal"]) {
                if (ephemeral[type]) effects.push({ do: "live", type, event: ephemeral[type] });
            }
            if (ephemeral.room) this.#roomEvent(ephemeral.room, date, effects);
        } else if (notice) {
            this.#noticed(notice, effects);
        } else if (kicked) {
            this.#kicked(kicked, date, effects);
        } else if (pong) {
            if (pong.clientTimeMs) this.clock.answered(pong.clientTimeMs, date, pong.serverTimeMs);
            if (id >= 16) effects.push({ do: "answer", id, result: { pong } });
        }
    }

    /**
     * Handles the loss of the connection.
     *
     * @param {number} date
     */
    lost(date) {
        if (this.#isAuthenticating) this.strays = [...this.strays, date].slice(-maxStrays);
        this.#isAuthenticating = false;
        this.#mayBeRegistered ||= this.#registerIsUnanswered;
        this.#registerIsUnanswered = false;
        this.#sending.clear();
        this.#entering.clear();
        this.#returning.clear();
        this.inbox.lost();
        this.#uploadAt = null;
        this.statistics.uploadFailed();
    }

    /**
     * Handles an event that the app has taken, after this is stored.
     *
     * @param {number} seq The seq of the present inbox up to which the app has taken all entries. Even if this seq has
     *   not changed, there may be room now for entries that the tracker has dropped.
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    taken(seq, now, date, effects) {
        this.#track((out) => this.inbox.tookUpTo(seq, now, out), date, effects);
    }

    /**
     * Whether the entry's seq is valid in the present inbox. For an `inboxReset`, whether it is the last one.
     *
     * @param {Delivery} delivery
     */
    isCurrent({ event, incarnation }) {
        if (event.epoch !== this.inbox.epoch) return false;
        if (incarnation === this.#incarnation) return true;
        if (this.#carried === null || event.seq === 0) return false;
        return incarnation >= this.#carried.since && event.seq <= this.#carried.upTo;
    }

    /**
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    deadlineReached(now, date, effects) {
        if (this.#uploadAt !== null && this.#uploadAt <= now && this.#statisticsInterval !== null) {
            this.#uploadAt = now + this.#statisticsInterval;
            const networks = this.statistics.upload();
            const statistics = { appVersion: this.#device.appVersion ?? "", networks };
            if (networks) effects.push({ do: "send", body: { statistics }, id: ID.statistics });
        }
        this.#track((out) => this.inbox.deadlineReached(now, out), date, effects);
    }

    /**
     * Sends a waiting acknowledgement before the client closes the connection.
     *
     * @param {number} date
     * @param {Effect[]} effects
     */
    closing(date, effects) {
        this.#track((out) => this.inbox.acknowledgeNow(out), date, effects);
    }

    /** The description of the device for a login. */
    get description() {
        const { id, name = "", platform = "", appVersion = "" } = this.#device;
        return { id, name, platform, appVersion, networkLabel: this.statistics.kind };
    }

    get #wireState() {
        return this.appState === "foreground" ? {} : { appState: `APP_STATE_${this.appState.toUpperCase()}` };
    }

    /**
     * @param {any} credential
     * @param {Effect[]} effects
     */
    #authenticate(credential, effects) {
        const authenticate = { ...credential, device: this.description, ticket: this.#ticket };
        // If the credential belongs to another account than the inbox, the server ignores the place.
        const { epoch, taken } = this.inbox;
        if ((this.isOwnerCertain || this.owner !== null) && epoch !== "0") {
            Object.assign(authenticate, { uid: this.owner ?? 0, epoch, acknowledgedSeq: String(taken) });
            if (this.newest) {
                const { seq, id, time } = this.newest;
                authenticate.newest = { seq: String(seq), id, serverTimeMs: String(time) };
            }
        }
        effects.push({ do: "send", body: { authenticate }, id: ID.authentication });
    }

    /**
     * Handles the answer to a packet of the session itself.
     *
     * @param {any} result
     * @param {number} id
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #answered(result, id, now, date, effects) {
        if (id === ID.authentication && this.#isAuthenticating) {
            this.#isAuthenticating = false;
            this.#registerIsUnanswered = false;
            this.#authenticationAnswered(result, now, date, effects);
        }
        if (id === ID.statistics) {
            // After a permanent refusal, another upload would also be refused.
            if (result.error && HermesError.of(result.error).isTemporary) this.statistics.uploadFailed();
            else this.statistics.uploadEnded();
        }
        if (id === ID.presence) {
            for (const presence of (result.presence?.presences ?? []).slice(0, this.#watched.size)) {
                effects.push({ do: "live", type: "presence", event: presence });
            }
        }
        if (id === ID.synchronize && result.synchronized) {
            const { epoch, headSeq, oldestSeq } = result.synchronized;
            this.#track((out) => this.inbox.synchronized(epoch, headSeq, oldestSeq, now, out), date, effects);
        }
    }

    /**
     * @param {any} result
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #authenticationAnswered(result, now, date, effects) {
        const [credential, session] = [this.credential, result.session];
        if (result.error || !session) {
            const error = result.error ? HermesError.of(result.error) : violation("the answer holds no session");
            if (credential && "register" in credential) {
                const { nickName, password } = credential;
                if (error.code === ErrorCode.nameTaken && this.#mayBeRegistered) {
                    // An earlier registration may have succeeded although its answer was lost.
                    this.credential = { nickName, password };
                    this.#isAuthenticating = true;
                    return this.#authenticate({ password: this.credential }, effects);
                }
                this.#mayBeRegistered = false;
            }
            effects.push({ do: "refused", error });
            return;
        }
        if (session.token) this.credential = { token: session.token };
        this.#ticket = "";
        this.maxFrameBytes = session.maxFrameBytes || null;
        this.clock.answered(this.#askedAt, date, session.serverTimeMs);
        this.#inboxBegan(session, now, effects);
        const token = this.credential && "token" in this.credential ? this.credential.token : "";
        effects.push({
            do: "loggedIn",
            session: { ...session, token },
            heartbeatAtMost: longestInterval(session.idleTimeoutMs),
            heartbeatPrior: session.heartbeatPriorSeconds * 1000 || null,
        });
    }

    /**
     * Handles the inbox of a new session. The server continues the inbox, has another inbox, or has lost entries.
     *
     * @param {any} session
     * @param {number} now
     * @param {Effect[]} effects
     */
    #inboxBegan(session, now, effects) {
        if (this.owner !== null && this.owner !== session.uid) {
            // Another account has logged in. Drop the data of the previous account.
            this.inbox = new InboxTracker();
            this.newest = null;
            this.seen = new SeenEntries();
            this.#incarnation += 1;
            this.#carried = null;
            this.owesReset = false;
            this.#rooms.clear();
            this.#watched.clear();
            this.#topics.forgetAll();
            effects.push({ do: "forgetEntries" });
        }
        this.owner = session.uid;
        this.isOwnerCertain = true;
        const { epoch, headSeq: head, acknowledgedSeq, inboxReset } = session;
        const resumption = this.inbox.resumed(epoch, acknowledgedSeq, head, now, inboxReset);
        if (resumption !== "goesOn") this.newest = null;
        else if (!this.owesReset) return;
        this.owesReset = false;
        const { taken, received } = this.inbox;
        if (resumption === "rewound") {
            // Waiting entries up to the last common seq stay valid.
            const upTo = Math.min(this.#carried?.upTo ?? received, received);
            this.#carried = { since: this.#carried?.since ?? this.#incarnation, upTo };
        } else {
            this.#carried = null;
        }
        effects.push({ do: "resetCursor", taken, received });
        this.#incarnation += 1;
        this.#deliver({ type: "inboxReset", seq: 0, epoch, time: 0 }, 0, effects);
    }

    /**
     * Handles the answer to a request of the app.
     *
     * @param {any} result
     * @param {number} id
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #finished(result, id, now, date, effects) {
        const room = this.#returning.get(id);
        if (room !== undefined) {
            this.#returning.delete(id);
            if (!this.#rooms.has(room)) return;
            /** @type {any} */
            let news = { entered: { memberCount: result.room?.memberCount ?? 0 } };
            if (result.error) {
                // If the room cannot be entered again, the app gets a kick.
                this.#rooms.delete(room);
                this.#topics.forget(room);
                news = { kicked: { reason: HermesError.of(result.error).message } };
            }
            effects.push({ do: "live", type: "room", event: { room, user: null, uid: 0, ...news } });
            return;
        }
        const wasSend = this.#sending.delete(id);
        const entered = this.#entering.get(id);
        this.#entering.delete(id);
        if (result.error) {
            effects.push({ do: "answerFailed", id, error: HermesError.of(result.error) });
            return;
        }
        if (entered) this.#rooms.set(entered.room, entered.user);
        const { inboxSeq: seq = 0, messageId = "", serverTimeMs: time = 0 } = result.receipt ?? {};
        if (wasSend && seq > 0) {
            // The client's own message is also an entry of the inbox. For this entry, the device gets only the receipt.
            // But the entry itself can arrive after the server has begun a new inbox.
            this.seen.insert(ownName(messageId));
            this.#note({ seq, id: messageId, time });
            this.#track((out) => this.inbox.arrived(null, seq, seq, 0, now, out), date, effects);
        }
        effects.push({ do: "answer", id, result });
    }

    /**
     * Handles an entry of the inbox.
     *
     * @param {any} wire
     * @param {number} bytes
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #arrived(wire, bytes, now, date, effects) {
        const { seq, expired, message } = wire;
        const to = expired ? Math.max(seq, expired.toSeq) : seq;
        // This device sent the message before the connection was lost or the page was closed. The receipt arrives after
        // the message is sent again.
        const isOwn = message?.own && message.clientId && this.#isMine(message.clientId);
        this.#note(knownEntry(wire));
        const before = this.inbox.received;
        this.#track(
            (out) => this.inbox.arrived(isOwn ? null : inboxEvent(wire, this.inbox.epoch), seq, to, bytes, now, out),
            date,
            effects,
        );
        if (expired && before < to && this.inbox.received >= to) this.inbox.noteLoss(Math.max(seq, before + 1), to);
    }

    /** @param {import("./packet.js").KnownEntry | null} entry */
    #note(entry) {
        if (entry && entry.seq > (this.newest?.seq ?? 0)) this.newest = entry;
    }

    /** @param {string} clientId */
    #isMine(clientId) {
        if (this.#isOwn(clientId)) return true;
        for (const id of this.#sending.values()) if (id === clientId) return true;
        return false;
    }

    /**
     * Delivers an event of a room. If earlier pushes to the room did not arrive, the app gets a `topicGap` first.
     *
     * @param {any} event
     * @param {number} date
     * @param {Effect[]} effects
     */
    #roomEvent(event, date, effects) {
        if (event.kicked) {
            this.#topics.forget(event.room);
            this.#rooms.delete(event.room);
        }
        if (event.topicSeq > 0 && event.room.length <= 64) {
            const gap = this.#topics.arrived(event.topicSeq, event.topicEpoch, event.room);
            if (gap) {
                this.statistics.happened("topicMissed", date, gap.to - gap.from + 1);
                effects.push({ do: "live", type: "topicGap", event: { topic: `room/${event.room}`, ...gap } });
            }
        }
        effects.push({ do: "live", type: "room", event });
    }

    /**
     * @param {any} notice
     * @param {Effect[]} effects
     */
    #noticed({ kind, message, reconnect }, effects) {
        const advice = this.#advice(reconnect);
        if (kind === "shutdown" && advice) effects.push({ do: "shutdownAnnounced", advice });
        if (kind === "reconnect") {
            effects.push({ do: "reconnectAdvised", advice: advice ?? { notBefore: 0, window: 5000 } });
        }
        if (message) effects.push({ do: "live", type: "notice", event: { kind, message } });
    }

    /**
     * @param {any} kicked
     * @param {number} date
     * @param {Effect[]} effects
     */
    #kicked({ reason, message, reconnect, code }, date, effects) {
        const advice = this.#advice(reconnect);
        /** @param {number} number @param {string} text */
        const end = (number, text, mayReturn = false, isBreach = false) => {
            const error = new HermesError(number, message || text);
            effects.push({ do: "kicked", error, mayReturn, advice: mayReturn ? advice : null, isBreach });
        };
        if (reason === "replaced") {
            // An abandoned login of this client may be the cause. Each such login explains at most one replacement.
            this.strays = this.strays.filter((at) => Math.abs(date - at) <= strayMilliseconds);
            const mayReturn = this.strays.pop() !== undefined;
            end(ErrorCode.replaced, "the same device logged in elsewhere", mayReturn);
        } else if (reason === "disabled") {
            end(ErrorCode.accountDisabled, "the account is disabled");
        } else if (reason === "revoked") {
            end(ErrorCode.revoked, "the login was revoked: log in again");
        } else {
            const isBreach = reason === "protocol";
            end(isBreach && code ? code : ErrorCode.kicked, "the server ended the connection", true, isBreach);
        }
    }

    /** @param {any} wire */
    #advice(wire) {
        if (!wire) return null;
        // A longer ticket is invalid, because a ticket has 64 bytes, which are 88 digits of base64.
        if (wire.ticket.length <= 88) this.#ticket = wire.ticket;
        return { notBefore: Math.max(0, wire.notBeforeMs), window: Math.max(0, wire.windowMs) };
    }

    /**
     * Turns the tracker's outputs into effects.
     *
     * @param {(output: import("./inbox.js").InboxOutput[]) => void} body
     * @param {number} date
     * @param {Effect[]} effects
     */
    #track(body, date, effects) {
        /** @type {import("./inbox.js").InboxOutput[]} */
        const outputs = [];
        body(outputs);
        this.statistics.noticed(this.inbox.takeCounts(), date);
        for (const output of outputs) {
            if (output.do === "deliver") {
                if (output.entry.type !== "gap") {
                    const [offset, time] = [this.clock.milliseconds, output.entry.time];
                    this.statistics.received(offset === null || !time ? null : Math.max(0, date + offset - time), date);
                }
                this.#deliver(output.entry, output.bytes, effects);
            } else if (output.do === "missed") {
                this.#deliver(gapEvent(output.from, output.to, this.inbox.epoch), 0, effects);
            } else if (output.do === "synchronize") {
                const synchronize = { afterSeq: String(output.afterSeq) };
                effects.push({ do: "send", body: { synchronize }, id: ID.synchronize });
            } else {
                effects.push({ do: "send", body: { acknowledge: { upToSeq: String(output.upToSeq) } }, id: 0 });
            }
        }
    }

    /**
     * @param {import("./packet.js").InboxEvent} event
     * @param {number} bytes
     * @param {Effect[]} effects
     */
    #deliver(event, bytes, effects) {
        const name = entryName(event);
        const isRepeat = !this.seen.insert(name);
        effects.push({ do: "deliver", delivery: { event, name, incarnation: this.#incarnation, bytes, isRepeat } });
    }
}
