// Hermes
// SPDX-License-Identifier: Apache-2.0

import { h } from "../dom.js";
import { locale, t } from "./i18n.js";
import { ceiling, curve, numberText } from "./series.js";

const WIDTH = 600;
const HEIGHT = 150;

/**
 * @param {string} name
 * @param {Record<string, any>} attributes
 */
function shape(name, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    return element;
}

/** A plot of some figures over time, with their newest values. */
export class Plot {
    /**
     * @param {string} title
     * @param {string} kind
     */
    constructor(title, kind) {
        this.title = title;
        this.kind = kind;
        this.svg = shape("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
        this.ends = h("p", { class: "ends" });
        this.legend = h("ul", { class: "legend" });
        this.element = h("section", { class: "panel" }, h("h2", {}, title), this.svg, this.ends, this.legend);
    }

    /**
     * @param {[string, (number | null)[]][]} figures
     * @param {number} from
     * @param {number} interval
     * @param {[string, (number | null)[]][]} maxima The maxima of the same figures, if the figures are means.
     */
    show(figures, from, interval, maxima = []) {
        const top = ceiling([...figures, ...maxima].map(([, values]) => values));
        const lines = (/** @type {[string, (number | null)[]][]} */ all, kind = "") => all.map(([, values], index) =>
            shape("path", { class: `s${index % 8}${index > 7 ? " dashed" : ""}${kind}`, d: curve(values, top, WIDTH, HEIGHT) }));
        this.svg.replaceChildren(
            ...[0.25, 0.5, 0.75].map((part) =>
                shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part })),
            ...lines(maxima, " most"), ...lines(figures));
        const length = figures[0]?.[1].length ?? 0;
        const until = new Date(from + Math.max(0, length - 1) * interval);
        const isLong = length * interval > 86400000;
        const text = (/** @type {Date} */ date) => (isLong ? date.toLocaleDateString(locale()) : date.toLocaleTimeString(locale()));
        this.ends.replaceChildren(
            h("span", {}, text(new Date(from))),
            h("span", {}, t("up to {0}", numberText(top, this.kind))),
            h("span", {}, text(until)));
        const largest = new Map(maxima);
        const newest = figures.map(([name, values]) => {
            const value = numberText(values.at(-1), this.kind);
            const most = largest.get(name);
            return [name, most ? t("{0}, at most {1}", value, numberText(most.at(-1), this.kind)) : value];
        });
        this.svg.setAttribute("aria-label",
            `${this.title}: ${newest.map(([name, value]) => `${t(name.replaceAll("_", " "))} ${value}`).join(", ")}`);
        this.legend.replaceChildren(...newest.map(([name, value], index) =>
            h("li", {}, h("i", { class: `s${index % 8}` }), t(name.replaceAll("_", " ")), h("b", {}, value))));
    }
}
