// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { encoded } from "./api.js";
import { choice, form, muted, table, timeText } from "./dom.js";
import { counted, t } from "./i18n.js";

/** @typedef {import("./views.js").Page} Page */

const AGAIN = 3000;
const LINES = 500;

/** @param {number} microseconds */
export const afterText = (microseconds) => `+${(microseconds / 1000).toFixed(3)} ms`;

/**
 * The steps of a message through the server.
 *
 * @param {Page} page
 */
export async function trace(page) {
    const list = h("div");

    /** @param {any} step */
    const place = (step) => [step.user === undefined ? "" : `#${step.user}`, step.device ?? ""].filter(Boolean).join(" ");

    /** @param {any} message */
    const section = (message) => h("section", { class: "panel" },
        h("h2", {}, h("code", {}, message.id)),
        h("p", { class: "muted" }, [
            message.sender === undefined ? t("Push of a back end") : t("From account {0}", message.sender),
            message.conversation ?? "", message.client_id === undefined ? "" : t("client id {0}", message.client_id),
            counted(message.recipients, "{0} inbox", "{0} inboxes"),
        ].filter(Boolean).join(" · ")),
        table(t("Steps"), [t("After"), t("Step"), t("Account and device"), t("Time"), t("More")],
            message.steps.map((/** @type {any} */ step) => [
                afterText(step.after_us), t(step.step), place(step), timeText(step.time_ms), step.detail,
            ])));

    /** @param {string} id */
    async function find(id) {
        const { messages } = await page.api.get(`trace?id=${encoded(id)}`);
        list.replaceChildren(...(messages.length > 0 ? messages.map(section)
            : [muted(t("Nothing is known of it. The server remembers its last 10,000 messages and pushes."))]));
        page.say(t("{0} found.", messages.length));
    }

    if (page.argument) await page.attempt(() => find(page.argument));
    return [
        h("div", { class: "panel" },
            form([field(t("Id of a message, or client id of its sender"), {
                name: "id", required: true, autocomplete: "off", maxlength: 64, value: page.argument,
            })], t("Search"), ({ id }) => page.attempt(() => find(id.trim()))),
            muted(t("For a message with many recipients, 16 inboxes are remembered."))),
        list,
    ];
}

/**
 * The last lines of the log.
 *
 * @param {Page} page
 */
export async function log(page) {
    const level = choice("level", ["trace", "debug", "info", "notice", "warning", "error", "critical"], "trace");
    const label = h("input", { name: "label", autocomplete: "off", maxlength: 64 });
    const text = h("input", { name: "text", type: "search", autocomplete: "off", maxlength: 256, value: page.argument });
    const follows = h("input", { type: "checkbox", name: "follows", checked: true });
    const list = h("div");
    /** @type {any[]} */
    let lines = [];
    let last = 0;

    const show = () => list.replaceChildren(lines.length === 0 ? muted(t("There are no such lines."))
        : table(t("Log"), [t("Time"), t("Level"), t("Label"), t("Line")], [...lines].reverse().map((line) => [
            timeText(line.time_ms), line.level, line.label,
            h("span", {}, line.message, " ", h("code", {}, line.fields)),
        ])));

    /**
     * @param {boolean} isNew
     * @returns {Promise<void>}
     */
    async function load(isNew) {
        const wanted = [["level", level.value], ["label", label.value.trim()], ["text", text.value]]
            .filter(([, value]) => value !== "").map(([name, value]) => `&${name}=${encoded(value)}`).join("");
        const answer = await page.api.get(`log?after=${isNew ? 0 : last}&limit=${LINES}${wanted}`);
        // The server was restarted, so the numbers of its lines begin again.
        if (!isNew && answer.last < last) return load(true);
        last = answer.last;
        lines = [...(isNew ? [] : lines), ...answer.lines].slice(-LINES);
        if (isNew || answer.lines.length > 0) show();
    }

    const timer = setInterval(() => {
        if (document.hidden || !follows.checked) return;
        load(false).catch(() => page.say(t("The log cannot be read; the page tries again.")));
    }, AGAIN);
    page.onLeave(() => clearInterval(timer));
    const again = () => page.attempt(() => load(true));
    for (const element of [level, label, text]) element.addEventListener("change", again);
    await page.attempt(() => load(true));
    return [
        h("div", { class: "panel row" },
            h("label", { class: "field" }, h("span", {}, t("At least")), level),
            h("label", { class: "field" }, h("span", {}, t("Label")), label),
            h("label", { class: "field" }, h("span", {}, t("With the text")), text),
            h("label", { class: "check" }, follows, t("follow")),
            button(t("Read again"), again)),
        muted(t("The server keeps its last 2,000 lines in memory. Its level (log.level) decides which ones there are.")), list,
    ];
}
