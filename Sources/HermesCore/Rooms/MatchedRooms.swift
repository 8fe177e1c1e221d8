// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rooms whose topics a topic filter matches.
package enum MatchedRooms {
    /// All rooms.
    case all
    /// The room with this name.
    case one(Substring)

    /// Finds the rooms of a filter. Allocates no memory, because a client may have thousands of filters, and most
    /// filters have nothing to do with rooms.
    ///
    /// - Parameter filter: a valid topic name or topic filter, without the group of a shared subscription.
    /// - Returns: nil if the filter matches no room.
    package init?(of filter: Substring) {
        let slash = UInt8(ascii: "/")
        let first = filter.utf8.first
        guard
            first == UInt8(ascii: "+") || first == UInt8(ascii: "#")
                || filter.utf8.starts(with: TopicName.roomPrefix.utf8)
        else { return nil }
        // A room's topic has two levels. "#" also matches zero levels.
        guard let end = filter.utf8.firstIndex(of: slash) else {
            guard first == UInt8(ascii: "#") else { return nil }
            self = .all
            return
        }
        var name = filter[filter.utf8.index(after: end)...]
        if let end = name.utf8.firstIndex(of: slash) {
            guard name.utf8[end...].elementsEqual("/#".utf8) else { return nil }
            name = name[..<end]
        }
        self = name == "+" || name == "#" ? .all : .one(name)
    }

    /// Whether a room is among the matched rooms. The names are compared byte by byte.
    package func includes(_ room: RoomName) -> Bool {
        switch self {
        case .all: true
        case .one(let name): name.utf8.elementsEqual(room.rawValue.utf8)
        }
    }
}
