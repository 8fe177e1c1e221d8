// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The data of a user that the others in a room see.
public struct RoomUser: Hashable, Sendable {
    /// The application's own ranking.
    public var level: Int
    /// The name that the others see.
    public var name: String
    /// The user's picture; nil if there is none.
    public var iconURL: URL?

    /// Creates a user.
    public init(name: String, level: Int = 1, iconURL: URL? = nil) {
        self.name = name
        self.level = level
        self.iconURL = iconURL
    }
}

// MARK: - From the schema

extension RoomUser {
    init(_ user: Hermes_V1_RoomUser) {
        self.init(name: user.name, level: Int(user.level), iconURL: URL(wire: user.iconURL))
    }

    var wire: Hermes_V1_RoomUser {
        var user = Hermes_V1_RoomUser()
        user.name = name
        user.level = Int32(clamping: level)
        user.iconURL = iconURL?.absoluteString ?? ""
        return user
    }
}
