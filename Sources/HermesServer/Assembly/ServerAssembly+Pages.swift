// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import HermesGateways
import HermesPush

extension ServerAssembly {
    /// Creates the pages of the HTTP port.
    ///
    /// - Parameter routes: the routes of the HTTP API; nil if the API is switched off.
    static func pages(_ settings: ServerSettings, routes: [APIRoute]?, core: APICore) -> Pages {
        Pages(
            settings.pages.served,
            routes: routes,
            isAnonymousAllowed: settings.gateways.access.isAnonymousAllowed,
            hasKeys: settings.data.storeKind != .memory,
            program: LocalProgram(settings),
            frames: settings.pages.frames,
            pushKey: settings.push.webPush?.publicKey ?? "",
            audience: RoomAudience(
                isAnonymousAllowed: settings.isAnonymousAllowedOverHTTP,
                access: core.access,
                uptime: { [time = core.messenger.time] in time.uptime() },
                count: { [topics = core.topics] room in await topics.subscriberCount(of: room.topic) }
            )
        )
    }

    /// Shows the listeners on the home page, once all are open.
    func showListeners(_ addresses: [BoundAddress]) { pages.home.opened(homeListeners(addresses)) }

    /// Returns the listeners for the page at `/`. The console and the STUN port are private: strangers do not need the
    /// console, and clients get the address of the STUN port from the server.
    private func homeListeners(_ addresses: [BoundAddress]) -> [HomePage.Listener] {
        var listed = addresses.map { address in
            let (gateway, isEncrypted) = settings.kind(ofListener: address.name)
            let isPrivate = address.name == "console"
            return HomePage.Listener(address: address, gateway: gateway, isEncrypted: isEncrypted, isPrivate: isPrivate)
        }
        if let stun {
            let address = BoundAddress(name: "stun", host: settings.gateways.stun.host, port: stun.port)
            listed.append(HomePage.Listener(address: address, gateway: "stun", isEncrypted: false, isPrivate: true))
        }
        return listed
    }
}
#endif
