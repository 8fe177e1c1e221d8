// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The bus of a process that is alone. Nothing is sent over it, because a process without a node has no
/// ``ClusterRoster``.
package struct LoneNode: ClusterBus {
    package init() {}

    package var node: NodeIdentity? { nil }

    package func start(_ receiver: any BusReceiver) {}

    package func publish(_ message: ClusterMessage, to nodes: NodeSet) {}

    package func beat(to nodes: NodeSet) {}

    package func hint(_ hint: ClusterHint, to nodes: NodeSet) {}

    package func ask(_ question: ClusterQuestion, of node: NodeID) async -> ClusterAnswer? { nil }

    package func stop() {}
}
