// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The page's own error numbers, which are the same as in the SDK. The server's numbers begin with 1000
 * (docs/errors.md).
 */
const UNREACHABLE = 101;
const UNREADABLE = 105;

/** A request that was refused. */
export class Refusal extends Error {
    /**
     * @param {number} status The HTTP status; 0 if there is no answer.
     * @param {number} code
     * @param {string} message In English.
     */
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
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
     * @param {string} path The path after `api/`, with encoded parts.
     * @param {any} [body]
     * @returns {Promise<any>}
     */
    async request(method, path, body) {
        /** @type {Record<string, string>} */
        const headers = {};
        if (body !== undefined) headers["Content-Type"] = "application/json";
        if (method !== "GET" && this.session) headers["X-CSRF-Token"] = this.session.csrf_token;
        const answer = await this.answer(`api/${path}`, {
            method,
            headers,
            body: body === undefined ? undefined : JSON.stringify(body),
        });
        if (!answer.ok) throw await this.refusal(answer);
        return documentOf(await answer.text());
    }

    /**
     * Returns the reason why the server refuses a stream, because an EventSource does not report it. Returns null if
     * the server no longer refuses the stream.
     *
     * @param {string} path The path after `api/`.
     */
    async refusalOf(path) {
        const stop = new AbortController();
        try {
            const answer = await this.answer(`api/${path}`, { headers: { Accept: "text/event-stream" }, signal: stop.signal });
            return answer.ok ? null : await this.refusal(answer);
        } catch (error) {
            if (error instanceof Refusal) return error;
            throw error;
        } finally {
            stop.abort();
        }
    }

    /**
     * @param {string} address
     * @param {RequestInit} init
     */
    async answer(address, init) {
        try {
            return await this.send(address, { ...init, credentials: "same-origin", cache: "no-store", redirect: "error" });
        } catch {
            throw new Refusal(0, UNREACHABLE, "The server cannot be reached.");
        }
    }

    /**
     * Reads an answer that is a refusal. Calls `onEnd` if the session has ended.
     *
     * @param {Response} answer
     */
    async refusal(answer) {
        const document = documentOf(await answer.text());
        if (answer.status === 401 && this.session) {
            this.session = null;
            this.onEnd();
        }
        return document?.detail ? new Refusal(answer.status, document.code, document.detail)
            : new Refusal(answer.status, UNREADABLE, `The server answered ${answer.status}.`);
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

    /** Continues the session of this browser, if there is one. */
    async resume() {
        this.session = (await this.get("session"))?.session ?? null;
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

/**
 * @param {string} text
 * @returns {any} The document; null if the text is not JSON, for example because a proxy sent a page.
 */
function documentOf(text) {
    try {
        return text ? JSON.parse(text) : null;
    } catch {
        return null;
    }
}

/** @param {string | number} part */
export const encoded = (part) => encodeURIComponent(String(part));

/**
 * The reverse of encoded(). The result is empty if the text is not encoded correctly.
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
