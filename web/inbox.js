// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * An instruction to the tracker's owner.
 *
 * @typedef {{ do: "deliver", seq: number, entry: any, bytes: number } | { do: "missed", from: number, to: number }
 *   | { do: "synchronize", afterSeq: number } | { do: "acknowledge", upToSeq: number }} InboxOutput
 *
 * - `deliver`: pass this entry to the app.
 * - `missed`: the server no longer has these entries. Pass a gap to the app.
 * - `synchronize`: request the entries after this seq.
 * - `acknowledge`: tell the server that the app has taken everything up to this seq.
 */

/**
 * The counts since the last call of `takeCounts`.
 *
 * @typedef {object} InboxCounts
 * @property {number} duplicates Entries that arrived again.
 * @property {number} gaps Missing seqs that had to be requested, or that the server reported as deleted.
 * @property {number} repaired Missing seqs that arrived later.
 * @property {number} lost Missing seqs that will not arrive.
 */

/** The largest number of entries that wait after a hole. Entries above this number are requested again. */
const maxAhead = 1024;
const maxAheadBytes = 16 * 1_048_576;
/** The time before the entries of a hole are requested, in milliseconds. */
const grace = 300;
/** The time after which a request for a hole is repeated, in milliseconds. */
const repairTimeout = 5000;
/**
 * The longest delay of an acknowledgement, in milliseconds, and the number of entries after which it is sent at once.
 */
const acknowledgeDelay = 50;
const acknowledgeCount = 64;
/**
 * If more entries than the upper number are not taken, no more entries are kept. They are requested again below the
 * lower number.
 */
const pauseAbove = 4096;
const resumeBelow = 1024;
/** The largest seq that a number can represent exactly, minus 1, so that adding 1 is always safe. */
const maxSeq = Number.MAX_SAFE_INTEGER - 1;

/**
 * A hole of this many seqs was never assigned, because no inbox gets that many entries. The counts leave such a hole
 * out. A server that has lost the newest seq of an inbox continues 2³² seqs above all seqs that it knows. The client
 * may know some higher seqs than the server, so this limit is lower.
 */
const uncounted = 2 ** 31;

/**
 * Returns the number of seqs to count; 0 if the seqs are a hole that the counts leave out.
 *
 * @param {number} number
 */
const counted = (number) => (number < uncounted ? number : 0);

/** @returns {InboxCounts} */
const noCounts = () => ({ duplicates: 0, gaps: 0, repaired: 0, lost: 0 });

/**
 * Puts inbox entries in order. Each entry reaches the app once, even if it arrives twice or late. The tracker decides
 * which entries may be acknowledged. It does no I/O. All times are parameters, in milliseconds of the same clock.
 *
 * Seqs are contiguous per user. An entry that has already arrived is dropped. An entry after a hole waits a short time
 * for the missing entries. Often such an entry is this device's own message, whose receipt has not arrived yet. Then
 * the tracker requests the missing entries.
 */
export class InboxTracker {
    /** The epoch of the seqs; "0" before the first login. */
    epoch;
    /** The last seq up to which every entry has arrived. */
    received;
    counts = noCounts();
    #head = 0;
    /** @type {Map<number, { to: number, entry: any, bytes: number }>} The entries after a hole, by seq. */
    #ahead = new Map();
    #aheadBytes = 0;
    /** @type {number[]} The seqs that were delivered but are not taken yet, in order. They begin at the index
     *   `#untakenFrom`. */
    #untaken = [];
    #untakenFrom = 0;
    #acknowledged;
    /** @type {number | null} */
    #acknowledgeAt = null;
    /** @type {number | null} */
    #repairAt = null;
    #isPaused = false;
    #isFull = false;
    /** Whether there is no connection for requesting missing entries. */
    #isOffline = false;
    /** The seq up to which missing seqs have been counted. */
    #countedTo = 0;

    /**
     * Creates a tracker that continues an earlier run.
     *
     * @param {string} epoch
     * @param {number} taken
     */
    constructor(epoch = "0", taken = 0) {
        this.epoch = epoch;
        this.received = Math.min(taken, maxSeq);
        this.#acknowledged = this.received;
    }

    /** The number of entries that the app has not taken. */
    get untaken() {
        return this.#untaken.length - this.#untakenFrom;
    }

    /** The last seq that the app has taken. */
    get taken() {
        return this.untaken ? this.#untaken[this.#untakenFrom] - 1 : this.received;
    }

    /** Whether the waiting entries take too much memory. While it is true, no more entries are kept. */
    set isFull(/** @type {boolean} */ isFull) {
        this.#isFull = isFull;
        if (isFull) this.#isPaused = true;
    }

    /** The time at which to call `deadlineReached`; null if there is none. */
    get nextDeadline() {
        if (this.#acknowledgeAt === null || this.#repairAt === null) return this.#acknowledgeAt ?? this.#repairAt;
        return Math.min(this.#acknowledgeAt, this.#repairAt);
    }

    /** Returns the counts, and resets them. */
    takeCounts() {
        const counts = this.counts;
        this.counts = noCounts();
        return counts;
    }

    /**
     * Handles the beginning of a session. The server continues after `taken`. In a new epoch, or if it has lost
     * entries, it continues after the last entry that it has recorded as acknowledged.
     *
     * @param {string} epoch
     * @param {number} serverAcknowledged
     * @param {number} head
     * @param {number} now
     * @param {boolean} hasLostEntries Whether the server says that it has lost entries and gives their seqs to others.
     *   The client does not know which of its entries the server has lost, so all entries after the server's record
     *   count as not received.
     * @returns {"goesOn" | "newInbox" | "rewound"} `newInbox` means that the server has begun a new count, and that
     *   earlier entries do not belong to this inbox. `rewound` means that the server has lost entries after `received`
     *   and gives their seqs to other entries.
     */
    resumed(epoch, serverAcknowledged, head, now, hasLostEntries = false) {
        /** @type {"goesOn" | "newInbox" | "rewound"} */
        let resumption = "goesOn";
        if (epoch !== this.epoch) {
            if (this.epoch !== "0") resumption = "newInbox";
            this.epoch = epoch;
            // The value is at most the head, so that later entries do not count as received.
            this.received = Math.min(serverAcknowledged, head, maxSeq);
            this.#untaken = [];
            this.#untakenFrom = 0;
            this.#countedTo = 0;
            this.#ahead.clear();
            this.#aheadBytes = 0;
        } else if (head < this.received || hasLostEntries) {
            resumption = "rewound";
            this.counts.lost += counted(Math.max(0, this.received - head));
            const last = Math.min(this.received, head, hasLostEntries ? serverAcknowledged : head);
            this.received = last;
            this.#countedTo = Math.min(this.#countedTo, last);
            while (this.untaken && this.#untaken[this.#untaken.length - 1] > last) this.#untaken.pop();
            this.#ahead.clear();
            this.#aheadBytes = 0;
        }
        this.#head = Math.max(head, this.received);
        this.#acknowledged = Math.min(this.taken, serverAcknowledged);
        // Entries after a hole stay. The receipt of an own message does not arrive again, and the message itself must
        // not arrive.
        this.#dropPassed();
        this.#acknowledgeAt = this.taken > this.#acknowledged ? now + acknowledgeDelay : null;
        // The server sends the remaining entries without a request. If they do not arrive in time, the tracker requests
        // them.
        this.#repairAt = this.#head > this.received ? now + repairTimeout : null;
        this.#isPaused = this.#isFull || this.untaken > pauseAbove;
        this.#isOffline = false;
        return resumption;
    }

    /** Handles the loss of the connection. In the next session, the server sends the missing entries. */
    lost() {
        this.#isOffline = true;
        this.#repairAt = null;
    }

    /**
     * Handles the entries from `seq` to `to`, which have arrived in one frame of `bytes` bytes. If `entry` is null,
     * there is nothing for the app.
     *
     * @param {any} entry
     * @param {number} seq
     * @param {number} to
     * @param {number} bytes
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    arrived(entry, seq, to, bytes, now, output) {
        if (!(to >= seq && seq > 0 && to <= maxSeq)) return;
        const known = this.#ahead.get(seq);
        if (to <= this.received || (known && known.to >= to)) {
            if (entry !== null) this.counts.duplicates += 1;
            return;
        }
        this.#head = Math.max(this.#head, to);
        if (seq <= this.received + 1) {
            if (this.#isPaused && entry !== null) return;
            this.#noteArrival(this.received + 1, to);
            this.#accept(entry, to, bytes, output);
            for (let next; (next = this.#ahead.get(this.received + 1)); ) {
                this.#removeAhead(this.received + 1);
                // The entry is dropped, and requested again later. If it stayed, its repetition would be dropped as a
                // duplicate.
                if (this.#isPaused && next.entry !== null) {
                    // The entry was counted as arrived, so it must be counted as missing again.
                    this.counts.gaps += counted(Math.max(0, Math.min(next.to, this.#countedTo) - this.received));
                    break;
                }
                this.#accept(next.entry, next.to, next.bytes, output);
            }
            this.#dropPassed();
            if (this.received >= this.#head) this.#repairAt = null;
            else if (this.#repairAt !== null) this.#repairAt = now + (this.#ahead.size ? grace : repairTimeout);
            this.#acknowledgeLater(now, output);
        } else {
            if (this.#ahead.size < maxAhead && (bytes === 0 || this.#aheadBytes + bytes <= maxAheadBytes)) {
                this.#noteArrival(seq, to);
                this.#removeAhead(seq);
                this.#ahead.set(seq, { to, entry, bytes });
                this.#aheadBytes += bytes;
            }
            if (!this.#isPaused) this.#repairAt = Math.min(this.#repairAt ?? Infinity, now + grace);
        }
    }

    /**
     * Handles the server's answer to `synchronize`, which contains the range of the stored entries. The entries follow.
     *
     * @param {string} epoch
     * @param {number} head
     * @param {number} oldest
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    synchronized(epoch, head, oldest, now, output) {
        if (epoch !== this.epoch) return;
        this.#head = Math.max(this.#head, Math.min(head, maxSeq));
        // While the inbox is paused, gaps are not reported. They are requested again later.
        while (oldest > this.received + 1 && !this.#isPaused) {
            // Received entries are not lost.
            const next = Math.min(Infinity, ...this.#ahead.keys());
            const from = this.received + 1;
            const to = Math.min(oldest - 1, this.#head, next - 1);
            if (to < from) return;
            // The gap counts as not taken until the app has taken it. So it is reported again if the app stops before.
            this.#untaken.push(to);
            if (this.untaken > pauseAbove) this.#isPaused = true;
            output.push({ do: "missed", from, to });
            this.arrived(null, from, to, 0, now, output);
            this.noteLoss(from, to);
        }
    }

    /**
     * Handles an event that the app has taken. There may now be room for dropped entries.
     *
     * @param {number} seq The seq of the event. The app has taken all entries up to this seq. It is 0 if the event is
     *   not an entry of this inbox.
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    tookUpTo(seq, now, output) {
        while (this.untaken && this.#untaken[this.#untakenFrom] <= seq) this.#untakenFrom += 1;
        if (this.#untakenFrom > 1024) {
            this.#untaken = this.#untaken.slice(this.#untakenFrom);
            this.#untakenFrom = 0;
        }
        if (this.untaken > pauseAbove) this.#isPaused = true;
        if (this.#isPaused && !this.#isFull && this.untaken < resumeBelow) {
            this.#isPaused = false;
            if (this.#head > this.received && !this.#isOffline) {
                output.push({ do: "synchronize", afterSeq: this.received });
                this.#repairAt = now + repairTimeout;
            }
        }
        this.#acknowledgeLater(now, output);
    }

    /**
     * Handles `nextDeadline`, if it has passed.
     *
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    deadlineReached(now, output) {
        if (this.#acknowledgeAt !== null && this.#acknowledgeAt <= now) this.acknowledgeNow(output);
        if (this.#repairAt === null || this.#repairAt > now) return;
        this.#repairAt = null;
        if (this.#head <= this.received || this.#isPaused) return;
        this.#noteGap();
        output.push({ do: "synchronize", afterSeq: this.received });
        this.#repairAt = now + repairTimeout;
    }

    /**
     * Sends the due acknowledgement at once.
     *
     * @param {InboxOutput[]} output
     */
    acknowledgeNow(output) {
        this.#acknowledgeAt = null;
        if (this.taken <= this.#acknowledged) return;
        this.#acknowledged = this.taken;
        output.push({ do: "acknowledge", upToSeq: this.#acknowledged });
    }

    /**
     * Counts entries as lost. It is called after the entry that replaces them has arrived.
     *
     * @param {number} from
     * @param {number} to
     */
    noteLoss(from, to) {
        const known = counted(from <= this.#countedTo ? Math.min(to, this.#countedTo) - from + 1 : 0);
        // Of a hole that the counts leave out, only the seqs that were counted as missing before count as lost.
        const lost = Math.max(known, counted(to - from + 1));
        this.counts.gaps += lost - known;
        this.counts.lost += lost;
        // Expired entries do not repair the gap.
        this.counts.repaired -= Math.min(known, this.counts.repaired);
    }

    /**
     * @param {any} entry
     * @param {number} to
     * @param {number} bytes
     * @param {InboxOutput[]} output
     */
    #accept(entry, to, bytes, output) {
        this.received = to;
        if (entry === null) return;
        this.#untaken.push(to);
        if (this.untaken > pauseAbove) this.#isPaused = true;
        output.push({ do: "deliver", seq: to, entry, bytes });
    }

    /** @param {number} seq */
    #removeAhead(seq) {
        this.#aheadBytes -= this.#ahead.get(seq)?.bytes ?? 0;
        this.#ahead.delete(seq);
    }

    #dropPassed() {
        for (const [seq, span] of this.#ahead) if (span.to <= this.received) this.#removeAhead(seq);
    }

    /** Counts all seqs that are missing now as gaps, unless they contain a hole that the counts leave out. */
    #noteGap() {
        const begin = Math.max(this.received, this.#countedTo);
        if (this.#head <= begin) return;
        let here = 0;
        for (const [seq, span] of this.#ahead) if (span.to > begin) here += span.to - Math.max(seq - 1, begin);
        const missing = this.#head - begin - Math.min(here, this.#head - begin);
        if (missing >= uncounted) return;
        this.counts.gaps += missing;
        this.#countedTo = this.#head;
    }

    /**
     * Counts arrived entries that had been missing as repaired.
     *
     * @param {number} from
     * @param {number} to
     */
    #noteArrival(from, to) {
        if (from <= this.#countedTo) this.counts.repaired += counted(Math.min(to, this.#countedTo) - from + 1);
    }

    /**
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    #acknowledgeLater(now, output) {
        if (this.taken <= this.#acknowledged) return;
        if (this.taken - this.#acknowledged >= acknowledgeCount) this.acknowledgeNow(output);
        else this.#acknowledgeAt ??= now + acknowledgeDelay;
    }
}

/** The number of entry names that are remembered. */
const maxSeen = 1024;

/**
 * The names of the last messages and pushes that the app has received. After the server has lost its count, some
 * entries arrive again with other seqs. The class does no I/O.
 */
export class SeenEntries {
    /** @type {Set<string>} The names in the order of arrival. */
    #names;

    /** @param {Iterable<string>} names The names from an earlier run, oldest first. */
    constructor(names = []) {
        this.#names = new Set(names);
    }

    /**
     * Records the name of an entry.
     *
     * @param {string | null} name
     * @returns {boolean} Whether the name is new. An entry without a name is always new.
     */
    insert(name) {
        if (!name || name.length > 64) return true;
        if (this.#names.has(name)) return false;
        this.#names.add(name);
        if (this.#names.size > maxSeen) {
            const [oldest] = this.#names;
            this.#names.delete(oldest);
        }
        return true;
    }

    /**
     * Returns the last names, oldest first.
     *
     * @param {number} count
     */
    last(count) {
        return [...this.#names].slice(-count);
    }
}
