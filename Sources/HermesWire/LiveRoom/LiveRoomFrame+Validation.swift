// Hermes
// SPDX-License-Identifier: Apache-2.0

extension LiveRoomFrame {
    /// The number of parts of the body (``MessageParts``); 0 if Hermes does not define a message for the type.
    package var partCount: Int { type.partCount(of: body) }

    /// Checks that the body fits the frame's type. The bytes stay unchanged, so that they can be forwarded.
    ///
    /// - Throws: WireError `.badBody` or `.badText` if the type is known and the body is not a valid message of it;
    ///   `.unknownType` if the type is neither known nor the application's own.
    package func validateBody() throws(WireError) {
        if let message = type.message {
            _ = try message.init(wire: body)
        } else if !type.isKnown, !type.isApplicationDefined {
            throw WireError(
                .unknownType,
                "LiveRoom type \(type.rawValue) is undefined; an application's types begin at 16"
            )
        }
    }
}
