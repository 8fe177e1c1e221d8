// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An error in received bytes, or in a value that cannot be encoded.
///
/// An error from a decoder is final: the stream has lost its frame boundaries, so the connection has to be closed. An
/// error from a body concerns only that frame.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of error, with their stable numbers in the error catalogue. The numbers 4000 to 4099 are for errors in
    /// bytes.
    package enum Code: UInt32, Hashable, Sendable, CaseIterable {
        /// The frame does not begin with the protocol's magic number, or an MQTT packet has the wrong flags.
        case badMagic = 4001
        /// The frame has an unsupported protocol version.
        case badVersion = 4002
        /// The frame's length is above the limit.
        case frameTooLong = 4003
        /// The frame's length prefix is not a valid number.
        case badLength = 4004
        /// The frame's type is undefined.
        case unknownType = 4005
        /// The frame's body does not fit its type: for example, it is not protobuf, lacks a required field, is nested
        /// too deeply, or has too many parts.
        case badBody = 4006
        /// A text is not UTF-8, or holds too many combining marks in a row.
        case badText = 4007
        /// A value has no representation on the wire.
        case notEncodable = 4008
    }

    /// The kind of error.
    package let code: Code
    /// The error and its remedy, for people.
    package let message: String

    /// Creates an error.
    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "\(code.rawValue) \(code): \(message)" }
}

extension WireError {
    /// Creates the error for a length above the limit.
    ///
    /// - Parameters:
    ///   - bytes: the frame's length in bytes.
    ///   - limit: the longest allowed length, in bytes.
    /// - Returns: the error, with both numbers in its message.
    static func frameTooLong(_ bytes: some BinaryInteger, limit: Int) -> WireError {
        WireError(.frameTooLong, "a frame of \(bytes) bytes is longer than the \(limit) that are allowed")
    }
}
