// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";
import { longestInterval } from "./heartbeat.js";
import { InboxTracker, SeenEntries } from "./inbox.js";
import { entryName, gapEvent, inboxEvent, ownName, violation } from "./packet.js";
import { ClockOffset, DeliveryCounter, TopicTracker } from "./statistics.js";

/**
 * @typedef {{ nickName: string, password: string } | { token: string }
 *   | { register: true, nickName: string, password: string, invitation?: string }} Credential
 */

/**
 * An inbox entry on its way to the app.
 *
 * @typedef {object} Delivery
 * @property {import("./packet.js").InboxEvent} event
 * @property {string | null} name See `entryName`.
 * @property {number} incarnation The inbox that the seq belongs to.
 * @property {number} bytes The length of the frame that carried it.
 * @property {boolean} isRepeat The app has seen this entry before, under another seq.
 */

/**
 * An instruction to the owner.
 *
 * @typedef {{ do: "send", body: any, id: number } | { do: "answer", id: number, result: any }
 *   | { do: "answerFailed", id: number, error: HermesError } | { do: "deliver", delivery: Delivery }
 *   | { do: "live", type: string, event: any } | { do: "forgetEntries" }
 *   | { do: "resetCursor", taken: number, head: number }
 *   | { do: "loggedIn", session: any, heartbeatAtMost: number | null, heartbeatPrior: number | null }
 *   | { do: "refused", error: HermesError }
 *   | { do: "kicked", error: HermesError, mayReturn: boolean, advice: any, isBreach: boolean }
 *   | { do: "shutdownAnnounced", advice: any } | { do: "reconnectAdvised", advice: any }} Effect
 */

/** Ids of packets whose answers the session itself awaits. */
const ID = { authentication: 1, heartbeat: 2, presence: 3, synchronize: 4, statistics: 6 };
/** The largest number of accounts that the server lets a client watch, and that one request may name. */
const maxWatched = 1000;
/** The first id for entering rooms again, far above the ids of the app's requests. */
const firstReturn = 2 ** 50;
/** The number of remembered logins without an answer, and how long they are remembered. */
const maxStrays = 16;
const strayMilliseconds = 300_000;
/** The delay of the first upload of statistics after a login, so that it does not add to a storm of logins. */
const uploadAfterLogin = 60_000;

/**
 * The native protocol on the client's side: turns packets into effects, and keeps what must be repeated on the next
 * connection. Does no I/O; `now` is in milliseconds of any one clock, `date` in milliseconds since 1970.
 */
export class Session {
    /** @type {Credential | null} */
    credential = null;
    /** @type {number | null} The inbox's account, if it is known before the login. */
    owner = null;
    /** Whether the credential belongs to the owner, so that the login may tell the server the cursor. */
    isOwnerCertain = false;
    /** Whether the app did not take the last `inboxReset` of an earlier run. */
    owesReset = false;
    inbox = new InboxTracker();
    seen = new SeenEntries();
    statistics = new DeliveryCounter();
    clock = new ClockOffset();
    /** The page's state; the server pushes messages at once while it is not in the foreground. */
    appState = "foreground";
    /** @type {number | null} The longest frame that the server accepts; null if it did not say. */
    maxFrameBytes = null;
    /** @type {number[]} When each login that was given up was sent. A late one may replace a later login. */
    strays = [];
    #device;
    #isOwn;
    #statisticsInterval;
    #incarnation = 0;
    /** @type {{ since: number, upTo: number } | null} Entries of these inboxes keep their places up to this seq. */
    #carried = null;
    #isAuthenticating = false;
    #mayBeRegistered = false;
    /** The credential that the app last passed. */
    #requested = "";
    #registerIsUnanswered = false;
    #askedAt = 0;
    #ticket = "";
    /** @type {Map<number, string>} The client ids of sends whose receipts are awaited, by packet id. */
    #sending = new Map();
    /** @type {Map<number, { room: string, user: any }>} Rooms that the app is entering, by packet id. */
    #entering = new Map();
    /** @type {Map<string, any>} Rooms to enter again on the next connection. */
    #rooms = new Map();
    /** @type {Map<number, string>} Rooms that are being entered again, by packet id. */
    #returning = new Map();
    #lastReturn = firstReturn;
    #topics = new TopicTracker();
    /** @type {Set<number>} Accounts to watch again on the next connection. */
    #watched = new Set();
    /** @type {number | null} */
    #uploadAt = null;

    /**
     * @param {object} options
     * @param {{ id: string, name?: string, platform?: string, appVersion?: string }} options.device
     * @param {(clientId: string) => boolean} options.isOwn Whether a message is in this device's outbox, or was.
     * @param {number | null} options.statisticsInterval The time between two uploads; null: none.
     */
    constructor({ device, isOwn, statisticsInterval }) {
        this.#device = device;
        this.#isOwn = isOwn;
        this.#statisticsInterval = statisticsInterval;
    }

    /** The time at which `deadlineReached` is due; null if none. */
    get nextDeadline() {
        const next = Math.min(this.inbox.nextDeadline ?? Infinity, this.#uploadAt ?? Infinity);
        return next === Infinity ? null : next;
    }

    /**
     * The app logs in, perhaps with another account.
     *
     * @param {Credential} credential
     * @param {boolean} isOwners Whether the credential can only be that of the inbox's account.
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
     * The connection is open.
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
     * The client may send requests.
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
        // The server's default is not sent.
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
     * A packet is written: keeps what must be repeated on the next connection.
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
     * Applies a request by the server's rules. If more accounts were remembered than the server watches, it would
     * refuse the request of the next connection, and nothing would be watched.
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
     * A packet arrived.
     *
     * @param {any} packet What `readPacket` returned.
     * @param {number} bytes The length of its frame.
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
     * The connection is gone.
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
     * The app has taken an event, and the store knows it.
     *
     * @param {number} seq The app has taken all entries of the present inbox up to this one. An event that takes none
     *   may still make room for entries that the tracker has dropped.
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    taken(seq, now, date, effects) {
        this.#track((out) => this.inbox.tookUpTo(seq, now, out), date, effects);
    }

    /**
     * Whether the entry's seq counts in the present inbox; of an `inboxReset`, whether it is the last one.
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
     * The client is about to close the connection.
     *
     * @param {number} date
     * @param {Effect[]} effects
     */
    closing(date, effects) {
        this.#track((out) => this.inbox.acknowledgeNow(out), date, effects);
    }

    /** How the client describes its device at a login. */
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
        // With another account's login the cursor would acknowledge that account's entries.
        const epoch = this.isOwnerCertain ? this.inbox.epoch : "0";
        const acknowledgedSeq = String(this.isOwnerCertain ? this.inbox.taken : 0);
        const authenticate = { ...credential, device: this.description, epoch, acknowledgedSeq, ticket: this.#ticket };
        effects.push({ do: "send", body: { authenticate }, id: ID.authentication });
    }

    /**
     * Handles the answer to one of the session's own packets.
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
            // A permanent refusal would be repeated.
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
                    // An earlier registration without an answer may have succeeded.
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
     * The server continues the inbox, has another one, or has lost entries.
     *
     * @param {any} session
     * @param {number} now
     * @param {Effect[]} effects
     */
    #inboxBegan(session, now, effects) {
        if (this.owner !== null && this.owner !== session.uid) {
            // Another account logged in: what belongs to the one before is dropped.
            this.inbox = new InboxTracker();
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
        const { epoch, headSeq: head } = session;
        const resumption = this.inbox.resumed(epoch, session.acknowledgedSeq, head, now);
        if (resumption === "goesOn" && !this.owesReset) return;
        this.owesReset = false;
        const { taken } = this.inbox;
        if (resumption === "rewound") {
            // Waiting entries up to the new head keep their places.
            const upTo = Math.min(this.#carried?.upTo ?? head, head);
            this.#carried = { since: this.#carried?.since ?? this.#incarnation, upTo };
        } else {
            this.#carried = null;
        }
        effects.push({ do: "resetCursor", taken, head: resumption === "newInbox" ? taken : head });
        this.#incarnation += 1;
        this.#deliver({ type: "inboxReset", seq: 0, epoch, time: 0 }, 0, effects);
    }

    /**
     * A request of the app was answered.
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
                // A refusal to enter again reaches the app as a kick.
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
        const { inboxSeq: seq = 0, messageId = "" } = result.receipt ?? {};
        if (wasSend && seq > 0) {
            // The client's own message is also an entry, for which this device gets only the receipt. The entry itself
            // can arrive after the server has begun a new inbox.
            this.seen.insert(ownName(messageId));
            this.#track((out) => this.inbox.arrived(null, seq, seq, 0, now, out), date, effects);
        }
        effects.push({ do: "answer", id, result });
    }

    /**
     * An entry arrived.
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
        // Sent by this device before the connection broke or the page was left; its receipt comes with the repetition.
        const isOwn = message?.own && message.clientId && this.#isMine(message.clientId);
        const before = this.inbox.received;
        this.#track(
            (out) => this.inbox.arrived(isOwn ? null : inboxEvent(wire, this.inbox.epoch), seq, to, bytes, now, out),
            date,
            effects,
        );
        if (expired && before < to && this.inbox.received >= to) this.inbox.noteLoss(Math.max(seq, before + 1), to);
    }

    /** @param {string} clientId */
    #isMine(clientId) {
        if (this.#isOwn(clientId)) return true;
        for (const id of this.#sending.values()) if (id === clientId) return true;
        return false;
    }

    /**
     * Before a push to a room, tells the app which earlier ones did not arrive.
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
            // One of this client's own logins that was given up may be the cause; each is blamed once.
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
        // A longer ticket is invalid: 64 bytes are 88 digits of base64.
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
