// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { encoded } from "./api.js";
import { confirmed, form, pages, timeText } from "./dom.js";
import { t } from "./i18n.js";
import { cut, forms, payloadText, visible } from "./payload.js";
import { eventText } from "./rooms.js";
import { numberText } from "./series.js";
import { stage, watch } from "./stream.js";

/** @typedef {import("./views.js").Page} Page */

/** The number of characters of an opened publication that are shown. */
const WHOLE = 20000;

/** @param {string} label */
const formChoice = (label) => {
    const select = h("select", { name: "form" }, ...forms.map((one) => h("option", { value: one }, t(one))));
    return { select, element: h("label", { class: "field" }, h("span", {}, label), select) };
};

/** @param {string} name */
const filterField = (name) => field(t("Topic filter, with + and #"), {
    name, required: true, autocomplete: "off", maxlength: 1024, placeholder: "home/#",
});

/**
 * The panel that shows publications as they arrive.
 *
 * @param {Page} page
 */
function watching(page) {
    const place = stage(page);
    const shown = formChoice(t("Payloads as"));
    /** @param {any} event */
    const line = (event) =>
        `${visible(cut(event.topic, 200))}  ${event.what ? visible(cut(eventText(event), 500)) : payloadText(event, shown.select.value)}`;
    /** @param {string} filter */
    function begin(filter) {
        place.stop();
        place.begin(watch(page.api, `topics/watch?filter=${encoded(filter)}`, t("What is published to {0}", filter),
            t("You are watching {0}.", filter), line), h("h2", { tabindex: "-1" }, t("Topics {0}", filter)),
        [shown.element, button(t("Stop watching"), place.stop)]);
    }
    return [h("div", { class: "panel" }, h("h2", {}, t("Watch topics")), form([filterField("filter")], t("Watch"),
        async ({ filter }) => begin(filter)), h("p", { class: "muted" }, t("A watcher is no subscriber; nothing of it is kept."))),
    place.element];
}

/**
 * The panel of the retained publications.
 *
 * @param {Page} page
 */
function retained(page) {
    const detail = h("div");
    let filter = "#";

    /** @param {string} topic */
    async function open(topic) {
        detail.replaceChildren();
        const one = await page.api.get(`topics/retained?topic=${encoded(topic)}`);
        const shown = formChoice(t("Payload as"));
        const body = h("pre", { tabindex: "0", "aria-label": t("Payload") });
        const show = () => body.replaceChildren(payloadText(one, shown.select.value, WHOLE));
        shown.select.addEventListener("change", show);
        show();
        const title = h("h2", { tabindex: "-1" }, visible(topic));
        detail.replaceChildren(h("section", { class: "panel" }, title,
            h("p", { class: "muted" }, t("Published {0} with QoS {1}", timeText(one.published_at_ms), one.qos)),
            shown.element, body, removal(topic)));
        title.focus();
    }

    /** @param {string} topic */
    const removal = (topic) => button(t("Remove"), () => page.attempt(async () => {
        if (!await confirmed(t("Remove what is retained on {0}?", topic), t("Later subscribers get nothing."), t("Remove"))) return;
        await page.api.request("DELETE", `topics/retained?topic=${encoded(topic)}`);
        detail.replaceChildren();
        page.say(t("Removed."));
        await list.first();
    }), { class: "danger", "aria-label": t("Remove what is retained on {0}", topic) });

    const list = pages(page, async (after) => {
        const { retained: found, next } = await page.api.get(`topics/retained/list?filter=${encoded(filter)}&after=${after}&limit=50`);
        return {
            rows: found.map((/** @type {any} */ one) => [
                visible(one.topic), payloadText(one, "text", 120), numberText(one.bytes, "bytes"), String(one.qos),
                timeText(one.published_at_ms), h("div", { class: "row" },
                    button(t("Show"), () => page.attempt(() => open(one.topic)), { "aria-label": t("Show {0}", one.topic) }),
                    removal(one.topic)),
            ]),
            next,
        };
    }, t("What is retained"), [t("Topic"), t("Payload"), t("Bytes"), "QoS", t("Published"), ""]);

    const panel = h("div", { class: "panel" }, h("h2", {}, t("What is retained")),
        form([filterField("kept")], t("List"), ({ kept }) => page.attempt(() => {
            filter = kept;
            detail.replaceChildren();
            return list.first();
        })),
        form([field(t("Topic"), { name: "topic", required: true, autocomplete: "off", maxlength: 1024 })], t("Look"),
            ({ topic }) => page.attempt(() => open(topic))), list.element);
    return { parts: [panel, detail], open, first: list.first };
}

/**
 * Asks before a retained publication is replaced by another one.
 *
 * @param {Page} page
 * @param {string} topic
 * @param {string} text
 */
async function mayReplace(page, topic, text) {
    // A topic is also a filter. A request for one topic would fail if nothing is retained, and the browser would log
    // the error.
    const { retained: found } = await page.api.get(`topics/retained/list?filter=${encoded(topic)}&limit=1`);
    if (!found.some((/** @type {any} */ one) => one.topic === topic)) return true;
    return confirmed(text === "" ? t("Remove what is retained on {0}?", topic) : t("Replace what is retained on {0}?", topic),
        text === "" ? t("Later subscribers get nothing.") : t("Later subscribers get this instead. The old one is gone."),
        text === "" ? t("Remove") : t("Replace"));
}

/**
 * @param {Page} page
 */
export async function topics(page) {
    const kept = retained(page);
    await page.attempt(page.argument ? () => kept.open(page.argument) : kept.first);
    return [
        ...watching(page), ...kept.parts,
        h("div", { class: "panel" }, h("h2", {}, t("Publish")), form([
            field(t("Topic"), { name: "topic", required: true, autocomplete: "off", maxlength: 1024 }),
            field(t("Text"), { name: "text", autocomplete: "off" }),
            h("label", { class: "check" }, h("input", { type: "checkbox", name: "retain" }), t("retain it")),
        ], t("Publish"), ({ topic, text, retain }) => page.attempt(async () => {
            if (retain === "1" && !await mayReplace(page, topic, text)) return;
            await page.api.request("POST", "topics/publish", { topic, payload: { text }, retain: retain === "1" });
            page.say(t("Published to {0}.", topic));
            if (retain === "1") await kept.first();
        }))),
    ];
}
