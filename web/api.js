// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Emitter } from "./emitter.js";
import { makeSend } from "./outbox.js";

/**
 * A conversation: `{ uid }` with an account, or `{ groupId }` of a group.
 *
 * @typedef {{ uid: number } | { groupId: number }} Conversation
 */

/** The time to wait for a receipt, and for other answers, in milliseconds. */
const sendTimeout = 60_000;
const requestTimeout = 30_000;

/**
 * The requests that a logged-in client can make. Each fails with a HermesError if the server refuses it or does not
 * answer in time. Requests that must not happen twice, or that the server may refuse the second time, fail with
 * `connectionLost` if the connection ends before their answer; the client repeats all others by itself.
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
     * Sends a packet's body without waiting for an answer; does nothing without a connection.
     *
     * @abstract
     * @param {any} _body
     */
    notify(_body) {}

    /**
     * Sends a message and waits for its receipt. `outbox.send` is for a message that may be sent later.
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
     * Tells the others that the user is typing, or stopped. Does nothing without a connection.
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
     * @param {{ beforeSeq?: number, limit?: number }} options `beforeSeq`: only messages with a smaller conversation
     *   seq; 0: the newest. `limit`: 1 to 500.
     * @returns {Promise<{ messages: any[], more: boolean }>}
     */
    async history(conversation, { beforeSeq = 0, limit = 50 } = {}) {
        return (await this.request({ history: { conversation, beforeSeq: String(beforeSeq), limit } })).history;
    }

    /**
     * A page of the conversations and of what is unread in them: those with accounts by uid, then the groups by id. It
     * tells a new device what there was before, because only later entries arrive.
     *
     * @param {{ after?: Conversation | null, limit?: number }} options `after`: the last conversation of the page
     *   before. `limit`: 1 to 1,000.
     * @returns {Promise<{ conversations: any[], more: boolean }>}
     */
    async conversations({ after = null, limit = 100 } = {}) {
        return (await this.request({ conversations: { after, limit } })).conversations;
    }

    /**
     * Looks up an account by its number or its name; without either, the user's own.
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
     * Changes the password; every other session of the account ends.
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
     * A page of the contacts, ordered by uid.
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
     * Ends the contact for both.
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
     * @param {number[]} memberUids The members besides the user.
     */
    async createGroup(name, memberUids = []) {
        return (await this.request({ group: { create: { name, memberUids } } }, false)).group;
    }

    /**
     * A group with its members.
     *
     * @param {number} groupId
     */
    async group(groupId) {
        return (await this.request({ group: { get: { groupId } } })).group;
    }

    /**
     * A page of the user's groups, ordered by id, without their members.
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
     * Adds and removes members; changes roles and muting.
     *
     * @param {number} groupId
     * @param {{ addUids?: number[], removeUids?: number[], changeRoles?: { uid: number, role?: string,
     *   mutedUntilMs?: number }[] }} change Roles are "ROLE_MEMBER" and "ROLE_ADMINISTRATOR". "ROLE_OWNER" hands the
     *   group over: only its owner may, and becomes an administrator.
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
     * Dissolves a group; only the owner may.
     *
     * @param {number} groupId
     */
    async dissolveGroup(groupId) {
        await this.request({ group: { dissolve: { groupId } } }, false);
    }

    /**
     * Watches the presence of accounts from now on; changes arrive as `presence` events.
     *
     * @param {number[]} uids At most 1,000 in all.
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
     * Enters a room, now and on each later connection until `leaveRoom`; its events arrive as `room` events.
     *
     * @param {string} room
     * @param {{ name?: string, level?: number, iconUrl?: string }} user How the others see this user.
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
     * Everyone in the room gets the text, the sender included.
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
     * Logs a device out; the server keeps nothing for it.
     *
     * @param {string} deviceId
     */
    async removeDevice(deviceId) {
        await this.request({ device: { remove: { deviceId } } });
    }

    /**
     * Registers a Web Push subscription: the server notifies this device while it is not connected.
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
     * Passes data that sets up a call to another user.
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
