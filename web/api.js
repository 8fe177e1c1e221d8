// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Emitter } from "./emitter.js";
import { makeSend } from "./outbox.js";

/**
 * A conversation: `{ uid }` for an account, or `{ groupId }` for a group.
 *
 * @typedef {{ uid: number } | { groupId: number }} Conversation
 */

/** The time to wait for a receipt, and the time to wait for other answers, in milliseconds. */
const sendTimeout = 60_000;
const requestTimeout = 30_000;

/**
 * The requests that a logged-in client can make. Each request fails with a HermesError if the server refuses the
 * request or does not answer in time. If the connection ends before the answer, the client repeats most requests. It
 * does not repeat a request that must not happen twice, or that the server may refuse the second time. Such a request
 * fails with `connectionLost`.
 *
 * @abstract
 */
export class Requests extends Emitter {
    /**
     * Sends a packet's body and returns the `hermes.v1.Result`.
     *
     * @abstract
     * @param {any} _body
     * @param {boolean} _isRepeatable
     * @param {number} _timeout In milliseconds.
     * @returns {Promise<any>}
     */
    request(_body, _isRepeatable = true, _timeout = requestTimeout) {
        return Promise.reject(new Error("not implemented"));
    }

    /**
     * Sends a packet's body without waiting for an answer. Does nothing without a connection.
     *
     * @abstract
     * @param {any} _body
     */
    notify(_body) {}

    /**
     * Sends a message and waits for its receipt. For a message that may be sent later, use `outbox.send`.
     *
     * @param {string | any} content A text, or a `hermes.v1.Content` as JSON.
     * @param {Conversation} to
     * @param {{ clientId?: string, expiresInSeconds?: number }} options
     */
    async send(content, to, options = {}) {
        return (await this.request({ send: makeSend(content, to, options) }, true, sendTimeout)).receipt;
    }

    /**
     * Marks all messages up to this conversation seq as read.
     *
     * @param {Conversation} conversation
     * @param {number} upToSeq
     */
    async markRead(conversation, upToSeq) {
        await this.request({ markRead: { conversation, upToSeq: String(upToSeq) } });
    }

    /**
     * Recalls one of the account's own messages, within the time that the server allows.
     *
     * @param {Conversation} conversation
     * @param {string} messageId
     */
    async recall(conversation, messageId) {
        await this.request({ recall: { conversation, messageId } });
    }

    /**
     * Notifies the other people in the conversation that the user types, or has stopped typing. Does nothing without a
     * connection.
     *
     * @param {Conversation} conversation
     * @param {boolean} isTyping
     */
    setTyping(conversation, isTyping = true) {
        this.notify({ typing: { conversation, stopped: !isTyping } });
    }

    /**
     * Fetches stored messages of a conversation, newest last.
     *
     * @param {Conversation} conversation
     * @param {{ beforeSeq?: number, limit?: number }} options `beforeSeq` selects messages with a smaller conversation
     *   seq; 0 selects the newest messages. `limit` is 1 to 500.
     * @returns {Promise<{ messages: any[], more: boolean }>}
     */
    async history(conversation, { beforeSeq = 0, limit = 50 } = {}) {
        return (await this.request({ history: { conversation, beforeSeq: String(beforeSeq), limit } })).history;
    }

    /**
     * Fetches a page of the conversations, with the numbers of unread messages. Conversations with accounts come first,
     * by uid. Then come groups, by id. A new device needs the list, because it receives only later inbox entries.
     *
     * @param {{ after?: Conversation | null, limit?: number }} options `after` is the last conversation of the previous
     *   page. `limit` is 1 to 1,000.
     * @returns {Promise<{ conversations: any[], more: boolean }>}
     */
    async conversations({ after = null, limit = 100 } = {}) {
        return (await this.request({ conversations: { after, limit } })).conversations;
    }

    /**
     * Looks up an account by its number or its name. Without both, looks up the user's own account.
     *
     * @param {{ uid?: number, nickName?: string }} selector
     */
    async account(selector = {}) {
        return (await this.request({ account: { get: selector } })).account;
    }

    /**
     * @param {{ nickName?: string, avatarUrl?: string }} change
     */
    async changeProfile(change) {
        return (await this.request({ account: { changeProfile: change } })).account;
    }

    /**
     * Changes the password. Every other session of the account ends.
     *
     * @param {string} oldPassword
     * @param {string} newPassword
     */
    async changePassword(oldPassword, newPassword) {
        await this.request({ account: { changePassword: { oldPassword, newPassword } } }, false);
    }

    /** Revokes the tokens of all other devices. */
    async revokeTokens() {
        await this.request({ account: { revokeTokens: {} } });
    }

    /**
     * Fetches a page of the contacts, ordered by uid.
     *
     * @param {{ afterUid?: number, limit?: number }} options
     * @returns {Promise<{ contacts: any[], more: boolean }>}
     */
    async contacts({ afterUid = 0, limit = 100 } = {}) {
        return (await this.request({ contact: { list: { afterUid, limit } } })).contacts;
    }

    /**
     * @param {number} uid
     * @param {string} message At most 256 bytes.
     */
    async requestContact(uid, message = "") {
        await this.request({ contact: { add: { uid, message } } });
    }

    /**
     * @param {number} uid
     * @param {boolean} accept
     * @param {string} message At most 256 bytes.
     */
    async answerContact(uid, accept, message = "") {
        await this.request({ contact: { answer: { uid, accept, message } } }, accept);
    }

    /**
     * Ends the contact for both accounts.
     *
     * @param {number} uid
     */
    async removeContact(uid) {
        await this.request({ contact: { remove: { uid } } }, false);
    }

    /**
     * @param {number} uid
     */
    async block(uid) {
        await this.request({ contact: { block: { uid } } });
    }

    /**
     * @param {number} uid
     */
    async unblock(uid) {
        await this.request({ contact: { unblock: { uid } } });
    }

    /**
     * @param {string} name 1 to 64 characters.
     * @param {number[]} memberUids The members, without the user.
     */
    async createGroup(name, memberUids = []) {
        return (await this.request({ group: { create: { name, memberUids } } }, false)).group;
    }

    /**
     * Fetches a group with its members.
     *
     * @param {number} groupId
     */
    async group(groupId) {
        return (await this.request({ group: { get: { groupId } } })).group;
    }

    /**
     * Fetches a page of the user's groups, ordered by id, without their members.
     *
     * @param {{ afterGroupId?: number, limit?: number }} options
     * @returns {Promise<{ groups: any[], more: boolean }>}
     */
    async groups({ afterGroupId = 0, limit = 100 } = {}) {
        return (await this.request({ group: { list: { afterGroupId, limit } } })).groups;
    }

    /**
     * @param {number} groupId
     * @param {{ name?: string, avatarUrl?: string, muted?: boolean, historyOpen?: boolean }} change
     */
    async changeGroup(groupId, change) {
        return (await this.request({ group: { change: { groupId, ...change } } })).group;
    }

    /**
     * Adds members, removes members, and changes roles and muting.
     *
     * @param {number} groupId
     * @param {{ addUids?: number[], removeUids?: number[], changeRoles?: { uid: number, role?: string, mutedUntilMs?:
     *   number }[] }} change Roles are "ROLE_MEMBER" and "ROLE_ADMINISTRATOR". "ROLE_OWNER" makes the member the owner
     *   of the group. Only the present owner may do so, and becomes an administrator.
     */
    async changeMembers(groupId, change) {
        await this.request({ group: { changeMembers: { groupId, ...change } } }, false);
    }

    /**
     * @param {number} groupId
     */
    async leaveGroup(groupId) {
        await this.request({ group: { leave: { groupId } } }, false);
    }

    /**
     * Dissolves a group. Only the owner may do so.
     *
     * @param {number} groupId
     */
    async dissolveGroup(groupId) {
        await this.request({ group: { dissolve: { groupId } } }, false);
    }

    /**
     * Watches the presence of accounts from now on. Changes arrive as `presence` events.
     *
     * @param {number[]} uids At most 1,000 watched accounts in total.
     * @returns {Promise<any[]>} Their present states.
     */
    async watchPresence(uids) {
        return (await this.request({ presence: { watchUids: uids } })).presence?.presences ?? [];
    }

    /**
     * @param {number[]} uids
     */
    async unwatchPresence(uids) {
        await this.request({ presence: { unwatchUids: uids } });
    }

    /**
     * Enters a room, now and on each later connection until `leaveRoom`. The room's events arrive as `room` events.
     *
     * @param {string} room
     * @param {{ name?: string, level?: number, iconUrl?: string }} user The name, level and icon that other people in
     *   the room see.
     * @returns {Promise<number>} The number of connections in the room.
     */
    async enterRoom(room, user) {
        return (await this.request({ room: { room, enter: { user } } })).room?.memberCount ?? 0;
    }

    /**
     * @param {string} room
     */
    async leaveRoom(room) {
        await this.request({ room: { room, leave: {} } });
    }

    /**
     * Sends a text to everyone in the room, including the sender.
     *
     * @param {string} room
     * @param {string} text
     */
    async sayInRoom(room, text) {
        await this.request({ room: { room, text: { text } } }, false);
    }

    /**
     * @param {string} room
     * @param {{ name: string, count?: number, url?: string }} gift
     */
    async giveInRoom(room, { name, count = 1, url = "" }) {
        await this.request({ room: { room, gift: { name, count, url } } }, false);
    }

    /** @returns {Promise<any[]>} The devices of the account. */
    async devices() {
        return (await this.request({ device: { list: {} } })).devices?.devices ?? [];
    }

    /**
     * Logs a device out. The server deletes everything that it keeps for the device.
     *
     * @param {string} deviceId
     */
    async removeDevice(deviceId) {
        await this.request({ device: { remove: { deviceId } } });
    }

    /**
     * Registers a Web Push subscription. The server sends pushes to this device while the device is not connected.
     *
     * @param {PushSubscription | any} subscription
     */
    async registerPush(subscription) {
        const token = JSON.stringify(subscription);
        await this.request({ device: { setPushToken: { service: "SERVICE_WEB_PUSH", token } } });
    }

    /** Ends the pushes to this device. */
    async clearPush() {
        await this.request({ device: { clearPushToken: {} } });
    }

    /**
     * Sends call setup data to another user.
     *
     * @param {number} toUid
     * @param {string} sessionId
     * @param {{ data: string } | { end: { reason: string } }} signal `data` is base64.
     */
    async signal(toUid, sessionId, signal) {
        await this.request({ signal: { toUid, sessionId, ...signal } }, false);
    }

    /** Pings the server and returns the round-trip time in milliseconds. */
    async ping() {
        const start = performance.now();
        await this.request({ ping: {} }, false);
        return performance.now() - start;
    }
}
