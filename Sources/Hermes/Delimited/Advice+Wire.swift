// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

extension HermesClientError {
    init(_ error: Hermes_V1_Error) {
        self.init(
            Code(rawValue: error.code),
            error.message.isEmpty ? "the server refused without saying why" : error.message,
            retryAfter: error.retryAfterMs == 0 ? nil : .milliseconds(Int64(error.retryAfterMs))
        )
    }
}

extension ConnectionEngine.StateMachine.Advice {
    init(_ advice: Hermes_V1_ReconnectAdvice) {
        self.init(
            notBefore: .milliseconds(Int64(advice.notBeforeMs)),
            window: .milliseconds(Int64(advice.windowMs)),
            endpoint: ServerAddress.Endpoint(advice.address)
        )
    }
}
