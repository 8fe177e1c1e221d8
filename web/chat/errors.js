// Hermes
// SPDX-License-Identifier: Apache-2.0

// Texts for errors (docs/errors.md), for the chat and the live room.

/**
 * Texts for errors whose text from the server says less, or is meant for programs.
 *
 * @type {Record<number, string>}
 */
const english = {
    101: "The server cannot be reached. Check the network.",
    102: "The connection was lost before the server answered. Try again.",
    103: "The server does not answer. Check the network and try again.",
    104: "You are logged out.",
    113: "This browser could not store the message. Free some space and try again.",
    114: "Too many messages wait to be sent. Discard some, or wait for a connection.",
    1003: "The name or the password is wrong.",
    1004: "Your login has ended. Log in again with your password.",
    1011: "A valid invitation code is needed. Ask the operator for one.",
    9001: "The server made an error. Try again later.",
};

/**
 * "{0}" stands for the server's text, which describes the cause.
 *
 * @type {Record<number, string>}
 */
const chinese = {
    101: "无法连接到服务器。请检查网络。",
    102: "连接在服务器答复之前断开。请重试。",
    103: "服务器没有响应。请检查网络后重试。",
    104: "你已退出登录。",
    105: "服务器的答复有误。请稍后重试。",
    106: "另一个窗口或程序正在使用此设备。要在这里使用，请重新加载页面。",
    107: "此设备已在别处被退出登录。请重新登录。",
    108: "服务器断开了连接。",
    109: "内容过长或格式不正确，无法发送。",
    111: "页面已被浏览器暂停。",
    113: "浏览器无法保存消息。请清理存储空间后重试。",
    114: "等待发送的消息过多。请丢弃一些，或等待连接恢复。",
    1001: "请先登录。",
    1003: "用户名或密码错误。",
    1004: "登录已失效。请使用密码重新登录。",
    1005: "此账号已停用。请联系管理员。",
    1006: "此用户名已被使用。请换一个。",
    1007: "尝试次数过多。请稍后再试。",
    1008: "此服务器未开放注册。请联系管理员。",
    1009: "此设备已在另一个连接上登录。",
    1010: "此账号的设备数量已达上限。请先在其他设备上移除一台。",
    1011: "需要有效的邀请码。请向管理员索取。",
    2001: "填写的内容无效（{0}）。",
    2002: "找不到此账号、聊天、消息或设备。",
    2003: "你没有权限进行此操作。",
    2004: "此消息与另一条消息冲突。请重新发送。",
    2005: "此服务器不支持此操作。",
    2006: "内容超过了允许的大小或数量（{0}）。",
    2007: "已达到上限（{0}）。请删除一些，或联系管理员。",
    3001: "操作过于频繁。请稍后再试。",
    3002: "服务器繁忙。请稍后再试。",
    3003: "服务器暂时无法保存。请稍后再试。",
    3004: "服务器正在停止。请稍后再试。",
    3005: "对方有太多未接收的消息。请稍后再试。",
    3006: "你发送的消息有太多尚未被阅读。请稍后再试。",
    4003: "内容过长，无法发送。",
    9001: "服务器出错。请稍后再试。",
};

/**
 * Translations of the server's English texts, for errors whose number alone says too little.
 *
 * @type {Record<string, string>}
 */
const exactly = {
    "only administrators may send to this group": "仅管理员可在此群组中发言。",
    "you may not send to this group yet": "你在此群组中已被禁言，暂时不能发言。",
    "you are not a member of this group": "你不是此群组的成员。",
    "this account does not accept anything from you": "对方不接收你的消息。",
    "only contacts can write to each other here; send a contact request first": "此服务器上只有联系人之间可以发消息。请先发送联系人请求。",
    "you block this account; unblock it first": "你已拉黑此账号。请先取消拉黑。",
    "It is too late to recall this message.": "已超过可撤回的时间。",
    "there is no such account": "没有此账号。",
    "this is your own account; name another one": "这是你自己的账号。请填写其他账号。",
    "enter the room first": "请先进入直播间。",
};

/**
 * The text for an error, followed by its number. If this file has no text for the number, it is the server's text.
 *
 * @param {any} error
 * @param {boolean} isChinese
 */
export function wordsOfError(error, isChinese) {
    const { code = 0, message } = error ?? {};
    const words = String(message ?? error);
    if (!code) return words;
    const known = isChinese ? (exactly[words] ?? chinese[code]) : english[code];
    return `${known?.replace("{0}", () => words) ?? words} [${code}]`;
}
