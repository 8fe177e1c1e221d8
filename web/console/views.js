// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { Refusal, encoded } from "./api.js";
import { confirmed, form, muted, reveal, table, timeText } from "./dom.js";
import { counted, refusalText, t, word } from "./i18n.js";

/**
 * @typedef {{ api: import("./api.js").ConsoleAPI, argument: string, say: (text: string) => void,
 *     attempt: (work: () => Promise<any>) => Promise<boolean>, onLeave: (work: () => void) => void }} Page
 */

/** @param {(Node | string)[]} buttons */
const actions = (buttons) => h("div", { class: "row" }, ...buttons);

/**
 * @param {Page} page
 */
export async function accounts(page) {
    const list = h("div");
    const detail = h("div");
    let last = 0;

    /** @param {any} user */
    async function devices(user) {
        const [{ devices: all }, { tokens }] = await Promise.all([
            page.api.get(`users/${user.uid}/devices`), page.api.get(`users/${user.uid}/tokens`)]);
        /** @param {any} device */
        const tokensText = (device) => {
            const own = tokens.filter((/** @type {any} */ token) => token.device_id === device.device_id);
            return own.length === 0 ? t("none") : counted(own.length, "{0}, of {1}", "{0}, the newest of {1}", timeText(own[0].issued_at_ms));
        };
        const title = h("h2", { tabindex: "-1" }, t("Devices of {0}", user.nick_name));
        detail.replaceChildren(h("section", { class: "panel" }, title,
            all.length === 0 ? muted(t("None.")) : table(t("Devices"), [t("Device"), t("Name"), t("Platform"), t("Last seen"), t("Tokens"), t("Taken up to"), ""],
                all.map((/** @type {any} */ device) => [
                    device.device_id, device.name, device.platform,
                    device.online ? t("online") : timeText(device.last_seen_ms), tokensText(device), String(device.acknowledged_seq),
                    page.api.may("operator") ? button(t("Remove"), () => page.attempt(async () => {
                        if (!await confirmed(t("Remove the device {0} of {1}?", device.device_id, user.nick_name),
                            t("Its login ends, and what waits for it is dropped."), t("Remove"))) return;
                        await page.api.request("DELETE", `users/${user.uid}/devices/${encoded(device.device_id)}`);
                        page.say(t("The device is removed."));
                        await devices(user);
                    }), { class: "danger", "aria-label": t("Remove {0}", device.device_id) }) : "",
                ]))));
        title.focus();
    }

    /** @param {any} user */
    async function groups(user) {
        const { groups: all } = await page.api.get(`users/${user.uid}/groups`);
        const title = h("h2", { tabindex: "-1" }, t("Groups of {0}", user.nick_name));
        detail.replaceChildren(h("section", { class: "panel" }, title,
            all.length === 0 ? muted(t("None.")) : table(t("Groups"), [t("Number"), t("Name"), t("Members"), t("Created")],
                all.map((/** @type {any} */ group) => [
                    String(group.number), h("a", { href: `#groups/${group.number}` }, group.name), String(group.members), timeText(group.created_at_ms),
                ])), all.length === 100 ? muted(t("These are the first 100.")) : null));
        title.focus();
    }

    /** @param {any} user */
    function buttons(user) {
        const name = user.nick_name;
        const shown = [
            button(t("Devices"), () => page.attempt(() => devices(user)), { "aria-label": t("Devices of {0}", name) }),
            button(t("Groups"), () => page.attempt(() => groups(user)), { "aria-label": t("Groups of {0}", name) }),
        ];
        if (page.api.may("operator")) shown.push(button(t("Log out"), () => page.attempt(async () => {
            if (!await confirmed(t("Log {0} out everywhere?", name), t("All its tokens are revoked; each device has to log in again."), t("Log out"))) return;
            await page.api.request("DELETE", `users/${user.uid}/tokens`);
            page.say(t("{0} is logged out everywhere.", name));
        }), { "aria-label": t("Log {0} out", name) }));
        if (!page.api.may("administrator")) return actions(shown);
        shown.push(button(user.disabled ? t("Enable") : t("Disable"), () => page.attempt(async () => {
            if (!user.disabled && !await confirmed(t("Disable {0}?", name), t("It cannot log in until it is enabled; nothing is deleted."), t("Disable"))) return;
            await page.api.request("PATCH", `users/${user.uid}`, { disabled: !user.disabled });
            await find(String(user.uid), true);
        }), { "aria-label": `${user.disabled ? t("Enable") : t("Disable")} ${name}` }));
        shown.push(button(t("Delete"), () => page.attempt(async () => {
            if (!await confirmed(t("Delete {0} for good?", name),
                t("Its devices, inbox, contacts and memberships are deleted. This cannot be undone."), t("Delete"), name)) return;
            await page.api.request("DELETE", `users/${user.uid}`);
            page.say(t("{0} is deleted.", name));
            await more(0);
        }), { class: "danger", "aria-label": t("Delete {0}", name) }));
        return actions(shown);
    }

    /** @param {any[]} users */
    const rows = (users) => table(t("Accounts"), [t("Number"), t("Name"), t("State"), t("Created"), ""], users.map((user) => [
        String(user.uid), user.nick_name, user.disabled ? t("disabled") : user.online ? t("online") : t("offline"),
        timeText(user.created_at_ms), buttons(user),
    ]));

    /** @param {number} after */
    async function more(after) {
        const { users } = await page.api.get(`users?after=${after}&limit=50`);
        last = users.at(-1)?.uid ?? after;
        list.replaceChildren(rows(users), users.length === 50
            ? button(t("Next page"), () => page.attempt(() => more(last))) : muted(t("These are the last ones.")));
        detail.replaceChildren();
    }

    /**
     * Finds accounts by a part of their names.
     *
     * @param {string} text
     * @param {number} after
     */
    async function search(text, after) {
        const { users, next } = await page.api.get(`search/users?text=${encoded(text)}&after=${after}&limit=50`);
        list.replaceChildren(users.length > 0 ? rows(users) : muted(t("Nobody has such a name.")),
            next === null ? muted(t("These are the last ones."))
                : button(t("Next page"), () => page.attempt(() => search(text, next))));
        detail.replaceChildren();
    }

    /**
     * @param {string} text
     * @param {boolean} isNumber
     */
    async function find(text, isNumber = false) {
        if (text === "") return more(0);
        if (!isNumber && !/^\d+$/.test(text)) return search(text, 0);
        list.replaceChildren(rows([await page.api.get(`users/${encoded(text)}`)]));
        detail.replaceChildren();
    }

    await page.attempt(() => find(page.argument));
    return [
        h("div", { class: "panel" }, form([field(t("Part of a name, or number; empty: all"), { name: "text", autocomplete: "off", maxlength: 256 })],
            t("Search"), ({ text }) => page.attempt(() => find(text.trim())))),
        page.api.may("administrator") ? h("div", { class: "panel" }, h("h2", {}, t("New account")), form([
            field(t("Name"), { name: "name", required: true, autocomplete: "off", maxlength: 256 }),
            field(t("Password"), { name: "password", type: "password", required: true, minlength: 6, autocomplete: "new-password" }),
        ], t("Create"), ({ name, password }, made) => page.attempt(async () => {
            const user = await page.api.request("POST", "users", { nick_name: name, password });
            made.reset();
            page.say(t("{0} is created.", user.nick_name));
            await find(String(user.uid), true);
        }))) : null,
        list, detail,
    ];
}

/**
 * @param {Page} page
 */
export async function access(page) {
    const keys = h("div");
    const codes = h("div");
    const isAdministrator = page.api.may("administrator");
    async function load() {
        if (page.api.may("operator")) {
            const { keys: all } = await page.api.get("keys");
            keys.replaceChildren(table(t("Keys of the HTTP API"), [t("Name"), t("Scopes"), t("Created"), t("Last used"), ""], all.map((/** @type {any} */ key) => [
                key.name, key.scopes, timeText(key.created_at_ms), timeText(key.last_used_at_ms),
                isAdministrator ? button(t("Revoke"), () => page.attempt(async () => {
                    if (!await confirmed(t("Revoke the key {0}?", key.name), t("Whoever uses it is refused at once."), t("Revoke"))) return;
                    await page.api.request("DELETE", `keys/${encoded(key.name)}`);
                    await load();
                }), { class: "danger", "aria-label": t("Revoke {0}", key.name) }) : "",
            ])));
        }
        const { invitations } = await page.api.get("invitations");
        codes.replaceChildren(table(t("Invitations"), [t("Name"), t("Used"), t("Created"), t("Ends"), ""], invitations.map((/** @type {any} */ one) => [
            one.name, t("{0} of {1}", one.used, one.uses), timeText(one.created_at_ms), timeText(one.expires_at_ms),
            isAdministrator ? button(t("Revoke"), () => page.attempt(async () => {
                if (!await confirmed(t("Revoke the invitation {0}?", one.name), t("Nobody can register with it any more."), t("Revoke"))) return;
                await page.api.request("DELETE", `invitations/${encoded(one.name)}`);
                await load();
            }), { class: "danger", "aria-label": t("Revoke {0}", one.name) }) : "",
        ])));
    }
    await page.attempt(load);
    return [
        page.api.may("operator") ? h("section", { class: "panel" }, h("h2", {}, t("Keys of the HTTP API")), keys,
            isAdministrator ? form([
                field(t("Name"), { name: "name", required: true, autocomplete: "off", maxlength: 64 }),
                field(t("Scopes, with commas between, or all"), { name: "scopes", required: true, value: "push", autocomplete: "off" }),
            ], t("Create"), (values, made) => page.attempt(async () => {
                const { secret } = await page.api.request("POST", "keys", values);
                made.reset();
                reveal(t("The new key"), t("Copy it now; it is not shown again."), secret);
                await load();
            })) : null) : null,
        h("section", { class: "panel" }, h("h2", {}, t("Invitations")), codes, isAdministrator ? form([
            field(t("Name"), { name: "name", required: true, autocomplete: "off", maxlength: 64 }),
            field(t("Accounts"), { name: "uses", type: "number", min: 1, value: 1, required: true }),
            field(t("Days; 0: forever"), { name: "days", type: "number", min: 0, value: 30, required: true }),
        ], t("Create"), ({ name, uses, days }, made) => page.attempt(async () => {
            const { code } = await page.api.request("POST", "invitations", { name, uses: Number(uses), days: Number(days) });
            made.reset();
            reveal(t("The new invitation"), t("Copy the code now; it is not shown again."), code);
            await load();
        })) : null),
    ];
}

/**
 * A text for the source of a setting's value.
 *
 * @param {string} source
 */
function sourceText(source) {
    const place = /^(.+), line (\d+)$/.exec(source);
    return place ? t("{0}, line {1}", place[1], place[2]) : word(source);
}

/**
 * @param {Page} page
 */
export async function configuration(page) {
    const { settings } = await page.api.get("configuration");
    const list = h("div");
    /** @param {string} text */
    const show = (text) => list.replaceChildren(table(t("Settings"), [t("Setting"), t("Value"), t("Source")],
        settings.filter((/** @type {any} */ one) => `${one.key} ${one.value} ${one.source}`.toLowerCase().includes(text.toLowerCase()))
            .map((/** @type {any} */ one) => [h("code", {}, one.key), one.value, sourceText(one.source)])));
    show(page.argument);
    return [h("div", { class: "panel" }, field(t("Only those with"), {
        type: "search", autocomplete: "off", value: page.argument, oninput: (/** @type {any} */ event) => show(event.target.value),
    })), list];
}

/** @param {{ result: string, code?: number }} entry */
function resultText({ result, code }) {
    const known = word(result);
    return known === result && code ? refusalText({ code, message: result, status: 0 }) : known;
}

/**
 * @param {Page} page
 */
export async function audit(page) {
    const list = h("div");
    /** @type {any[]} */
    let all = [];
    async function more() {
        // After a search, the list begins with the found entry.
        const found = Number(page.argument);
        const last = all.at(-1)?.id ?? (Number.isSafeInteger(found) && found > 0 ? found + 1 : 0);
        const before = last > 0 ? `&before=${last}` : "";
        const { entries } = await page.api.get(`audit?limit=100${before}`);
        all = [...all, ...entries].slice(0, 2000);
        list.replaceChildren(
            table(t("Audit log"), [t("Time"), t("Who"), t("From"), t("Action"), t("Object"), t("Result")], all.map((entry) => [
                timeText(entry.time_ms), entry.address === "local" ? word(entry.who) : entry.who, word(entry.address),
                word(entry.action), entry.target, resultText(entry),
            ])),
            entries.length === 100 ? button(t("Older ones"), () => page.attempt(more)) : muted(t("These are all.")));
    }
    await page.attempt(more);
    return [list];
}

/**
 * @param {Page} page
 */
export async function administrators(page) {
    const { administrators: all } = await page.api.get("administrators");
    return [
        table(t("Administrators"), [t("Name"), t("Role"), t("Second factor"), t("Created"), t("Last login")], all.map((/** @type {any} */ one) => [
            one.name, t(one.role), one.second_factor ? t("yes") : t("no"), timeText(one.created_at_ms), timeText(one.last_login_at_ms),
        ])),
        h("p", {}, t("Administrators are managed on the server's own command line:")),
        h("pre", { tabindex: "0" }, "hermes admin add NAME --role viewer|operator|administrator\nhermes admin totp NAME\nhermes admin remove NAME"),
    ];
}

/** Whether an error is a refusal, which the page shows. */
export const isRefusal = (/** @type {any} */ error) => error instanceof Refusal;
