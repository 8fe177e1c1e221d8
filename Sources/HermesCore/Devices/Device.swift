// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A client's name for its device: 1 to 64 bytes of printable ASCII, unique within the account.
public struct DeviceID: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    /// The longest id, in bytes.
    package static let maxBytes = 64

    /// - Returns: nil for text that is empty, too long or not printable ASCII (0x21 … 0x7E).
    package init?(_ rawValue: String) {
        let bytes = rawValue.utf8
        guard (1...Self.maxBytes).contains(bytes.count), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        self.rawValue = rawValue
    }

    private init(reserved rawValue: String) { self.rawValue = rawValue }

    /// The sending device of messages that a back end sends in an account's name. No client can have this id, so all
    /// devices of the account get these messages.
    package static let backEnd = DeviceID(reserved: "back end")

    /// Creates the id from its stored form; nil if it is invalid.
    package init?(stored text: String) {
        guard text != Self.backEnd.rawValue else {
            self = .backEnd
            return
        }
        self.init(text)
    }

    /// The id.
    public var description: String { rawValue }
}

/// A client's description of its device at login. Texts that are too long are cut, not refused.
package struct DeviceDescription: Sendable, Hashable {
    package var id: DeviceID
    /// The device's name for people, at most 64 bytes.
    package var name: String
    /// The platform, for example "iOS 18.2", at most 64 bytes.
    package var platform: String
    /// The version of the app, at most 32 bytes.
    package var appVersion: String

    /// The longest name that is kept, in bytes.
    package static let maxNameBytes = 64

    package init(id: DeviceID, name: String = "", platform: String = "", appVersion: String = "") {
        self.id = id
        self.name = name
        self.platform = platform
        self.appVersion = appVersion
    }

    /// The description, cut to the limits. Control characters are removed, because they could control a terminal.
    var clamped: DeviceDescription {
        DeviceDescription(
            id: id,
            name: Self.clamp(name, to: Self.maxNameBytes),
            platform: Self.clamp(platform, to: 64),
            appVersion: Self.clamp(appVersion, to: 32)
        )
    }

    private static func clamp(_ text: String, to maxBytes: Int) -> String {
        var clamped = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars where scalar.properties.generalCategory != .control {
            count += UTF8.width(scalar)
            if count > maxBytes { break }
            clamped.append(scalar)
        }
        return String(clamped)
    }
}

/// A device and its owner.
package struct OwnedDevice: Sendable, Hashable {
    package let owner: UserID
    package let description: DeviceDescription

    package init(owner: UserID, description: DeviceDescription) {
        self.owner = owner
        self.description = description
    }
}

/// A token with which a device logs in. The store has only its hash.
package struct DeviceToken: Sendable, Hashable {
    package let device: DeviceID
    package let issuedAt: Timestamp

    package init(device: DeviceID, issuedAt: Timestamp) {
        self.device = device
        self.issuedAt = issuedAt
    }
}

/// The kind of proof by which a login shows that it belongs to a certain device. The strongest proof that was ever
/// shown for a device is stored, and no login with a weaker proof can open the device.
package enum DeviceProof: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// A mere claim.
    case claim
    /// The statement of a trusted third party: a JSON Web Token or a certificate.
    case voucher
    /// The account's password, or a token of the account.
    case account

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A device of an account. An entry waits in the inbox until each of the account's devices has acknowledged it.
package struct Device: Sendable, Hashable {
    package var description: DeviceDescription
    package var createdAt: Timestamp
    package var lastSeenAt: Timestamp
    /// The last inbox entry that the device has acknowledged.
    package var cursor: UInt64
    /// The strongest proof that was ever shown for the device.
    package var proof: DeviceProof

    package init(
        description: DeviceDescription,
        createdAt: Timestamp,
        lastSeenAt: Timestamp,
        cursor: UInt64,
        proof: DeviceProof = .account
    ) {
        self.proof = proof
        self.description = description
        self.createdAt = createdAt
        self.lastSeenAt = lastSeenAt
        self.cursor = cursor
    }
}
