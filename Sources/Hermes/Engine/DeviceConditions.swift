// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// The state of the app and of the network. The app sets the state, and the app's clients act on it.
///
/// ```swift
/// .onChange(of: scenePhase) { _, phase in
///     DeviceConditions.shared.appState = phase == .active ? .foreground : .background
/// }
/// ```
///
/// On Apple platforms ``shared`` follows the network by itself; elsewhere the app sets ``networkPath``.
public final class DeviceConditions: Sendable {
    /// The app's state.
    public enum AppState: Hashable, Sendable {
        /// The user looks at the app. A waiting client tries to connect at once, and an open connection is checked
        /// with a heartbeat.
        case foreground
        /// The app runs in the background. Connections stay open. With ``HeartbeatPolicy/adaptive``, heartbeats are as
        /// infrequent as the network allows.
        case background
        /// The app is about to be suspended. Connections are closed until the state changes, so that the server uses
        /// push services.
        case suspended
    }

    /// The conditions at one moment.
    struct Snapshot: Hashable, Sendable {
        var appState = AppState.foreground
        var path = NetworkPath.unknown

        /// Whether clients must not try to connect, because the app is suspended or the network is not usable.
        var isHeld: Bool { appState == .suspended || !path.isUsable }
    }

    struct State {
        var snapshot = Snapshot()
        var heartbeats: any HeartbeatStore = MemoryHeartbeatStore()
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastObserver: UInt64 = 0
    }

    /// The conditions of this process.
    public static let shared: DeviceConditions = {
        let conditions = DeviceConditions()
        #if canImport(Network)
        conditions.followNetwork()
        #endif
        return conditions
    }()

    let state = NIOLockedValueBox(State())

    /// Creates conditions of an app in the foreground with a usable network.
    package init() {}

    /// The app's state; initially ``AppState/foreground``.
    public var appState: AppState {
        get { snapshot.appState }
        set { change { $0.appState = newValue } }
    }

    /// The device's network; initially an unknown network that counts as usable.
    public var networkPath: NetworkPath {
        get { snapshot.path }
        set { change { $0.path = newValue } }
    }

    /// Keeps each network's learned heartbeat interval in a file, so that the next run of the app need not learn it
    /// again. Call this method before clients start.
    ///
    /// - Parameter path: the file; its folder must exist.
    public func keepHeartbeats(inFile path: String) { heartbeatStore = FileHeartbeatStore(path: path) }

    /// The store for learned heartbeats; initially in memory. Set it before clients start.
    package var heartbeatStore: any HeartbeatStore {
        get { state.withLockedValue { $0.heartbeats } }
        set { state.withLockedValue { $0.heartbeats = newValue } }
    }

    var snapshot: Snapshot { state.withLockedValue { $0.snapshot } }

    /// Calls the observer after each change, on any thread. The observer reads the snapshot when it runs.
    ///
    /// - Returns: the id for `stopObserving`.
    func observe(_ observer: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLockedValue { state in
            state.lastObserver &+= 1
            state.observers[state.lastObserver] = observer
            return state.lastObserver
        }
    }

    func stopObserving(_ id: UInt64) { state.withLockedValue { $0.observers[id] = nil } }

    private func change(_ body: (inout Snapshot) -> Void) {
        let observers = state.withLockedValue { state in
            let before = state.snapshot
            body(&state.snapshot)
            return state.snapshot == before ? [] : Array(state.observers.values)
        }
        for observer in observers { observer() }
    }
}
