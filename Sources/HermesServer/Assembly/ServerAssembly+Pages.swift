// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import HermesGateways
import HermesPush

extension ServerAssembly {
    /// The pages of the HTTP port.
    ///
    /// - Parameter routes: the routes of the HTTP API; nil: it is switched off.
    static func pages(_ settings: ServerSettings, routes: [APIRoute]?, core: APICore) -> Pages {
        Pages(
            settings.pages,
            routes: routes,
            isAnonymousAllowed: settings.gateways.access.isAnonymousAllowed,
            hasKeys: settings.store != .memory,
            program: LocalProgram(settings),
            frames: settings.frames,
            pushKey: settings.push.webPush?.publicKey ?? "",
            audience: RoomAudience(
                isAnonymousAllowed: settings.isAnonymousAllowedOverHTTP,
                access: core.access,
                uptime: { [time = core.messenger.time] in time.uptime() },
                count: { [topics = core.topics] room in await topics.subscriberCount(of: room.topic) }
            )
        )
    }

    /// The first page names the listeners once all are open.
    func showListeners(_ addresses: [BoundAddress]) { pages.home.opened(homeListeners(addresses)) }

    /// The list on the page at `/`. Strangers need to know neither the console nor a port whose address clients get
    /// from the server.
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
