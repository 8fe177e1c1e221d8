// Hermes
// SPDX-License-Identifier: Apache-2.0

/** Lets through as much as people can read, and counts the rest. */
export class Thinner {
    #perSecond;
    #burst;
    #allowance;
    #at = -Infinity;
    /** How many were left out since `takeLeftOut`. */
    #leftOut = 0;

    /**
     * @param {number} perSecond
     * @param {number} burst How many may come at once after a pause.
     */
    constructor(perSecond, burst) {
        this.#perSecond = perSecond;
        this.#burst = burst;
        this.#allowance = burst;
    }

    /**
     * @param {number} now In milliseconds; never earlier than the last.
     * @returns {boolean} Whether to show one more.
     */
    offer(now) {
        const earned = ((now - this.#at) / 1000) * this.#perSecond;
        this.#allowance = Math.min(this.#burst, this.#allowance + earned);
        this.#at = now;
        if (this.#allowance < 1) {
            this.leaveOut();
            return false;
        }
        this.#allowance -= 1;
        return true;
    }

    /** Counts one that is not shown for another reason. */
    leaveOut() {
        this.#leftOut += 1;
    }

    /** Whether `offer` would let one more through; counts nothing. */
    has(/** @type {number} */ now) {
        return this.#allowance + ((now - this.#at) / 1000) * this.#perSecond >= 1;
    }

    /** How many were left out since the last call. */
    takeLeftOut() {
        const count = this.#leftOut;
        this.#leftOut = 0;
        return count;
    }
}

/** The lanes of the stage: a text takes one until its end is in view. */
export class Lanes {
    /** @type {number[]} When each lane is free. */
    #freeAt = [];

    /** @param {number} count */
    resize(count) {
        this.#freeAt.length = Math.min(this.#freeAt.length, count);
        while (this.#freeAt.length < count) this.#freeAt.push(-Infinity);
    }

    /**
     * @param {number} now
     * @returns {number} The lane that is free for the longest time; -1: all are taken.
     */
    find(now) {
        let best = -1;
        this.#freeAt.forEach((time, lane) => {
            if (time <= now && (best < 0 || time < this.#freeAt[best])) best = lane;
        });
        return best;
    }

    /**
     * @param {number} lane
     * @param {number} until
     */
    take(lane, until) {
        this.#freeAt[lane] = until;
    }
}

/** The name of the room in the page's address: `/room/NAME`, or `?room=NAME` on servers that serve files only. */
export function roomOf(/** @type {{ pathname: string, search: string }} */ { pathname, search }) {
    const asked = new URLSearchParams(search).get("room");
    if (asked) return asked;
    const last = pathname.slice(pathname.lastIndexOf("/") + 1);
    try {
        return last === "index.html" ? "lobby" : decodeURIComponent(last) || "lobby";
    } catch {
        return "lobby";
    }
}

/**
 * A WebSocket class that drops texts of rooms that nobody could read, before they cost anything.
 *
 * @param {any} WebSocketClass
 * @param {(frame: string) => boolean} takes Asked for each text of a room.
 */
export function thinned(WebSocketClass, takes) {
    return class extends WebSocketClass {
        /** @param {((event: { data: unknown }) => void) | null} handler */
        set onmessage(handler) {
            super.onmessage = handler && ((/** @type {{ data: unknown }} */ event) => {
                if (!isRoomText(event.data) || takes(/** @type {string} */ (event.data))) handler(event);
            });
        }
    };
}

/**
 * Whether a frame of the server is the text of somebody in a room. The quotes in a text of JSON are escaped, so that
 * only a field of the packet looks like one. Publications with a number are counted by the SDK.
 *
 * @param {unknown} frame
 */
export function isRoomText(frame) {
    return (
        typeof frame === "string" &&
        frame.startsWith('{"ephemeral":{"room":{') &&
        frame.includes('"text":{') &&
        !frame.includes('"topicSeq":')
    );
}
