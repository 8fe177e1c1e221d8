// Hermes
// SPDX-License-Identifier: Apache-2.0

import { double, int64, requestShape } from "./packet.js";

/** A number in the form that JSON allows. Proto3 JSON also allows this form inside a text. */
const numeral = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;
const notFinite = /^(NaN|-?Inf(inity)?)$/;
const base64 = /^([a-z\d+/]*|[\w-]*)=?=?$/i;

/**
 * Returns the reason why a server could not read a request as proto3 JSON, with the name of the field; "" if it could
 * read the request. Fields that packet.proto does not define are ignored, because the server ignores them, too.
 *
 * @param {any} body
 */
export function flawOf(body) {
    const field = flawedIn("request", requestShape, written(body));
    return field && `the server does not accept the value of ${field}`;
}

/**
 * Returns the value that `JSON.stringify` writes for this value; undefined if it omits the value.
 *
 * @param {any} value
 */
function written(value, key = "") {
    const json = typeof value?.toJSON === "function" ? value.toJSON(key) : value;
    if (typeof json === "function" || typeof json === "symbol") return undefined;
    return [String, Number, Boolean].some((type) => json instanceof type) ? json.valueOf() : json;
}

/**
 * Returns the first field that does not fit its shape; "" if there is none.
 *
 * @param {string} path The name of the value.
 * @param {import("./packet.js").Shape} shape
 * @param {any} value The value after its conversion for JSON.
 * @returns {string}
 */
function flawedIn(path, shape, value) {
    if (value === undefined || value === null) return "";
    const isList = Array.isArray(value);
    if (!shape || shape === "bytes" || shape.max || shape.names) return isRight(shape, value) ? "" : path;
    if (typeof value !== "object" || isList !== Array.isArray(shape)) return path;
    const hasItems = isList || shape === "map";
    const names = new Set();
    let isFlawed = false;
    for (const [key, inner] of Object.entries(hasItems ? value : shape)) {
        const name = key.replace("?", "");
        const item = written(hasItems ? inner : value[name], name);
        if (item === undefined && !isList) continue;
        // Unlike a field, an item is never absent.
        const present = hasItems ? (item ?? []) : item;
        const field = flawedIn(`${path}.${name}`, isList ? shape[0] : hasItems ? "" : inner, present);
        if (field) return field;
        // The server treats names that are equal after normalization as the same name. A oneof has one field.
        const unique = hasItems ? key.normalize() : name === key || item === null ? key : "?";
        isFlawed ||= names.has(unique);
        names.add(unique);
    }
    return isFlawed ? path : "";
}

/**
 * Whether the server's reader of proto3 JSON accepts a value.
 *
 * @param {import("./packet.js").Shape} shape The shape of a text, a boolean, bytes, an enum, or a number.
 * @param {any} value
 * @returns {boolean}
 */
function isRight(shape, value) {
    const isText = typeof value === "string";
    if (shape === false) return typeof value === "boolean";
    if (shape.names) return isText || isRight(int64, value);
    if (shape.max) {
        // Numbers may be texts, and whole numbers may have a point or an exponent.
        const text = isText || typeof value === "number" ? String(value) : "";
        if (text.length > 127 || !numeral.test(text)) return shape === double && isText && notFinite.test(text);
        const number = Number(text);
        if (shape === double) return Number.isFinite(number);
        const exact = /\D/.test(text.slice(1)) ? number : BigInt(text);
        const hasSign = !shape.min && text[0] === "-";
        return Number.isInteger(number) && exact >= shape.min && exact <= shape.max && !hasSign;
    }
    if (!shape || !isText) return isText;
    const digits = value.replaceAll(" ", "");
    const rest = digits.length % 4;
    return base64.test(digits) && (rest === 0 || (rest > 1 && !digits.endsWith("=")));
}
