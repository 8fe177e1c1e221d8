// Hermes
// SPDX-License-Identifier: Apache-2.0

/** A request that was refused. */
export class Refusal extends Error {
    /**
     * @param {number} status
     * @param {string} message
     */
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

/** The requests of the console. */
export class ConsoleAPI {
    /** @type {{ name: string, role: string, csrf_token: string } | null} */
    session = null;
    /** Called when the session has ended. */
    onEnd = () => {};

    /** @param {typeof fetch} send */
    constructor(send = (input, init) => fetch(input, init)) {
        this.send = send;
    }

    /**
     * @param {string} method
     * @param {string} path Behind `api/`; its parts are encoded.
     * @param {any} [body]
     * @returns {Promise<any>}
     */
    async request(method, path, body) {
        /** @type {Record<string, string>} */
        const headers = {};
        if (body !== undefined) headers["Content-Type"] = "application/json";
        if (method !== "GET" && this.session) headers["X-CSRF-Token"] = this.session.csrf_token;
        let answer;
        try {
            answer = await this.send(`api/${path}`, {
                method,
                headers,
                body: body === undefined ? undefined : JSON.stringify(body),
                credentials: "same-origin",
                cache: "no-store",
                redirect: "error",
            });
        } catch {
            throw new Refusal(0, "The server cannot be reached.");
        }
        const text = await answer.text();
        let document = null;
        try {
            document = text ? JSON.parse(text) : null;
        } catch {
            // A page of a proxy, for example.
        }
        if (answer.ok) return document;
        const refusal = new Refusal(answer.status, document?.detail ?? `The server answered ${answer.status}.`);
        if (answer.status === 401 && this.session) {
            this.session = null;
            this.onEnd();
        }
        throw refusal;
    }

    /** @param {string} path */
    get(path) {
        return this.request("GET", path);
    }

    /**
     * @param {string} name
     * @param {string} password
     * @param {string} code
     * @returns {Promise<boolean>} False if a code is needed.
     */
    async logIn(name, password, code) {
        const answer = await this.request("POST", "login", { name, password, ...(code ? { code } : {}) });
        if (answer.code_needed) return false;
        this.session = answer;
        return true;
    }

    /** Takes up the session of this browser, if there is one. */
    async resume() {
        try {
            this.session = await this.get("session");
        } catch (error) {
            if (!(error instanceof Refusal) || error.status !== 401) throw error;
        }
        return this.session !== null;
    }

    async logOut() {
        await this.request("POST", "logout");
        this.session = null;
    }

    /** @param {string} role */
    may(role) {
        const ranks = ["viewer", "operator", "administrator"];
        return this.session !== null && ranks.indexOf(this.session.role) >= ranks.indexOf(role);
    }
}

/** @param {string | number} part */
export const encoded = (part) => encodeURIComponent(String(part));

/**
 * The reverse; what was not made by encoded() is an empty text.
 *
 * @param {string} part
 */
export function decoded(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return "";
    }
}
