// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { encoded } from "./api.js";
import { confirmed, form, muted, pages, timeText } from "./dom.js";
import { t } from "./i18n.js";
import { numberText } from "./series.js";

/** @typedef {import("./views.js").Page} Page */

/**
 * The connected MQTT clients.
 *
 * @param {Page} page
 */
export async function mqttClients(page) {
    let text = page.argument;
    const list = pages(page, async (after) => {
        const { clients } = await page.api.get(`clients?after=${after}&limit=50${text ? `&text=${encoded(text)}` : ""}`);
        return {
            rows: clients.map((/** @type {any} */ one) => [
                one.client_id, one.owner || t("anonymous"), `${one.version}, ${one.listener}`, one.address,
                timeText(one.since_ms), String(one.subscriptions), String(one.queued), String(one.inflight),
                numberText(one.bytes, "bytes"), one.kept ? t("yes") : t("no"),
                button(t("Disconnect"), () => page.attempt(async () => {
                    if (!await confirmed(t("Disconnect {0}?", one.client_id),
                        t("The client may connect again. Its session is kept, if it wants that."), t("Disconnect"))) return;
                    await page.api.request("DELETE", `clients/${one.number}`);
                    page.say(t("{0} is disconnected.", one.client_id));
                    await list.first();
                }), { class: "danger", "aria-label": t("Disconnect {0}", one.client_id) }),
            ]),
            next: clients.length === 50 ? clients.at(-1).number : null,
        };
    }, t("MQTT clients"), [t("Client id"), t("Owner"), t("Protocol"), t("Address"), t("Since"), t("Filters"), t("Waiting"),
        t("In flight"), t("Memory"), t("Kept session"), ""]);
    await page.attempt(list.first);
    return [
        searchPanel(page, list, (wanted) => { text = wanted; }),
        list.element,
    ];
}

/**
 * The field that filters a list.
 *
 * @param {Page} page
 * @param {{ first: () => Promise<void> }} list
 * @param {(text: string) => void} want Is called with the text before the list is read again.
 */
function searchPanel(page, list, want) {
    return h("div", { class: "panel" }, form([field(t("Part of a client id or owner; empty: all"), {
        name: "text", autocomplete: "off", maxlength: 256, value: page.argument,
    })], t("Search"), (values) => page.attempt(() => {
        want(values.text.trim());
        return list.first();
    })));
}

/**
 * The stored MQTT sessions.
 *
 * @param {Page} page
 */
export async function mqttSessions(page) {
    let text = page.argument;
    const list = pages(page, async (after) => {
        const { sessions } = await page.api.get(`sessions?after=${after}&limit=50${text ? `&text=${encoded(text)}` : ""}`);
        return {
            rows: sessions.map((/** @type {any} */ one) => [
                one.client_id, one.owner || t("anonymous"), one.online ? t("online") : t("away"),
                String(one.queued), numberText(one.queued_bytes, "bytes"),
                one.online ? "" : timeText(one.expires_at_ms),
            ]),
            next: sessions.length === 50 ? sessions.at(-1).number : null,
        };
    }, t("MQTT sessions"), [t("Client id"), t("Owner"), t("State"), t("Waiting"), t("Bytes"), t("Ends")]);
    await page.attempt(list.first);
    return [
        searchPanel(page, list, (wanted) => { text = wanted; }),
        list.element, muted(t("Waiting are the messages with QoS 1 and 2 in the store.")),
    ];
}
