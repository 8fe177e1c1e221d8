// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The device that a client runs on. Each device of an account has its own cursor in the inbox.
public struct DeviceDescription: Hashable, Sendable {
    /// The device's id.
    package var id: String
    /// The display name.
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
    ///   - name: the display name, for example "Ann's phone"; at most 64 bytes.
    ///   - platform: the platform, for example "iOS 18.2"; at most 64 bytes.
    ///   - appVersion: the app's version; at most 32 bytes.
    public init(id: String, name: String = "", platform: String = "", appVersion: String = "") {
        self.id = id
        self.name = name
        self.platform = platform
        self.appVersion = appVersion
    }
}
