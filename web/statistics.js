// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The number of answers that are kept. NTP's filter keeps the same number. */
const keptSamples = 8;
/** The longest round trip that is used, in milliseconds. */
const longestRoundTrip = 30_000;
/** The latest accepted time, in the year 3000. */
const latest = 32_503_680_000_000;
/** The largest drift between samples, in milliseconds. A larger difference means that a clock was changed. */
const drift = 200;

/**
 * Estimates how far the server's clock is ahead of the device's clock, from requests and their round-trip times. The
 * server's time stamp lies between request and answer, so the fastest of the last answers is used (as in NTP's clock
 * filter, RFC 5905, section 10). The class does no I/O. Times are in milliseconds since 1970.
 */
export class ClockOffset {
    /** @type {{ offset: number, roundTrip: number }[]} */
    #samples = [];

    /** The server's clock minus the device's clock; null if it is unknown. */
    get milliseconds() {
        return this.#best()?.offset ?? null;
    }

    /**
     * Handles an answer of the server.
     *
     * @param {number} askedAt By the device's clock.
     * @param {number} answeredAt By the device's clock.
     * @param {number} serverTime
     */
    answered(askedAt, answeredAt, serverTime) {
        const roundTrip = answeredAt - askedAt;
        const isSense = roundTrip >= 0 && roundTrip <= longestRoundTrip && serverTime >= 0 && serverTime <= latest;
        if (!isSense || askedAt < 0 || askedAt > latest) return;
        const sample = { offset: serverTime - (askedAt + Math.floor(roundTrip / 2)), roundTrip };
        const best = this.#best();
        // The samples contradict each other, so one of the clocks was changed.
        const doubt = best ? Math.floor((best.roundTrip + roundTrip) / 2) + 1 : 0;
        if (best && Math.abs(best.offset - sample.offset) > doubt + drift) this.#samples = [];
        this.#samples.push(sample);
        if (this.#samples.length > keptSamples) this.#samples.shift();
    }

    #best() {
        let [best] = this.#samples;
        for (const sample of this.#samples) if (sample.roundTrip < best.roundTrip) best = sample;
        return best;
    }
}

/** The largest number of watched topics. Above it, the topic without a push for the longest time is dropped. */
const maxTopics = 1000;

/**
 * Finds out which pushes to rooms did not arrive. Within an epoch, the server numbers the pushes without gaps. Missed
 * pushes cannot be fetched. The first push of a room or of a new epoch says nothing about earlier pushes.
 */
export class TopicTracker {
    /** @type {Map<string, { epoch: string, seq: number }>} The last push of each topic. The topic without a push for
     *   the longest time comes first. */
    #places = new Map();

    /**
     * Handles a push.
     *
     * @param {number} seq
     * @param {string} epoch
     * @param {string} topic
     * @returns {{ from: number, to: number } | null} The numbers of the missed pushes before this push; null if none
     *   are known.
     */
    arrived(seq, epoch, topic) {
        const last = this.#places.get(topic);
        const isSame = last?.epoch === epoch;
        this.#places.delete(topic);
        this.#places.set(topic, { epoch, seq: isSame ? Math.max(last.seq, seq) : seq });
        if (this.#places.size > maxTopics) {
            const [oldest] = this.#places.keys();
            this.#places.delete(oldest);
        }
        return isSame && seq > last.seq + 1 ? { from: last.seq + 1, to: seq - 1 } : null;
    }

    /**
     * Stops watching a topic. Pushes from now on do not count as missed.
     *
     * @param {string} topic
     */
    forget(topic) {
        this.#places.delete(topic);
    }

    /** Stops watching all topics. */
    forgetAll() {
        this.#places.clear();
    }
}

/** The largest number of kinds of network. A report contains at most this number. */
const maxNetworks = 16;
const sums = /** @type {const} */ ([
    "received",
    "duplicates",
    "gaps",
    "repaired",
    "lost",
    "within1S",
    "within10S",
    "later",
    "closed",
    "resets",
    "heartbeatTimeouts",
    "networkChanges",
    "topicMissed",
]);

/**
 * The counts of one network: a `hermes.v1.NetworkStatistics` with numbers.
 *
 * @typedef {Record<typeof sums[number], number> & { label: string, fromMs: number, toMs: number,
 *   heartbeatSeconds: number, heartbeatStable: boolean }} NetworkCounts
 */

/**
 * Counts deliveries and ends of connections per kind of network, until the server has the counts. The class does no
 * I/O. Dates are in milliseconds since 1970.
 */
export class DeliveryCounter {
    /** @type {Map<string, NetworkCounts>} The counts that are not being uploaded. */
    #networks = new Map();
    /** @type {NetworkCounts[] | null} The counts that are being uploaded. */
    #uploading = null;
    /** The device's kind of network. */
    kind = "";

    /**
     * Counts an inbox entry that has arrived.
     *
     * @param {number | null} latency The time since the server's time stamp, in milliseconds; null if the server's
     *   clock is unknown.
     * @param {number} date
     */
    received(latency, date) {
        const network = this.#of(date);
        network.received += 1;
        if (latency !== null) network[latency <= 1000 ? "within1S" : latency <= 10_000 ? "within10S" : "later"] += 1;
    }

    /**
     * Adds the counts of the inbox.
     *
     * @param {import("./inbox.js").InboxCounts} counts
     * @param {number} date
     */
    noticed(counts, date) {
        if (!counts.duplicates && !counts.gaps && !counts.repaired && !counts.lost) return;
        const network = this.#of(date);
        for (const name of /** @type {const} */ (["duplicates", "gaps", "repaired", "lost"])) {
            network[name] += counts[name];
        }
    }

    /**
     * Counts something that has happened `count` times.
     *
     * @param {typeof sums[number]} name
     * @param {number} date
     */
    happened(name, date, count = 1) {
        this.#of(date)[name] += count;
    }

    /**
     * Sets the learned heartbeat of the present network. It is reported with the counts.
     *
     * @param {import("./heartbeat.js").LearnedHeartbeat} heartbeat
     * @param {number} date
     */
    learned({ interval, isStable }, date) {
        const seconds = Math.max(0, Math.floor(interval / 1000));
        const known = this.#networks.get(this.kind);
        // Only a settled interval causes a report if there are no counts. Other changes wait for the next report.
        if (!known && !isStable) return;
        if (known?.heartbeatSeconds === seconds && known.heartbeatStable === isStable) return;
        const network = this.#of(date);
        network.heartbeatSeconds = seconds;
        network.heartbeatStable = isStable;
    }

    /**
     * Returns the counts to upload, and marks them as being uploaded.
     *
     * @returns {NetworkCounts[] | null} The counts; null if there are none, or if an upload is in progress.
     */
    upload() {
        if (this.#uploading || !this.#networks.size) return null;
        this.#uploading = [...this.#networks.values()].sort((a, b) => (a.label < b.label ? -1 : 1));
        this.#networks.clear();
        return this.#uploading;
    }

    /** Handles the end of an upload that the server has accepted or will never accept. */
    uploadEnded() {
        this.#uploading = null;
    }

    /** Handles an upload that the server may not have. It is repeated with later counts. */
    uploadFailed() {
        const failed = this.#uploading;
        this.#uploading = null;
        if (failed) this.restore(failed);
    }

    /** All counts that the server may not have, for the next run of the app. An upload in progress continues. */
    get unsent() {
        const all = new DeliveryCounter();
        all.restore([...this.#networks.values()]);
        all.restore(this.#uploading ?? []);
        return all.upload() ?? [];
    }

    /**
     * Adds the counts of an earlier run or a failed upload.
     *
     * @param {NetworkCounts[]} networks
     */
    restore(networks) {
        for (const old of networks.slice(0, maxNetworks)) {
            const network = this.#of(old.toMs, old.label);
            network.fromMs = Math.min(network.fromMs, old.fromMs);
            for (const name of sums) network[name] += old[name];
            if (network.heartbeatSeconds) continue;
            network.heartbeatSeconds = old.heartbeatSeconds;
            network.heartbeatStable = old.heartbeatStable;
        }
    }

    /**
     * @param {number} date
     * @returns {NetworkCounts}
     */
    #of(date, kind = this.kind) {
        let label = kind;
        let network = this.#networks.get(label);
        if (!network && this.#networks.size >= maxNetworks - 1) {
            label = "other";
            network = this.#networks.get(label);
        }
        if (!network) {
            const zeros = /** @type {any} */ (Object.fromEntries(sums.map((name) => [name, 0])));
            network = { ...zeros, label, fromMs: date, toMs: date, heartbeatSeconds: 0, heartbeatStable: false };
            this.#networks.set(label, /** @type {NetworkCounts} */ (network));
        }
        const counts = /** @type {NetworkCounts} */ (network);
        // If the clock was set back, the span must not end before it begins.
        counts.toMs = Math.max(counts.toMs, date);
        return counts;
    }
}
