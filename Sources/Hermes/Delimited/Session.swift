// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The result of a login.
public struct Session: Hashable, Sendable {
    /// The account.
    public var uid: UserID
    /// The account's name.
    public var nickName: String
    /// The token for the next login, which replaces the password. It is a secret.
    public var token: String
    /// The inbox's epoch. It changes only if the server's store was lost.
    package var epoch: UInt64
    /// The server's software and version.
    package var serverVersion: String
}

/// The last inbox entry that a device has taken. An app that keeps the cursor continues right after this entry.
package struct Cursor: Hashable, Sendable {
    /// The epoch that the seq belongs to.
    package var epoch: UInt64
    /// The last seq that was taken.
    package var seq: UInt64

    /// Creates a cursor.
    package init(epoch: UInt64, seq: UInt64) {
        self.epoch = epoch
        self.seq = seq
    }
}

/// The device that a client runs on. Each device of an account has its own cursor in the inbox.
public struct DeviceDescription: Hashable, Sendable {
    /// The device's id.
    package var id: String
    /// The name for people.
    package var name: String
    /// The platform.
    package var platform: String
    /// The app's version.
    package var appVersion: String

    /// Creates a description.
    ///
    /// - Parameters:
    ///   - id: the device's id, chosen once and kept: 1 to 64 bytes of printable ASCII. A new connection with the same
    ///     id replaces the older one.
    ///   - name: the name for people, for example "Ann's phone"; at most 64 bytes.
    ///   - platform: the platform, for example "iOS 18.2"; at most 64 bytes.
    ///   - appVersion: the app's version; at most 32 bytes.
    public init(id: String, name: String = "", platform: String = "", appVersion: String = "") {
        self.id = id
        self.name = name
        self.platform = platform
        self.appVersion = appVersion
    }
}
