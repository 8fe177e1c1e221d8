// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The plots in their order. Each has the name of its figures (the part of their names before the dot, or a whole name),
 * its title, and the format of its numbers.
 */
export const plots = [
    ["connections", "Connections", "count"],
    ["messages", "Messages per second: in, out, and of these into inboxes of devices", "rate"],
    ["latency", "From the acceptance of a message to the connection of the device, in ms", "number"],
    ["frames", "Frames per second", "rate"],
    ["bytes", "Bytes per second", "bytes"],
    ["sessions", "Devices and sessions", "count"],
    ["delivered", "Inbox entries delivered per second, as clients report", "rate"],
    ["dropped", "Dropped per second, by reason", "rate"],
    ["delay", "Delay of the event loops and time of a commit, in ms", "number"],
    ["commits", "Commits per second", "rate"],
    ["waiting", "Waiting for a commit", "count"],
    ["opened", "Connections opened and refused per second", "rate"],
    ["inbox.entries", "Entries in all inboxes", "count"],
    ["inbox.bytes", "Bytes in all inboxes", "bytes"],
    ["push", "Answers of push services per second", "rate"],
    ["webhooks", "Webhooks per second", "rate"],
    ["webhooks_waiting", "Webhooks that wait", "count"],
    ["processor", "Processor, in % of a core", "number"],
    ["memory", "Memory", "bytes"],
    ["disk", "Data on the disk", "bytes"],
    ["disk_free", "Free on the disk", "bytes"],
];

/**
 * @typedef {{ interval_ms: number, from_ms: number, figures: Record<string, (number | null)[]>,
 *     maxima?: Record<string, (number | null)[]> }} Document
 */

/** The figures on the page: the first answer of the server, extended by newer values. */
export class Series {
    interval = 10000;
    /** The time of the first value. */
    from = 0;
    /** @type {Map<string, (number | null)[]>} */
    values = new Map();
    /**
     * The largest values of a month. The other values of a month are means.
     *
     * @type {Map<string, (number | null)[]>}
     */
    maxima = new Map();

    /** @param {number} most The number of values to keep of each figure. */
    constructor(most = 360) {
        this.most = most;
    }

    /** The time of the last value. */
    get last() {
        return this.from + (this.length - 1) * this.interval;
    }

    get length() {
        return this.values.values().next().value?.length ?? 0;
    }

    /**
     * Adds an answer of the server: all values, or the newer values.
     *
     * @param {Document} document
     */
    take(document) {
        const names = Object.keys(document.figures);
        this.maxima = new Map(Object.entries(document.maxima ?? {}));
        const isNext = this.length > 0 && document.interval_ms === this.interval
            && document.from_ms === this.last + this.interval && names.every((name) => this.values.has(name));
        if (!isNext) {
            this.interval = document.interval_ms;
            this.from = document.from_ms;
            this.values = new Map();
        }
        for (const name of names) {
            this.values.set(name, [...(this.values.get(name) ?? []), ...document.figures[name]]);
        }
        const excess = this.length - this.most;
        if (excess <= 0) return;
        for (const [name, values] of this.values) this.values.set(name, values.slice(excess));
        this.from += excess * this.interval;
    }

    /**
     * The figures of a plot, by the part of their names after the dot.
     *
     * @param {string} plot
     * @param {Map<string, (number | null)[]>} values
     * @returns {[string, (number | null)[]][]}
     */
    of(plot, values = this.values) {
        return [...values].filter(([name]) => name === plot || name.startsWith(`${plot}.`))
            .map(([name, all]) => [name.slice(name.indexOf(".") + 1), all]);
    }
}

/**
 * An SVG path of the values. Gaps stay gaps.
 *
 * @param {(number | null)[]} values
 * @param {number} top The value at the upper edge.
 * @param {number} width
 * @param {number} height
 */
export function curve(values, top, width, height) {
    let text = "";
    let isDown = false;
    values.forEach((value, index) => {
        if (value === null) {
            isDown = false;
            return;
        }
        const x = values.length > 1 ? (index / (values.length - 1)) * width : width;
        const y = height - (top > 0 ? Math.min(1, Math.max(0, value / top)) : 0) * (height - 4) - 2;
        // A value between two gaps is a point.
        text += `${isDown ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
        if (!isDown && (values[index + 1] ?? null) === null) text += "h.1";
        isDown = true;
    });
    return text;
}

/**
 * A round number at or above all values.
 *
 * @param {(number | null)[][]} all
 */
export function ceiling(all) {
    let most = 0;
    for (const values of all) for (const value of values) if (value !== null && value > most) most = value;
    if (most === 0) return 1;
    const power = 10 ** Math.floor(Math.log10(most));
    for (const step of [1, 2, 5, 10]) if (most <= step * power) return step * power;
    return 10 * power;
}

/**
 * A number as a readable text.
 *
 * @param {number | null | undefined} value
 * @param {string} kind
 */
export function numberText(value, kind) {
    if (value === null || value === undefined) return "–";
    if (kind === "bytes") {
        for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]]) {
            if (value >= Number(size)) return `${(value / Number(size)).toFixed(1)} ${unit}`;
        }
        return `${Math.round(value)} B`;
    }
    if (kind === "count") return Math.round(value).toLocaleString("en");
    return value >= 100 ? Math.round(value).toLocaleString("en") : String(Math.round(value * 100) / 100);
}
