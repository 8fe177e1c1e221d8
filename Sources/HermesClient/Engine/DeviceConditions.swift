// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// What the app's user and the system do to connections. The app tells it; its clients act on it.
///
/// ```swift
/// .onChange(of: scenePhase) { _, phase in
///     DeviceConditions.shared.appState = phase == .active ? .foreground : .background
/// }
/// ```
///
/// On Apple platforms ``shared`` follows the network by itself; elsewhere the app sets ``networkPath``.
public final class DeviceConditions: Sendable {
    /// How much of the device the app has.
    public enum AppState: Hashable, Sendable {
        /// People look at it: a client that waits tries at once, and a connection is checked with a heartbeat.
        case foreground
        /// It runs unseen: connections stay, with heartbeats as seldom as the network allows.
        case background
        /// It is about to be halted: connections are closed, so that the server knows to use other ways, and are not
        /// opened again before the state changes.
        case suspended
    }

    /// All conditions in one moment.
    struct Snapshot: Hashable, Sendable {
        var appState = AppState.foreground
        var path = NetworkPath.unknown

        /// There is no point in trying to connect.
        var isHeld: Bool { appState == .suspended || !path.isUsable }
    }

    private struct State {
        var snapshot = Snapshot()
        var heartbeats: any HeartbeatStore = MemoryHeartbeatStore()
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastObserver: UInt64 = 0
    }

    /// The process's own.
    public static let shared: DeviceConditions = {
        let conditions = DeviceConditions()
        #if canImport(Network)
        conditions.followNetwork()
        #endif
        return conditions
    }()

    private let state = NIOLockedValueBox(State())

    /// Creates conditions of a foreground app in a usable network.
    public init() {}

    /// How much of the device the app has; in the beginning: foreground.
    public var appState: AppState {
        get { snapshot.appState }
        set { change { $0.appState = newValue } }
    }

    /// The network that the device is in; in the beginning: an unknown one, taken for usable.
    public var networkPath: NetworkPath {
        get { snapshot.path }
        set { change { $0.path = newValue } }
    }

    /// Where clients keep what they learn about networks; in the beginning: in memory. Set it before clients start.
    public var heartbeatStore: any HeartbeatStore {
        get { state.withLockedValue { $0.heartbeats } }
        set { state.withLockedValue { $0.heartbeats = newValue } }
    }

    var snapshot: Snapshot { state.withLockedValue { $0.snapshot } }

    /// Calls the observer after each change, on any thread; it reads the snapshot when it gets to it.
    ///
    /// - Returns: for `stopObserving`.
    func observe(_ observer: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLockedValue { state in
            state.lastObserver &+= 1
            state.observers[state.lastObserver] = observer
            return state.lastObserver
        }
    }

    func stopObserving(_ id: UInt64) { state.withLockedValue { $0.observers[id] = nil } }

    var observerCount: Int { state.withLockedValue { $0.observers.count } }

    private func change(_ body: (inout Snapshot) -> Void) {
        let observers = state.withLockedValue { state in
            let before = state.snapshot
            body(&state.snapshot)
            return state.snapshot == before ? [] : Array(state.observers.values)
        }
        for observer in observers { observer() }
    }
}
