// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry point for libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzQSIOP(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    fuzz(input, with: QSIOPFrameDecoder.self, limit: 1_024, isExact: true) { frame in
        let isText = String(validating: frame.body.readableBytesView, as: UTF8.self) != nil
        guard let properties = try? frame.properties() else {
            invariant(!isText, "properties in UTF-8 were refused")
            return
        }
        invariant(isText, "properties that are not UTF-8 were accepted")
        for pair in properties.pairs {
            invariant(!pair.key.utf8.contains { $0 == 0x0A || $0 == 0x3A }, "a key with a separator")
            invariant(!pair.value.utf8.contains(0x0A), "a value with a separator")
            invariant(properties[pair.key] != nil, "a key that is not found")
        }
        let written = QSIOPFrame(frame.operation, properties)
        // Each line grows by at most a colon and a line feed.
        invariant(
            written.body.readableBytes <= frame.body.readableBytes + properties.pairs.count + 1,
            "more is written than was read"
        )
        invariant((try? written.properties()) == properties, "what is written is not read again")

        var copied = QSIOPProperties()
        for pair in properties.pairs { copied.append(pair.key, pair.value) }
        // A peer may send CR and NUL; the server does not.
        func hasEnd(_ pair: QSIOPProperties.Pair) -> Bool {
            (pair.key + pair.value).utf8.contains { $0 == 0x0D || $0 == 0x00 }
        }
        let isHarmless = !properties.pairs.contains(where: hasEnd)
        invariant(!isHarmless || copied == properties, "what was read would be replaced when written")
        invariant(!copied.pairs.contains(where: hasEnd), "the end of a line or of a string is written")
        // The other direction: any text is a harmless value and a harmless key.
        let text = String(decoding: input, as: UTF8.self)
        let harmless = QSIOPFrame(.push, [text: text])
        invariant((try? harmless.properties())?.pairs.count == 1, "a value pretended to be a line")
    }
    return 0
}
