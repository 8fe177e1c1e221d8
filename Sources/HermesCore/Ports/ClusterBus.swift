// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Carries messages between the processes of the server. The bus may lose, delay and repeat messages. Messages that
/// must not be lost are numbered, so that the receiver sees a gap. The receiver repairs the gap by reading the record
/// (the content of the stores that all nodes share) or by asking.
///
/// Implementations: `Cluster/LoneNode`, which does nothing, and `MemoryBus` of HermesTestKit.
package protocol ClusterBus: Sendable {
    /// This process as other nodes know it; nil: it is alone, and nothing is sent.
    var node: NodeIdentity? { get }

    /// Begins to receive; called once, before anything is sent.
    func start(_ receiver: any BusReceiver)

    /// Sends a message to nodes. The messages of one link (from a node to another) are numbered: the receiver gets each
    /// at most once and in ascending order, and is told of a gap (``BusReceiver/missed(from:)``). Never waits.
    func publish(_ message: ClusterMessage, to nodes: NodeSet)

    /// Sends each of the nodes the number of the last message of its link, so that the node notices the loss of that
    /// message. Called about once a second.
    func beat(to nodes: NodeSet)

    /// Sends a message that may be lost and is of use only now. Never waits.
    func hint(_ hint: ClusterHint, to nodes: NodeSet)

    /// Asks a node a question. The node carries out a question at most once.
    ///
    /// - Returns: nil if no answer arrived in time; the question may have been carried out.
    func ask(_ question: ClusterQuestion, of node: NodeID) async -> ClusterAnswer?

    /// Ends receiving.
    func stop()
}

/// The receiver of a ``ClusterBus``. Called on any thread, for one link by one thread at a time; must not block.
package protocol BusReceiver: AnyObject, Sendable {
    func received(_ message: ClusterMessage, from node: NodeIdentity)
    /// Messages of the link from this node are lost. If they still arrive, they are not delivered any more.
    func missed(from node: NodeIdentity)
    func hinted(_ hint: ClusterHint, from node: NodeIdentity)
    func answer(to question: ClusterQuestion, from node: NodeIdentity) async -> ClusterAnswer
}
