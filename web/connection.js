// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";
import { clamped, heartbeatFailed, heartbeatInterrupted, heartbeatSucceeded, learnedHeartbeat } from "./heartbeat.js";
import { ReconnectSchedule } from "./reconnect.js";

/**
 * @typedef {import("./reconnect.js").Slot} Slot
 * @typedef {import("./reconnect.js").Advice} Advice
 * @typedef {import("./heartbeat.js").LearnedHeartbeat} LearnedHeartbeat
 */

/**
 * An instruction to the owner.
 *
 * - `connect`: open a connection, and report `connected` or `connectionClosed`.
 * - `authenticate`: log in, and report `authenticated` or `authenticationRefused`.
 * - `becameLive`: send the waiting requests, then new requests.
 * - `sendHeartbeat`: send a ping.
 * - `close`: close the connection, and report `connectionClosed`.
 *
 * @typedef {"connect" | "authenticate" | "becameLive" | "sendHeartbeat" | "close"} Action
 */

/**
 * The outcomes of a heartbeat that show how long a silent connection lasts in the network. With "none", no outcome
 * counts, because the heartbeat was sent at another time than planned. With "failure", only a failure counts, because
 * the silence was short or an earlier heartbeat was lost. With "both", success and failure count.
 *
 * @typedef {"none" | "failure" | "both"} Evidence
 */

/**
 * @typedef {{ isDue: true, at: number } | { isDue: false, at: number, tries: number, evidence: Evidence }} Heartbeat
 * @typedef {{ do: "atOnce" } | { do: "byPolicy" } | { do: "at", slot: Slot }
 *   | { do: "stop", error: HermesError | null }} Next
 *
 * @typedef {{ is: "idle" } | { is: "connecting" } | { is: "authenticating", until: number } | LiveState
 *   | { is: "lost", error: HermesError, next: Next }
 *   | { is: "waiting", error: HermesError, until: number, earliest: number, delay: number }
 *   | { is: "stopped", error: HermesError | null }} State
 *
 * @typedef {object} LiveState
 * @property {"live"} is
 * @property {number} since
 * @property {number} lastReceived
 * @property {number} lastWritten
 * @property {Heartbeat} heartbeat
 * @property {Slot | null} leaveAt The moment at which the server asked the client to reconnect.
 * @property {Slot | null} returnAt The moment for reconnecting after the server has closed the connection.
 */

/**
 * @typedef {object} Conditions
 * @property {"foreground" | "background" | "suspended"} app The state of the page.
 * @property {boolean} isOnline Whether there is a network.
 */

/** The time in milliseconds after which a connection resets the count of failures. */
const wellAfter = 10_000;
/**
 * If a timer is at least this late, in milliseconds, the page did not run. The delay says nothing about the server.
 */
const halted = 5000;
const authenticationTimeout = 10_000;

/**
 * Decides when to connect, log in, send heartbeats, drop the connection and reconnect. The class does no I/O. All times
 * are parameters, in milliseconds of the same clock.
 *
 *     idle -> connecting -> authenticating -> live -> lost -> waiting -> connecting …
 *                                               any state -> (lost ->) stopped
 *
 * There is at most one connection: in the state `lost`, the machine waits until the old connection is closed.
 */
export class ConnectionMachine {
    /** @type {State} */
    state = { is: "idle" };
    /** @type {Conditions} */
    conditions = { app: "foreground", isOnline: true };
    /** @type {LearnedHeartbeat} The learned heartbeat of the present network. */
    learned;
    #policy;
    #schedule;
    /** @type {number | null} The longest interval that the server allows, in milliseconds. */
    #serverLimit = null;
    /** The date in seconds since 1970, minus the clock of the passed times in seconds. */
    #dateOffset = 0;

    /**
     * @param {import("./heartbeat.js").HeartbeatPolicy} heartbeat
     * @param {import("./reconnect.js").ReconnectPolicy} reconnect
     * @param {LearnedHeartbeat | null} learned
     * @param {() => number} random
     */
    constructor(heartbeat, reconnect, learned = null, random = Math.random) {
        this.#policy = heartbeat;
        this.#schedule = new ReconnectSchedule(reconnect, random);
        this.learned = this.#known(learned);
    }

    get failures() {
        return this.#schedule.failures;
    }

    /** Whether the machine does not try to connect, because the page is suspended or there is no network. */
    get isHeld() {
        return this.conditions.app === "suspended" || !this.conditions.isOnline;
    }

    /** The time at which to call `deadlineReached`; null if there is none. */
    get nextDeadline() {
        const state = this.state;
        if (state.is === "authenticating") return state.until;
        if (state.is === "waiting") return this.isHeld ? null : state.until;
        if (state.is === "live") return Math.min(state.heartbeat.at, state.leaveAt?.moment ?? Infinity);
        return null;
    }

    /**
     * Handles the app's request for a connection.
     *
     * @returns {Action[]}
     */
    startRequested() {
        if (this.state.is === "idle" || this.state.is === "stopped") {
            this.#schedule.startAnew();
            return this.#connect();
        }
        // The app has closed and started the client again before the old connection was closed.
        if (this.state.is === "lost" && this.state.next.do === "stop") this.state.next = { do: "byPolicy" };
        return [];
    }

    /**
     * Handles the app's request to end the connection and not to reconnect.
     *
     * @returns {Action[]}
     */
    stopRequested() {
        switch (this.state.is) {
            case "idle":
            case "waiting":
                this.state = { is: "stopped", error: null };
                return [];
            case "connecting":
            case "authenticating":
            case "live":
                return this.#lose(new HermesError(ErrorCode.closed, "the app closed it"), { do: "stop", error: null });
            case "lost":
                if (this.state.next.do !== "stop") this.state.next = { do: "stop", error: null };
                return [];
            case "stopped":
                return [];
        }
    }

    /**
     * Handles a possible change of the page's state or of the network.
     *
     * @param {Conditions} conditions
     * @param {number} now
     * @returns {Action[]}
     */
    conditionsChanged(conditions, now) {
        const old = this.conditions;
        const wasHeld = this.isHeld;
        this.conditions = conditions;
        if (conditions.app === "suspended") {
            const state = this.state.is;
            if (state !== "connecting" && state !== "authenticating" && state !== "live") return [];
            return this.#lose(new HermesError(ErrorCode.suspended, "the page is suspended"), { do: "atOnce" });
        }
        const cameForward = conditions.app === "foreground" && old.app !== "foreground";
        const cameOnline = conditions.isOnline && !old.isOnline;
        return cameForward || cameOnline || (wasHeld && !this.isHeld) ? this.#look(now) : [];
    }

    /**
     * Handles `nextDeadline`, if it has passed. Early calls do no harm.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    deadlineReached(now) {
        const state = this.state;
        if (state.is === "authenticating" && now >= state.until) {
            return this.#lose(timedOut("the server did not answer the login in time"), { do: "byPolicy" });
        }
        if (state.is === "waiting" && now >= state.until && !this.isHeld) return this.#connect();
        if (state.is !== "live") return [];
        if (state.leaveAt && now >= state.leaveAt.moment) {
            this.#noteEnd(state, now);
            const error = new HermesError(ErrorCode.kicked, "the server asked to reconnect");
            return this.#lose(error, { do: "at", slot: state.leaveAt });
        }
        const beat = state.heartbeat;
        if (now < beat.at) return [];
        if (beat.isDue) return this.#beat(state, 1, this.#evidence(state, now), now);
        if (now - beat.at >= halted) return this.#beat(state, this.#policy.tries, "none", now);
        if (beat.tries >= this.#policy.tries) {
            const error = timedOut(`the server did not answer ${beat.tries} heartbeat(s)`);
            return this.#lose(error, this.#afterLoss(state, now));
        }
        return this.#beat(state, beat.tries + 1, beat.evidence === "none" ? "none" : "failure", now);
    }

    /**
     * Handles the opened connection.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    connected(now) {
        if (this.state.is !== "connecting") return ["close"];
        this.state = { is: "authenticating", until: now + authenticationTimeout };
        return ["authenticate"];
    }

    /**
     * Handles the server's suggestion of an interval for the network. It is used only if the client has learned
     * nothing.
     *
     * @param {number} interval
     */
    heartbeatSuggested(interval) {
        const { learned } = this;
        const isNew = learned.changedAt === 0 && !learned.successes && !learned.failures;
        if (this.#policy.adaptation && isNew) this.learned = this.#known(learnedHeartbeat(interval));
    }

    /**
     * Handles an accepted login.
     *
     * @param {number | null} heartbeatAtMost The longest interval between heartbeats that the server allows, in
     *   milliseconds; null if there is no limit.
     * @param {number} date The wall clock in seconds since 1970.
     * @param {number} now
     * @returns {Action[]}
     */
    authenticated(heartbeatAtMost, date, now) {
        if (this.state.is !== "authenticating") return [];
        this.#schedule.arrived();
        this.#serverLimit = heartbeatAtMost === null ? null : Math.max(1000, heartbeatAtMost);
        this.#dateOffset = date - now / 1000;
        /** @type {Heartbeat} */
        const heartbeat = { isDue: true, at: now + this.interval };
        const times = { since: now, lastReceived: now, lastWritten: now };
        this.state = { is: "live", ...times, heartbeat, leaveAt: null, returnAt: null };
        return ["becameLive"];
    }

    /**
     * Handles a refused login. The refusal is final, unless the error has a `retryAfter` or is a temporary error of the
     * server. With a `retryAfter`, the next try comes after that time, plus a random time of up to half of it.
     * Otherwise the policy decides when the next try comes.
     *
     * @param {HermesError} error
     * @param {number} now
     * @returns {Action[]}
     */
    authenticationRefused(error, now) {
        if (this.state.is !== "authenticating") return [];
        const wait = error.retryAfter;
        if (wait === null || this.#schedule.isOver) {
            return this.#lose(error, error.isTroubleOfServer ? { do: "byPolicy" } : { do: "stop", error });
        }
        return this.#lose(error, { do: "at", slot: this.#schedule.slot({ notBefore: wait, window: wait / 2 }, now) });
    }

    /**
     * Records that a packet has arrived from the server.
     *
     * @param {number} now
     */
    received(now) {
        if (this.state.is !== "live") return;
        const beat = this.state.heartbeat;
        this.state.lastReceived = now;
        if (!beat.isDue && beat.evidence === "both") this.#learn(heartbeatSucceeded, now);
        this.state.heartbeat = { isDue: true, at: this.#nextBeat(this.state) };
    }

    /**
     * Records that a packet that is not a heartbeat was sent to the server. It shows the server that the client is
     * alive. Only incoming packets show that the server is alive.
     *
     * @param {number} now
     */
    wrote(now) {
        if (this.state.is !== "live") return;
        this.state.lastWritten = now;
        if (this.state.heartbeat.isDue) this.state.heartbeat.at = this.#nextBeat(this.state);
    }

    /**
     * Handles a request that was not answered in time. If nothing has arrived recently, one heartbeat checks the
     * connection at once.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    requestExpired(now) {
        const state = this.state;
        if (state.is !== "live" || !state.heartbeat.isDue) return [];
        if (now - state.lastReceived < this.#policy.answerTimeout) return [];
        return this.#beat(state, this.#policy.tries, "none", now);
    }

    /**
     * Handles the server's reason for closing the connection. The end is final unless `mayReturn` is true.
     *
     * @param {HermesError} error
     * @param {boolean} mayReturn
     * @param {Advice | null} advice
     * @param {number} now
     * @returns {Action[]}
     */
    kicked(error, mayReturn, advice, now) {
        const state = this.state;
        if (state.is !== "authenticating" && state.is !== "live") return [];
        if (!mayReturn) return this.#lose(error, { do: "stop", error });
        /** @type {Next} */
        let next = state.is === "live" ? this.#afterLoss(state, now) : { do: "byPolicy" };
        if (advice) next = { do: "at", slot: this.#schedule.slot(advice, now) };
        return this.#lose(error, next);
    }

    /**
     * Handles the server's announcement that it will close the connection soon, with advice when to reconnect.
     *
     * @param {Advice} advice
     * @param {number} now
     */
    shutdownAnnounced(advice, now) {
        if (this.state.is === "live") this.state.returnAt = this.#schedule.slot(advice, now);
    }

    /**
     * Handles the server's request to replace this connection by a new connection.
     *
     * @param {Advice} advice
     * @param {number} now
     */
    reconnectAdvised(advice, now) {
        if (this.state.is === "live") this.state.leaveAt = this.#schedule.slot(advice, now);
    }

    /**
     * Handles a breach of the protocol by the server, or a connection that cannot be used any more.
     *
     * @param {HermesError} error
     * @param {number} now
     * @returns {Action[]}
     */
    failed(error, now) {
        if (this.state.is === "live") return this.#lose(error, this.#afterLoss(this.state, now));
        if (this.state.is === "connecting" || this.state.is === "authenticating") {
            return this.#lose(error, { do: "byPolicy" });
        }
        return [];
    }

    /**
     * Handles a connection that is closed, or that could not be opened.
     *
     * @param {HermesError} error
     * @param {number} now
     */
    connectionClosed(error, now) {
        const state = this.state;
        if (state.is === "live") this.state = { is: "lost", error, next: this.#afterLoss(state, now) };
        else if (state.is === "connecting" || state.is === "authenticating") {
            this.state = { is: "lost", error, next: { do: "byPolicy" } };
        }
        this.#leaveLost(now);
    }

    /**
     * The time between two heartbeats. It is the learned interval, at most the policy's interval in the foreground, and
     * at most the server's limit.
     */
    get interval() {
        let { interval } = this.#policy;
        if (this.#policy.adaptation) {
            const isShown = this.conditions.app === "foreground";
            interval = isShown ? Math.min(interval, this.learned.interval) : this.learned.interval;
        }
        return Math.min(interval, this.#serverLimit ?? Infinity);
    }

    /**
     * Checks the connection with one heartbeat. If the machine waits to reconnect, tries to connect at once.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    #look(now) {
        const state = this.state;
        if (state.is === "waiting") {
            this.#schedule.startAnew();
            if (!this.isHeld && now >= state.earliest) return this.#connect();
            state.until = Math.min(state.until, Math.max(now, state.earliest));
        }
        return state.is === "live" && state.heartbeat.isDue ? this.#beat(state, this.#policy.tries, "none", now) : [];
    }

    /** @returns {Action[]} */
    #connect() {
        this.state = { is: "connecting" };
        return ["connect"];
    }

    /**
     * @param {HermesError} error
     * @param {Next} next
     * @returns {Action[]}
     */
    #lose(error, next) {
        this.state = { is: "lost", error, next };
        return ["close"];
    }

    /**
     * @param {LiveState} live
     * @param {number} tries
     * @param {Evidence} evidence
     * @param {number} now
     * @returns {Action[]}
     */
    #beat(live, tries, evidence, now) {
        live.lastWritten = now;
        live.heartbeat = { isDue: false, at: now + this.#policy.answerTimeout, tries, evidence };
        return ["sendHeartbeat"];
    }

    /**
     * @param {LiveState} live
     * @param {number} now
     */
    #noteEnd(live, now) {
        if (now - live.since >= wellAfter) this.#schedule.startAnew();
    }

    /**
     * @param {LiveState} live
     * @param {number} now
     * @returns {Next}
     */
    #afterLoss(live, now) {
        this.#noteEnd(live, now);
        const beat = live.heartbeat;
        if (beat.isDue || beat.evidence === "none") this.#learn(heartbeatInterrupted, now);
        else if (this.conditions.isOnline) this.#learn(heartbeatFailed, now);
        return live.returnAt ? { do: "at", slot: live.returnAt } : { do: "byPolicy" };
    }

    /** @param {number} now */
    #leaveLost(now) {
        if (this.state.is !== "lost") return;
        const { error, next } = this.state;
        if (next.do === "stop") {
            this.state = { is: "stopped", error: next.error };
            return;
        }
        /** @type {number | null} */
        let until = now;
        if (next.do === "byPolicy") until = this.#schedule.next(now);
        if (next.do === "at") until = this.#schedule.nextAt(next.slot, now);
        if (until === null) {
            this.state = { is: "stopped", error };
            return;
        }
        const earliest = next.do === "at" ? next.slot.earliest : now;
        this.state = { is: "waiting", error, until, earliest, delay: until - now };
    }

    /**
     * The time of the next heartbeat: one interval after the last received packet or after the last write, whichever is
     * earlier.
     *
     * @param {LiveState} live
     */
    #nextBeat(live) {
        return Math.min(live.lastWritten, live.lastReceived) + this.interval;
    }

    /**
     * The evidence of the next heartbeat. Success counts only if, apart from the answer to the last heartbeat, nothing
     * has arrived for the learned interval.
     *
     * @param {LiveState} live
     * @param {number} now
     * @returns {Evidence}
     */
    #evidence(live, now) {
        const heard = now - live.lastReceived + this.#policy.answerTimeout;
        return this.interval >= this.learned.interval && heard >= this.learned.interval ? "both" : "failure";
    }

    /**
     * @param {(learned: LearnedHeartbeat, bounds: import("./heartbeat.js").HeartbeatAdaptation, date: number) =>
     *   LearnedHeartbeat} step
     * @param {number} now
     */
    #learn(step, now) {
        const bounds = this.#policy.adaptation;
        if (bounds) this.learned = step(this.learned, bounds, Math.floor(now / 1000 + this.#dateOffset));
    }

    /** @param {LearnedHeartbeat | null} learned */
    #known(learned) {
        const known = learned ?? learnedHeartbeat(this.#policy.interval);
        return this.#policy.adaptation ? clamped(known, this.#policy.adaptation) : known;
    }
}

/** @param {string} message */
const timedOut = (message) => new HermesError(ErrorCode.timedOut, message);
