// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Carries messages between the processes of the server. The bus may lose, delay and repeat messages. Messages that
/// must not be lost are numbered, so that the receiver sees a gap. The receiver repairs the gap. It reads the record
/// (the content of the stores that all nodes share), or it asks other nodes.
///
/// Implementations: `Cluster/LoneNode`, which does nothing, and `MemoryBus` of HermesTestKit.
package protocol ClusterBus: Sendable {
    /// The identity of this process for other nodes; nil if the process is alone. Then nothing is sent.
    var node: NodeIdentity? { get }

    /// Begins to receive. This is called once, before anything is sent.
    func start(_ receiver: any BusReceiver)

    /// Sends a message to nodes. The messages of one link (from a node to another) are numbered. The receiver gets each
    /// message at most once, in ascending order. A gap is reported to the receiver (``BusReceiver/missed(from:)``). The
    /// call never waits.
    func publish(_ message: ClusterMessage, to nodes: NodeSet)

    /// Sends each of the nodes the number of the last message of the link to this node, so that the node notices the
    /// loss of that message. This is called about once a second.
    func beat(to nodes: NodeSet)

    /// Sends a message that may be lost and that is soon out of date. The call never waits.
    func hint(_ hint: ClusterHint, to nodes: NodeSet)

    /// Asks a node a question. The node carries out a question at most once.
    ///
    /// - Returns: nil if no answer arrived in time. The node may have carried out the question even then.
    func ask(_ question: ClusterQuestion, of node: NodeID) async -> ClusterAnswer?

    /// Stops receiving.
    func stop()
}

/// The receiver of a ``ClusterBus``. Its functions are called on any thread. For one link, only one thread calls them
/// at a time. They must not block.
package protocol BusReceiver: AnyObject, Sendable {
    func received(_ message: ClusterMessage, from node: NodeIdentity)
    /// Messages of the link from this node are lost. If they arrive later, they are not delivered.
    func missed(from node: NodeIdentity)
    func hinted(_ hint: ClusterHint, from node: NodeIdentity)
    func answer(to question: ClusterQuestion, from node: NodeIdentity) async -> ClusterAnswer
}
