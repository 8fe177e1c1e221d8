// Hermes
// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

/// Converts bytes for the generated messages, without an import of Foundation.
func protobufBytes<Bytes: SwiftProtobufContiguousBytes>(_ bytes: some Sequence<UInt8>) -> Bytes { Bytes(bytes) }
