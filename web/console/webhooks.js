// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { encoded } from "./api.js";
import { confirmed, muted, table, timeText } from "./dom.js";
import { t } from "./i18n.js";

/** The number of attempts that the server remembers, and the number that are shown at once. */
const REMEMBERED = 500;
const SHOWN = 200;

/**
 * The last attempts to post webhooks.
 *
 * @param {import("./views.js").Page} page
 */
export async function webhooks(page) {
    const list = h("div");
    let wanted = page.argument;
    async function load() {
        const { enabled, attempts: all } = await page.api.get(`webhooks?limit=${wanted ? REMEMBERED : SHOWN}`);
        const attempts = all.filter((/** @type {any} */ one) =>
            [one.event, one.type, one.user, one.failure].join(" ").toLowerCase().includes(wanted.toLowerCase())).slice(0, SHOWN);
        if (!enabled) return list.replaceChildren(muted(t("There are no webhooks: webhooks.url is not set.")));
        list.replaceChildren(attempts.length === 0 ? muted(all.length === 0 ? t("Nothing was posted since the start.") : t("There are none."))
            : table(t("Attempts"), [t("Time"), t("Type"), t("Account"), t("Event"), t("Attempt"), t("Result"), t("Duration"), ""],
                attempts.map((/** @type {any} */ one) => [
                    timeText(one.time_ms), one.type ?? "", one.user === null ? "" : String(one.user), h("code", {}, one.event),
                    String(one.attempt), one.failure ?? t("taken ({0})", one.status), `${one.duration_ms} ms`,
                    button(t("Send again"), () => page.attempt(async () => {
                        if (!await confirmed(t("Send the event {0} again?", one.event),
                            t("The receiver gets it once more, under the same id."), t("Send again"))) return;
                        await page.api.request("POST", `webhooks/${encoded(one.event)}/again`);
                        page.say(t("The event is queued."));
                        await load();
                    }), { "aria-label": t("Send {0} again", one.event) }),
                ])));
    }
    await page.attempt(load);
    return [h("div", { class: "panel row" }, field(t("Only those with"), {
        type: "search", autocomplete: "off", maxlength: 64, value: wanted, onchange: (/** @type {any} */ event) => {
            wanted = event.target.value.trim();
            page.attempt(load);
        },
    }), button(t("Read again"), () => page.attempt(load))), list];
}
