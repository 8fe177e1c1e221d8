// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { ErrorCode, HermesError } from "../hermes.js";
import { Account } from "./account.js";
import { attempt } from "./dom.js";
import { t } from "./i18n.js";

/**
 * The time after which the page stops waiting for a login, in milliseconds. The page waits longer if the connection to
 * the server is open.
 */
const patience = 8000;

/**
 * Waits for a login. If the server cannot be reached, waits only for a limited time.
 *
 * @param {any} client
 * @param {() => Promise<any>} logIn
 * @param {(state: any) => void} tell Is called with the state of the connection.
 * @param {number} wait In milliseconds.
 */
export function loggedIn(client, logIn, tell, wait = patience) {
    return new Promise((resolve, reject) => {
        let isLate = false;
        const look = () => {
            const { is, error } = client.state;
            tell(client.state);
            if (!isLate || is === "authenticating" || is === "live") return;
            reject(error ?? new HermesError(ErrorCode.timedOut, "no answer in time"));
        };
        const forget = client.on("state", look);
        const timer = setTimeout(() => {
            isLate = true;
            look();
        }, wait);
        const end = () => {
            clearTimeout(timer);
            forget();
        };
        logIn().then(resolve, reject).finally(end);
        look();
    });
}

/**
 * The form for a login and for a registration.
 *
 * @param {string} error The reason why the page shows the form; may be empty.
 * @param {(account: Account) => void} show Shows the account that has logged in.
 */
export function loginForm(error, show) {
    const place = h("p", { class: "error", role: "alert" }, error);
    const progress = h("p", { class: "faint", role: "status" });
    const invitation = field(t("invitation"), { name: "invitation", autocomplete: "off" });
    invitation.hidden = true;
    const buttons = [
        h("button", { class: "main", name: "login" }, t("logIn")),
        h("button", { name: "register" }, t("register")),
    ];
    const form = h(
        "form",
        {},
        field(t("name"), { name: "name", required: true, maxlength: 256, autocomplete: "username", dir: "auto" }),
        field(t("password"), { name: "password", type: "password", required: true, autocomplete: "current-password" }),
        invitation,
        progress,
        place,
        h("p", { class: "actions" }, ...buttons),
    );
    const tell = (/** @type {any} */ { is, delay }) => {
        if (is !== "idle") progress.textContent = t(is, Math.ceil((delay ?? 0) / 1000));
    };
    const enter = async (/** @type {boolean} */ isNew) => {
        const { name, password, invitation: code } = form.elements;
        const nickName = name.value.trim();
        const credential = { nickName, password: password.value };
        const next = await Account.open(nickName);
        const { client } = next;
        const logIn = () => (isNew ? client.register({ ...credential, invitation: code.value }) : client.logIn(credential));
        try {
            await loggedIn(client, logIn, tell);
        } catch (refusal) {
            await next.close();
            invitation.hidden = /** @type {any} */ (refusal).code !== ErrorCode.invitationRequired;
            throw refusal;
        }
        show(next);
    };
    form.onsubmit = async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        // The Enter key can submit the form even while its buttons are disabled.
        if (buttons[0].disabled) return;
        const pressed = /** @type {any} */ (event.submitter);
        const hadFocus = pressed === document.activeElement;
        for (const one of buttons) one.disabled = true;
        await attempt(place, () => enter(pressed?.name === "register"));
        for (const one of buttons) one.disabled = false;
        progress.textContent = "";
        if (hadFocus && pressed.isConnected) pressed.focus();
    };
    return form;
}

/**
 * The list of this browser's accounts. A click starts an account.
 *
 * @param {string[]} names
 * @param {(name: string) => any} start
 */
export function accountList(names, start) {
    const known = names.map((name) => h("li", {}, button(name, () => start(name), { dir: "auto" })));
    return known.length > 0 && h("ul", { class: "list", "aria-label": t("accounts") }, ...known);
}
