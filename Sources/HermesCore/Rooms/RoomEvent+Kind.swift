// Hermes
// SPDX-License-Identifier: Apache-2.0

extension RoomEvent {
    /// The kind of an event, without its details: enough to pass the event on.
    package enum Kind: Hashable, Sendable {
        case joined
        case left
        case said
        case gave
        case noticed
        case kicked
        /// The application's own type. It may be any number: a client of a protocol in which the lower ones are the
        /// application's, too, may use one of ``number``'s, and does not become the server by that.
        case application(UInt16)

        /// The lowest type that is the application's in every protocol.
        package static let firstApplicationType: UInt16 = 16

        /// The kind with a number.
        ///
        /// - Returns: nil for numbers below 16 without a meaning.
        package init?(number: UInt16) {
            switch number {
            case 0: self = .joined
            case 1: self = .left
            case 2: self = .said
            case 3: self = .gave
            case 4: self = .noticed
            case 5: self = .kicked
            case Self.firstApplicationType...: self = .application(number)
            default: return nil
            }
        }

        /// The number under which subscribers of the room's topic are told the kind; it never changes.
        package var number: UInt16 {
            switch self {
            case .joined: 0
            case .left: 1
            case .said: 2
            case .gave: 3
            case .noticed: 4
            case .kicked: 5
            case .application(let type): type
            }
        }

        /// Whether only the server does this.
        package var isServers: Bool {
            switch self {
            case .noticed, .kicked: true
            case .joined, .left, .said, .gave, .application: false
            }
        }

        /// Whether it is a client's event with a number that belongs to the server elsewhere.
        package var looksLikeServers: Bool {
            guard case .application(let type) = self else { return false }
            return Kind(number: type)?.isServers ?? false
        }

        /// The order in which events are dropped for a member that does not read fast enough.
        package var dropClass: Publication.DropClass {
            switch self {
            case .said: .text
            case .joined, .left: .presence
            // The application's own may be worth money.
            case .gave, .application: .gift
            case .noticed, .kicked: .control
            }
        }
    }
}

extension RoomEvent.Content {
    package var kind: RoomEvent.Kind {
        switch self {
        case .joined: .joined
        case .left: .left
        case .said: .said
        case .gave: .gave
        case .noticed: .noticed
        case .kicked: .kicked
        case .application(let type, _): .application(type)
        }
    }

    /// The member that caused the event, as the others see it; nil for events of the server and of the application.
    package var member: RoomMember? {
        switch self {
        case .joined(let member), .left(let member), .said(let member, _), .gave(let member, _): member
        case .noticed, .kicked, .application: nil
        }
    }
}
