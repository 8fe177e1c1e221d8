// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts a stream into QSIOP frames without parsing their properties (see `QSIOPFrame.properties()`). A frame with an
/// unknown operation is returned like any other, so that invalid properties and unknown operations can be answered with
/// an error.
package struct QSIOPFrameDecoder: FrameDecoder {
    /// The largest accepted size of the properties, in bytes.
    private let maxFrameBytes: Int

    /// Creates a decoder.
    ///
    /// - Parameter maxFrameBytes: the largest accepted size of the properties, in bytes; the header allows at most
    ///   65,535.
    package init(maxFrameBytes: Int = QSIOPFrame.maxBodyBytes) {
        self.maxFrameBytes = maxFrameBytes
    }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> QSIOPFrame? {
        let start = buffer.readerIndex
        guard let version = buffer.getInteger(at: start, as: UInt16.self) else { return nil }
        guard version == QSIOPFrame.version else {
            throw WireError(.badVersion, "QSIOP version \(version) is not supported; only version 1 is")
        }
        guard let length = buffer.getInteger(at: start + 4, as: UInt16.self).map(Int.init) else { return nil }
        guard length <= maxFrameBytes else { throw .frameTooLong(length, limit: maxFrameBytes) }
        guard
            buffer.readableBytes >= QSIOPFrame.headerBytes + length,
            let operation = buffer.getInteger(at: start + 2, as: UInt16.self)
        else { return nil }
        buffer.moveReaderIndex(forwardBy: QSIOPFrame.headerBytes)
        guard let body = buffer.readSlice(length: length) else { return nil }
        return QSIOPFrame(QSIOPOperation(rawValue: operation), body: body)
    }
}
