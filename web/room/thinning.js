// Hermes
// SPDX-License-Identifier: Apache-2.0

/** Passes as many items as people can read, and counts the rest. */
export class Thinner {
    #perSecond;
    #burst;
    #allowance;
    #at = -Infinity;
    /** The number of items that were left out since the last call of `takeLeftOut`. */
    #leftOut = 0;

    /**
     * @param {number} perSecond
     * @param {number} burst The number of items that may come at once after a pause.
     */
    constructor(perSecond, burst) {
        this.#perSecond = perSecond;
        this.#burst = burst;
        this.#allowance = burst;
    }

    /**
     * @param {number} now The time in milliseconds; never earlier than in the last call.
     * @returns {boolean} Whether to show one more item.
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

    /** Counts an item that is left out for another reason. */
    leaveOut() {
        this.#leftOut += 1;
    }

    /** Whether `offer` would pass one more item. This call counts nothing. */
    has(/** @type {number} */ now) {
        return this.#allowance + ((now - this.#at) / 1000) * this.#perSecond >= 1;
    }

    /** Returns the number of items that were left out since the last call. */
    takeLeftOut() {
        const count = this.#leftOut;
        this.#leftOut = 0;
        return count;
    }
}

/** The lanes of the stage. A text takes a lane until the end of the text is visible. */
export class Lanes {
    /** @type {number[]} The time at which each lane becomes free. */
    #freeAt = [];

    /** @param {number} count */
    resize(count) {
        this.#freeAt.length = Math.min(this.#freeAt.length, count);
        while (this.#freeAt.length < count) this.#freeAt.push(-Infinity);
    }

    /**
     * @param {number} now
     * @returns {number} The lane that has been free for the longest time; -1 if all lanes are taken.
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
 * A WebSocket class that drops texts of rooms if they are too many to read, before they are parsed.
 *
 * @param {any} WebSocketClass
 * @param {(frame: string) => boolean} takes Whether to pass a text of a room; called for each text.
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
 * Whether a frame of the server contains somebody's text in a room. Quotes inside a JSON text are escaped, so the
 * searched texts can only be fields of the packet. A publication with a number is not such a text, because the SDK must
 * count it.
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
