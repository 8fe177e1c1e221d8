// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What is wrong with bytes that came, or with a value that cannot be written.
///
/// An error from a decoder is final: the stream has lost its frame boundaries, so the connection has to be closed.
/// An error from a body concerns that one frame alone.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of error, with the stable numbers of the error catalogue (4000 to 4099: bytes).
    package enum Code: UInt32, Hashable, Sendable, CaseIterable {
        /// The frame does not begin as the protocol says.
        case badMagic = 4001
        /// The frame is of a version of the protocol that is not spoken here.
        case badVersion = 4002
        /// The frame's length is above the limit.
        case frameTooLong = 4003
        /// The length before the frame is not a number that the protocol allows.
        case badLength = 4004
        /// The frame is of a type that has no meaning.
        case unknownType = 4005
        /// The frame's body is not what its type says: not protobuf, a required field missing, nested too deep.
        case badBody = 4006
        /// A text is not UTF-8.
        case badText = 4007
        /// A value has no representation on the wire.
        case notEncodable = 4008
    }

    /// What kind of error it is.
    package let code: Code
    /// What is wrong and what to do about it, for people.
    package let message: String

    /// Creates an error.
    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "\(code.rawValue) \(code): \(message)" }
}

extension WireError {
    /// The error for a length above the limit.
    ///
    /// - Parameters:
    ///   - bytes: the length that the frame tells or would have.
    ///   - limit: the longest that is allowed, in bytes.
    /// - Returns: the error, with both in its message.
    static func frameTooLong(_ bytes: some BinaryInteger, limit: Int) -> WireError {
        WireError(.frameTooLong, "a frame of \(bytes) bytes is longer than the \(limit) that are allowed")
    }
}
