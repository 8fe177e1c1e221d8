// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// Combines the configured push services. Each notification goes to its token's service.
package struct PushServices: PushSender {
    package var apns: ReloadableSender?
    package var fcm: ReloadableSender?
    package var webPush: ReloadableSender?

    package init(apns: ReloadableSender? = nil, fcm: ReloadableSender? = nil, webPush: ReloadableSender? = nil) {
        self.apns = apns
        self.fcm = fcm
        self.webPush = webPush
    }

    /// Whether no service is configured.
    package var isEmpty: Bool { apns == nil && fcm == nil && webPush == nil }

    /// Reads the keys of all services again, one service after the other.
    ///
    /// - Parameter note: gets the name and the result of each service. A service whose key is unusable keeps the old
    ///   key.
    package func reload(note: (String, Result<ReloadableSender.Reloaded, PushConfigurationError>) -> Void) async {
        for (name, sender) in [("apns", apns), ("fcm", fcm), ("web_push", webPush)] {
            guard let sender else { continue }
            do throws(PushConfigurationError) {
                note(name, .success(try await sender.reload()))
            } catch {
                note(name, .failure(error))
            }
        }
    }

    private func sender(of service: PushToken.Service) -> (any PushSender)? {
        switch service {
        case .apns, .apnsSandbox: apns
        case .fcm: fcm
        case .webPush: webPush
        }
    }

    package func send(_ delivery: PushDelivery) async -> PushSendOutcome {
        let service = delivery.token.service
        guard let sender = sender(of: service) else { return .refused(reason: "\(service.name) is not configured") }
        return await sender.send(delivery)
    }
}
