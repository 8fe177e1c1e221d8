// Hermes
// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

/// Bytes as the generated messages hold them, without Foundation in our imports.
func protobufBytes<Bytes: SwiftProtobufContiguousBytes>(_ bytes: some Sequence<UInt8>) -> Bytes { Bytes(bytes) }
