// Hermes
// SPDX-License-Identifier: Apache-2.0

import { double, int32, requestShape } from "./packet.js";

/** A number as a text. */
const digits = /^-?(0|[1-9]\d{0,19})(\.\d+)?$/;
const base64 = /^([a-z\d+/]*|[\w-]*)=?=?$/i;

/**
 * Returns why a server could not read a request as proto3 JSON, with the name of the field; "" if it could. Fields that
 * packet.proto does not have are passed over, as the server does.
 *
 * @param {any} body
 */
export function flawOf(body) {
    const field = flawedIn("request", requestShape, body);
    return field && `the server does not accept the value of ${field}`;
}

/**
 * Returns the first field that does not fit its shape; "" if there is none.
 *
 * @param {string} path The name of the value.
 * @param {import("./packet.js").Shape} shape
 * @param {any} value
 * @returns {string}
 */
function flawedIn(path, shape, value) {
    if (value === undefined || value === null) return "";
    const isList = Array.isArray(value);
    if (!shape || shape === "bytes" || shape.max || shape.names) return isRight(shape, value) ? "" : path;
    if (typeof value !== "object" || isList !== Array.isArray(shape)) return path;
    const hasItems = isList || shape === "map";
    // The server takes names that are equal after their normalization for one name.
    const names = Object.keys(value).map((name) => name.normalize());
    let isFlawed = shape === "map" && new Set(names).size < names.length;
    let isSet = false;
    for (const [key, inner] of Object.entries(hasItems ? value : shape)) {
        const name = key.replace("?", "");
        // Unlike a field, an item is never absent.
        const item = hasItems ? (inner ?? []) : value[name];
        const field = flawedIn(`${path}.${name}`, isList ? shape[0] : hasItems ? "" : inner, item);
        if (field) return field;
        if (hasItems || name === key || (item ?? null) === null) continue;
        isFlawed ||= isSet;
        isSet = true;
    }
    return isFlawed ? path : "";
}

/**
 * @param {import("./packet.js").Shape} shape That of a text, a boolean, bytes, an enum, or a number.
 * @param {any} value
 * @returns {boolean}
 */
function isRight(shape, value) {
    const isText = typeof value === "string";
    if (shape === false) return typeof value === "boolean";
    if (shape.names) return isText || isRight(int32, value);
    // proto3 JSON takes numbers as texts, too.
    if (shape === double) return isText ? digits.test(value) : Number.isFinite(value);
    if (shape.max) {
        const isWhole = isText ? digits.test(value) && !value.includes(".") : Number.isSafeInteger(value);
        return isWhole && BigInt(value) >= shape.min && BigInt(value) <= shape.max;
    }
    if (!shape || !isText) return isText;
    const rest = value.length % 4;
    return base64.test(value) && (rest === 0 || (rest > 1 && !value.endsWith("=")));
}
