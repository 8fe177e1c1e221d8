// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The numbers of errors. Numbers below 1000 are errors of the client. Numbers from 1000 on are errors of the server
 * (docs/errors.md).
 */
export const ErrorCode = Object.freeze({
    cannotConnect: 101,
    connectionLost: 102,
    timedOut: 103,
    closed: 104,
    protocolViolation: 105,
    replaced: 106,
    revoked: 107,
    kicked: 108,
    notEncodable: 109,
    suspended: 111,
    storeFailed: 113,
    outboxFull: 114,
    wrongCredentials: 1003,
    invalidToken: 1004,
    accountDisabled: 1005,
    nameTaken: 1006,
    loginDelayed: 1007,
    deviceLimitReached: 1010,
    invitationRequired: 1011,
    invalidArgument: 2001,
    notFound: 2002,
    forbidden: 2003,
    clientIDConflict: 2004,
    unsupported: 2005,
    rateLimited: 3001,
    frameTooLong: 4003,
});

/** An error of the client: a `code` for programs and a `message` for people. */
export class HermesError extends Error {
    name = "HermesError";

    /**
     * @param {number} code The error for programs.
     * @param {string} message The error and its remedy, in English.
     * @param {number | null} retryAfter The time after which a retry makes sense, in milliseconds; null if a retry
     *   never makes sense.
     */
    constructor(code, message, retryAfter = null) {
        super(message);
        this.code = code;
        this.retryAfter = retryAfter;
    }

    /**
     * Reads the server's `Error`.
     *
     * @param {any} wire
     */
    static of(wire) {
        const wait = Number(wire?.retryAfterMs) || 0;
        const message = String(wire?.message || "the server refused without saying why").slice(0, 1000);
        return new HermesError(Number(wire?.code) || 0, message, wait > 0 ? wait : null);
    }

    /**
     * Whether the server reports that it cannot carry out the request now, because it is stopping, overloaded or
     * failing.
     */
    get isTroubleOfServer() {
        return (this.code >= 3000 && this.code < 4000) || this.code >= 9000;
    }

    /**
     * Whether a retry may help. It may if the connection was lost, if the server is overloaded or failing, or if the
     * server has set a time for the next try.
     */
    get isTemporary() {
        if (this.retryAfter !== null || this.isTroubleOfServer) return true;
        return this.code !== ErrorCode.notEncodable && this.code < 2000;
    }
}
