// Hermes
// SPDX-License-Identifier: Apache-2.0

extension LiveRoomFrame {
    /// The parts of the body (``MessageParts``); 0 for an application's own.
    package var partCount: Int { type.partCount(of: body) }

    /// Checks that the body fits its type. The forwarded bytes stay unchanged.
    ///
    /// - Throws: WireError `.badBody` if the body of a known type does not parse or lacks a required field;
    ///   `.unknownType` if the type is neither known nor the application's own.
    package func validateBody() throws(WireError) {
        if let message = type.message {
            _ = try message.init(wire: body)
        } else if !type.isKnown, !type.isApplicationDefined {
            throw WireError(.unknownType, "LiveRoom type \(type.rawValue) has no meaning; an app's own begin at 16")
        }
    }
}
