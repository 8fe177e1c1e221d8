// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Refusal, encoded } from "./api.js";
import { button, confirmed, field, form, h, reveal, table, timeText } from "./dom.js";
import { Plot } from "./plot.js";
import { Series, plots } from "./series.js";

/**
 * @typedef {{ api: import("./api.js").ConsoleAPI, say: (text: string) => void,
 *     attempt: (work: () => Promise<any>) => Promise<boolean>, onLeave: (work: () => void) => void }} Page
 */

/** @param {(Node | string)[]} buttons */
const actions = (buttons) => h("div", { class: "row" }, ...buttons);

const AGAIN = 10000;

/**
 * The figures over time, and what the server is.
 *
 * @param {Page} page
 */
export async function overview(page) {
    const facts = h("dl");
    const grid = h("div", { class: "plots" });
    const span = h("select", { onchange: () => load() },
        h("option", { value: "hour" }, "the last hour"), h("option", { value: "month" }, "30 days"));
    const made = new Map(plots.map(([name, title, kind]) => [name, new Plot(title, kind)]));
    let series = new Series();

    function show() {
        for (const [name, plot] of made) {
            const figures = series.of(name);
            const isKnown = figures.some(([, values]) => values.some((value) => value !== null));
            if (!isKnown) plot.element.remove();
            else plot.show(figures, series.from, series.interval);
        }
        // In the order of the list, which those that were unknown until now keep, too.
        const shown = [...made].filter(([name]) =>
            series.of(name).some(([, values]) => values.some((value) => value !== null)));
        shown.forEach(([, plot], index) => {
            if (grid.children[index] !== plot.element) grid.insertBefore(plot.element, grid.children[index] ?? null);
        });
    }

    async function load() {
        series = new Series(span.value === "month" ? 1440 : 360);
        await page.attempt(async () => {
            series.take(await page.api.get(`figures?span=${span.value}`));
            show();
        });
    }

    async function refresh() {
        const about = await page.api.get("overview");
        facts.replaceChildren(
            h("dt", {}, "Version"), h("dd", {}, about.version),
            h("dt", {}, "Time"), h("dd", {}, timeText(about.time_ms)),
            h("dt", {}, "Devices online"), h("dd", {}, String(about.online)),
            h("dt", {}, "Listeners"),
            h("dd", {}, ...about.listeners.map((/** @type {any} */ one) =>
                h("div", {}, `${one.name} ${one.host}:${one.port}`))));
        if (span.value !== "hour" || series.length === 0) return;
        series.take(await page.api.get(`figures?span=hour&after_ms=${series.last}`));
        show();
    }

    const timer = setInterval(() => {
        if (!document.hidden) refresh().catch(() => page.say("The figures cannot be read; the page tries again."));
    }, AGAIN);
    page.onLeave(() => clearInterval(timer));
    await load();
    await page.attempt(refresh);
    return [
        h("div", { class: "panel" }, h("h2", {}, "This server"), facts),
        h("label", { class: "field" }, h("span", {}, "Figures of"), span), grid,
    ];
}

/**
 * @param {Page} page
 */
export async function accounts(page) {
    const list = h("div");
    const detail = h("div");
    let last = 0;

    /** @param {any} user */
    async function devices(user) {
        const { devices: all } = await page.api.get(`users/${user.uid}/devices`);
        const title = h("h2", { tabindex: "-1" }, `Devices of ${user.nick_name}`);
        detail.replaceChildren(h("section", { class: "panel" }, title,
            all.length === 0 ? h("p", { class: "muted" }, "None.") : table("Devices", ["Device", "Name", "Platform", "Last seen", "Taken up to", ""],
                all.map((/** @type {any} */ device) => [
                    device.device_id, device.name, device.platform,
                    device.online ? "online" : timeText(device.last_seen_ms), String(device.acknowledged_seq),
                    page.api.may("operator") ? button("Remove", () => page.attempt(async () => {
                        if (!await confirmed(`Remove the device ${device.device_id} of ${user.nick_name}?`,
                            "Its login ends, and what waits for it is dropped.", "Remove")) return;
                        await page.api.request("DELETE", `users/${user.uid}/devices/${encoded(device.device_id)}`);
                        page.say("The device is removed.");
                        await devices(user);
                    }), { class: "danger", "aria-label": `Remove ${device.device_id}` }) : "",
                ]))));
        title.focus();
    }

    /** @param {any} user */
    async function groups(user) {
        const { groups: all } = await page.api.get(`users/${user.uid}/groups`);
        const title = h("h2", { tabindex: "-1" }, `Groups of ${user.nick_name}`);
        detail.replaceChildren(h("section", { class: "panel" }, title,
            all.length === 0 ? h("p", { class: "muted" }, "None.") : table("Groups", ["Number", "Name", "Members", "Created"],
                all.map((/** @type {any} */ group) => [
                    String(group.number), group.name, String(group.members), timeText(group.created_at_ms),
                ])), all.length === 100 ? h("p", { class: "muted" }, "These are the first 100.") : null));
        title.focus();
    }

    /** @param {any} user */
    function buttons(user) {
        const name = user.nick_name;
        const shown = [
            button("Devices", () => page.attempt(() => devices(user)), { "aria-label": `Devices of ${name}` }),
            button("Groups", () => page.attempt(() => groups(user)), { "aria-label": `Groups of ${name}` }),
        ];
        if (page.api.may("operator")) shown.push(button("Log out", () => page.attempt(async () => {
            if (!await confirmed(`Log ${name} out everywhere?`, "All its tokens are revoked; each device has to log in again.", "Log out")) return;
            await page.api.request("DELETE", `users/${user.uid}/tokens`);
            page.say(`${name} is logged out everywhere.`);
        }), { "aria-label": `Log ${name} out` }));
        if (!page.api.may("administrator")) return actions(shown);
        shown.push(button(user.disabled ? "Enable" : "Disable", () => page.attempt(async () => {
            if (!user.disabled && !await confirmed(`Disable ${name}?`, "It cannot log in until it is enabled; nothing is deleted.", "Disable")) return;
            await page.api.request("PATCH", `users/${user.uid}`, { disabled: !user.disabled });
            await find(String(user.uid), true);
        }), { "aria-label": `${user.disabled ? "Enable" : "Disable"} ${name}` }));
        shown.push(button("Delete", () => page.attempt(async () => {
            if (!await confirmed(`Delete ${name} for good?`,
                "Its devices, inbox, contacts and memberships are deleted. This cannot be undone.", "Delete", name)) return;
            await page.api.request("DELETE", `users/${user.uid}`);
            page.say(`${name} is deleted.`);
            await more(0);
        }), { class: "danger", "aria-label": `Delete ${name}` }));
        return actions(shown);
    }

    /** @param {any[]} users */
    const rows = (users) => table("Accounts", ["Number", "Name", "State", "Created", ""], users.map((user) => [
        String(user.uid), user.nick_name, user.disabled ? "disabled" : user.online ? "online" : "offline",
        timeText(user.created_at_ms), buttons(user),
    ]));

    /** @param {number} after */
    async function more(after) {
        const { users } = await page.api.get(`users?after=${after}&limit=50`);
        last = users.at(-1)?.uid ?? after;
        list.replaceChildren(rows(users), users.length === 50
            ? button("Next page", () => page.attempt(() => more(last))) : h("p", { class: "muted" }, "These are the last ones."));
        detail.replaceChildren();
    }

    /**
     * @param {string} text
     * @param {boolean} isNumber
     */
    async function find(text, isNumber = false) {
        if (text === "") return more(0);
        const selector = isNumber || /^\d+$/.test(text) ? text : text.startsWith("@") ? `@${text}` : text;
        list.replaceChildren(rows([await page.api.get(`users/${encoded(selector)}`)]));
        detail.replaceChildren();
    }

    await page.attempt(() => more(0));
    return [
        h("div", { class: "panel" }, form([field("Name or number; empty: all", { name: "text", autocomplete: "off", maxlength: 256 })],
            "Search", ({ text }) => page.attempt(() => find(text.trim())))),
        page.api.may("administrator") ? h("div", { class: "panel" }, h("h2", {}, "New account"), form([
            field("Name", { name: "name", required: true, autocomplete: "off", maxlength: 64 }),
            field("Password", { name: "password", type: "password", required: true, minlength: 6, autocomplete: "new-password" }),
        ], "Create", ({ name, password }, made) => page.attempt(async () => {
            const user = await page.api.request("POST", "users", { nick_name: name, password });
            made.reset();
            page.say(`${user.nick_name} is created.`);
            await find(String(user.uid), true);
        }))) : null,
        list, detail,
    ];
}

/**
 * @param {Page} page
 */
export async function rooms(page) {
    const list = h("div");
    async function load() {
        const { rooms: all } = await page.api.get("rooms");
        list.replaceChildren(all.length === 0 ? h("p", { class: "muted" }, "Nobody is in a room.")
            : table("Rooms", ["Room", "Members"], all.map((/** @type {any} */ room) => [room.name, String(room.members)])));
    }
    await page.attempt(load);
    const room = () => field("Room", { name: "room", required: true, autocomplete: "off", maxlength: 64 });
    return [
        h("div", { class: "panel" }, list, h("p", {}, button("Read again", () => page.attempt(load)))),
        page.api.may("operator") ? h("div", { class: "panel" }, h("h2", {}, "Say something in a room"), form([
            room(), field("Text", { name: "text", required: true, autocomplete: "off", maxlength: 1024 }),
            field("As; empty: a notice of the server", { name: "name", autocomplete: "off", maxlength: 64 }),
        ], "Say", ({ room: name, text, name: as }, made) => page.attempt(async () => {
            const { members } = await page.api.request("POST", `rooms/${encoded(name)}/messages`, as ? { text, name: as } : { text });
            made.elements.text.value = "";
            page.say(`Said to ${members} in ${name}.`);
        }))) : null,
        page.api.may("operator") ? h("div", { class: "panel" }, h("h2", {}, "Remove somebody from a room"), form([
            room(), field("Account", { name: "user", required: true, autocomplete: "off", maxlength: 256 }),
        ], "Remove", ({ room: name, user }) => page.attempt(async () => {
            if (!await confirmed(`Remove ${user} from ${name}?`, "The account may come back.", "Remove")) return;
            await page.api.request("DELETE", `rooms/${encoded(name)}/members/${encoded(user)}`);
            page.say(`${user} is removed from ${name}.`);
            await load();
        }))) : null,
    ];
}

/**
 * @param {Page} page
 */
export async function topics(page) {
    const found = h("div");
    const topic = () => field("Topic", { name: "topic", required: true, autocomplete: "off" });
    return [
        h("div", { class: "panel" }, h("h2", {}, "What is retained"), form([topic()], "Look", ({ topic: name }) => page.attempt(async () => {
            found.replaceChildren();
            const one = await page.api.get(`topics/retained?topic=${encoded(name)}`);
            found.replaceChildren(h("p", { class: "muted" }, `Published ${timeText(one.published_at_ms)} with QoS ${one.qos}`),
                h("pre", { tabindex: "0" }, one.text ?? `base64: ${one.base64}`),
                button("Remove", () => page.attempt(async () => {
                    if (!await confirmed(`Remove what is retained on ${one.topic}?`, "Later subscribers get nothing.", "Remove")) return;
                    await page.api.request("DELETE", `topics/retained?topic=${encoded(one.topic)}`);
                    found.replaceChildren();
                    page.say("Removed.");
                }), { class: "danger" }));
        })), found),
        h("div", { class: "panel" }, h("h2", {}, "Publish"), form([
            topic(), field("Text", { name: "text", autocomplete: "off" }),
            h("label", { class: "check" }, h("input", { type: "checkbox", name: "retain" }), "retain it"),
        ], "Publish", ({ topic: name, text, retain }) => page.attempt(async () => {
            await page.api.request("POST", "topics/publish", { topic: name, payload: { text }, retain: retain === "1" });
            page.say(`Published to ${name}.`);
        }))),
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
            keys.replaceChildren(table("Keys of the HTTP API", ["Name", "Scopes", "Created", "Last used", ""], all.map((/** @type {any} */ key) => [
                key.name, key.scopes, timeText(key.created_at_ms), timeText(key.last_used_at_ms),
                isAdministrator ? button("Revoke", () => page.attempt(async () => {
                    if (!await confirmed(`Revoke the key ${key.name}?`, "Whoever uses it is refused at once.", "Revoke")) return;
                    await page.api.request("DELETE", `keys/${encoded(key.name)}`);
                    await load();
                }), { class: "danger", "aria-label": `Revoke ${key.name}` }) : "",
            ])));
        }
        const { invitations } = await page.api.get("invitations");
        codes.replaceChildren(table("Invitations", ["Name", "Used", "Created", "Ends", ""], invitations.map((/** @type {any} */ one) => [
            one.name, `${one.used} of ${one.uses}`, timeText(one.created_at_ms), timeText(one.expires_at_ms),
            isAdministrator ? button("Revoke", () => page.attempt(async () => {
                if (!await confirmed(`Revoke the invitation ${one.name}?`, "Nobody can register with it any more.", "Revoke")) return;
                await page.api.request("DELETE", `invitations/${encoded(one.name)}`);
                await load();
            }), { class: "danger", "aria-label": `Revoke ${one.name}` }) : "",
        ])));
    }
    await page.attempt(load);
    return [
        page.api.may("operator") ? h("section", { class: "panel" }, h("h2", {}, "Keys of the HTTP API"), keys,
            isAdministrator ? form([
                field("Name", { name: "name", required: true, autocomplete: "off", maxlength: 64 }),
                field("Scopes, with commas between, or all", { name: "scopes", required: true, value: "push", autocomplete: "off" }),
            ], "Create", (values, made) => page.attempt(async () => {
                const { secret } = await page.api.request("POST", "keys", values);
                made.reset();
                reveal("The new key", "Copy it now; it is not shown again.", secret);
                await load();
            })) : null) : null,
        h("section", { class: "panel" }, h("h2", {}, "Invitations"), codes, isAdministrator ? form([
            field("Name", { name: "name", required: true, autocomplete: "off", maxlength: 64 }),
            field("Accounts", { name: "uses", type: "number", min: 1, value: 1, required: true }),
            field("Days; 0: forever", { name: "days", type: "number", min: 0, value: 30, required: true }),
        ], "Create", ({ name, uses, days }, made) => page.attempt(async () => {
            const { code } = await page.api.request("POST", "invitations", { name, uses: Number(uses), days: Number(days) });
            made.reset();
            reveal("The new invitation", "Copy the code now; it is not shown again.", code);
            await load();
        })) : null),
    ];
}

/**
 * @param {Page} page
 */
export async function clients(page) {
    const { window_seconds: seconds, versions } = await page.api.get("stats/delivery");
    return [
        h("p", {}, `What apps report about the last ${Math.round(seconds / 60)} minutes.`),
        table("Deliveries by version of the app", ["Version", "Reports", "In 1 s", "In 10 s", "Later", "Never", "Repeated", "Gaps", "Repaired"],
            versions.map((/** @type {any} */ one) => [one.app_version || "unknown", ...[one.reports, one.within_1s, one.within_10s,
                one.later, one.never, one.duplicates, one.gaps, one.repaired].map(String)])),
    ];
}

/**
 * @param {Page} page
 */
export async function configuration(page) {
    const { settings } = await page.api.get("configuration");
    const list = h("div");
    /** @param {string} text */
    const show = (text) => list.replaceChildren(table("Settings", ["Setting", "Value", "Source"],
        settings.filter((/** @type {any} */ one) => `${one.key} ${one.value} ${one.source}`.toLowerCase().includes(text.toLowerCase()))
            .map((/** @type {any} */ one) => [h("code", {}, one.key), one.value, one.source])));
    show("");
    return [h("div", { class: "panel" }, field("Only those with", {
        type: "search", autocomplete: "off", oninput: (/** @type {any} */ event) => show(event.target.value),
    })), list];
}

/**
 * @param {Page} page
 */
export async function audit(page) {
    const list = h("div");
    /** @type {any[]} */
    let all = [];
    async function more() {
        const before = all.length > 0 ? `&before=${all.at(-1).id}` : "";
        const { entries } = await page.api.get(`audit?limit=100${before}`);
        all = [...all, ...entries].slice(0, 2000);
        list.replaceChildren(
            table("Audit log", ["Time", "Who", "From", "Action", "Object", "Result"], all.map((entry) => [
                timeText(entry.time_ms), entry.who, entry.address, entry.action, entry.target, entry.result,
            ])),
            entries.length === 100 ? button("Older ones", () => page.attempt(more)) : h("p", { class: "muted" }, "These are all."));
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
        table("Administrators", ["Name", "Role", "Second factor", "Created", "Last login"], all.map((/** @type {any} */ one) => [
            one.name, one.role, one.second_factor ? "yes" : "no", timeText(one.created_at_ms), timeText(one.last_login_at_ms),
        ])),
        h("p", {}, "Administrators are managed on the server's own command line:"),
        h("pre", { tabindex: "0" }, "hermes admin add NAME --role viewer|operator|administrator\nhermes admin totp NAME\nhermes admin remove NAME"),
    ];
}

/** Whether an error is one that the page shows. */
export const isRefusal = (/** @type {any} */ error) => error instanceof Refusal;
