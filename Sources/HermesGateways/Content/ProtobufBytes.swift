// Hermes
// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

/// Converts bytes to the type that the generated messages use, without an import of Foundation.
func protobufBytes<Bytes: SwiftProtobufContiguousBytes>(_ bytes: some Sequence<UInt8>) -> Bytes { Bytes(bytes) }
