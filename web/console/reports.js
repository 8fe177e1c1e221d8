// Hermes
// SPDX-License-Identifier: Apache-2.0

import { encoded } from "./api.js";

/**
 * The parts of a report. Each has a title and the names of its figures, in the API and on the page.
 *
 * @type {readonly (readonly [string, readonly (readonly [string, string])[]])[]}
 */
export const parts = [
    ["Deliveries, as clients report", [
        ["within_1s", "in 1s"], ["within_10s", "in 10s"], ["later", "later"], ["never", "never"]]],
    ["Reports by heartbeat interval", [
        ["heartbeat_30s", "up to 30 s"], ["heartbeat_60s", "up to 60 s"], ["heartbeat_120s", "up to 120 s"],
        ["heartbeat_300s", "up to 300 s"], ["heartbeat_600s", "up to 600 s"], ["heartbeat_longer", "longer"]]],
    ["Ends of connections, by cause", [
        ["ended_closed", "closed by the server"], ["ended_reset", "broken"],
        ["ended_heartbeat", "heartbeat unanswered"], ["ended_network", "network changed"]]],
];

/**
 * The query for the user's choice.
 *
 * @param {string} period
 * @param {{ version: string | null, network: string | null }} chosen Null stands for all reports. Empty stands for
 *   reports without a version or network.
 */
export function query(period, { version, network }) {
    return `period=${period}${version === null ? "" : `&app_version=${encoded(version)}`}`
        + `${network === null ? "" : `&network=${encoded(network)}`}`;
}
