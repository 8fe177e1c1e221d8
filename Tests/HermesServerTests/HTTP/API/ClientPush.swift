// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesClient

/// The client's type, whose name the core has, too.
typealias ClientPush = Push
