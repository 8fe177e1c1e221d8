// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Who a connection acts as. Made by ``AccountService`` alone; everything that asks for permission asks with one.
package struct Principal: Sendable, Hashable {
    package let user: UserID
    package let nickName: NickName
    package let device: DeviceID

    package init(user: UserID, nickName: NickName, device: DeviceID) {
        self.user = user
        self.nickName = nickName
        self.device = device
    }
}
