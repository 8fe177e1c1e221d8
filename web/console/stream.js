// Hermes
// SPDX-License-Identifier: Apache-2.0

import { h } from "../dom.js";
import { counted, locale, refusalText, t } from "./i18n.js";

/** The number of events that are shown. */
const SHOWN = 200;

/**
 * Shows a stream of events, one line for each event.
 *
 * @param {import("./api.js").ConsoleAPI} api
 * @param {string} path The path of the stream after `api/`.
 * @param {string} label For screen readers.
 * @param {string} greeting The first line after the stream is open.
 * @param {(event: any) => string} text The text for a publication.
 */
export function watch(api, path, label, greeting, text) {
    const lines = h("ol", { class: "lines", tabindex: "0", "aria-label": label });
    const source = new EventSource(`api/${path}`);
    /** @type {string[]} */
    let waiting = [];
    let frame = 0;
    function show() {
        frame = 0;
        const isAtEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 4;
        lines.append(...waiting.splice(0).slice(-SHOWN).map((line) => h("li", {}, line)));
        while (lines.childElementCount > SHOWN) lines.firstElementChild?.remove();
        if (isAtEnd) lines.scrollTop = lines.scrollHeight;
    }
    /** @param {string} line */
    function add(line) {
        waiting.push(`${new Date().toLocaleTimeString(locale())}  ${line}`);
        if (waiting.length > SHOWN) waiting.shift();
        if (!frame) frame = requestAnimationFrame(show);
    }
    source.addEventListener("ready", () => add(greeting));
    source.addEventListener("publication", (event) => add(text(JSON.parse(event.data))));
    source.addEventListener("dropped", (event) => add(
        counted(JSON.parse(event.data).count, "{0} message is left out", "{0} messages are left out")));
    source.onerror = async () => {
        if (source.readyState !== EventSource.CLOSED) return;
        const refusal = await api.refusalOf(path);
        add(refusal ? refusalText(refusal) : t("The server has ended this."));
    };
    return { element: lines, close: () => source.close() };
}

/**
 * The place for one stream. The stream ends when the user leaves the view.
 *
 * @param {{ onLeave: (work: () => void) => void }} page
 */
export function stage(page) {
    const element = h("div");
    /** @type {{ close: () => void } | null} */
    let watched = null;
    const stop = () => {
        watched?.close();
        watched = null;
        element.replaceChildren();
    };
    page.onLeave(stop);
    return {
        element,
        stop,
        /**
         * @param {{ element: any, close: () => void }} made
         * @param {any} title
         * @param {any[]} tools
         */
        begin(made, title, tools) {
            watched = made;
            element.replaceChildren(h("section", { class: "panel" }, title, made.element, h("div", { class: "row" }, ...tools)));
            title.focus();
        },
    };
}
