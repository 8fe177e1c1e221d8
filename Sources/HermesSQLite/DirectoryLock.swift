// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import HermesCore
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Keeps a second server away from a data directory by two exclusive locks (`flock`): one on a file in the directory,
/// and one on the directory itself. The second lock remains even if somebody removes the file. The system releases
/// both locks when the process ends, however it ends.
final class DirectoryLock: Sendable {
    private let descriptors: Mutex<[CInt]>

    init(directory: String) throws(StoreOpenError) {
        let path = directory + "/hermes.lock"
        let file = DirectoryOwner.openFile(path, in: directory, O_RDWR | O_CLOEXEC)
        guard file >= 0 else {
            throw StoreOpenError(
                reason: errno == ENOSPC ? .diskFull : .unwritable,
                path: path,
                message: "Cannot be opened for writing (\(String(cString: strerror(errno)))). Check its owner and mode."
            )
        }
        var descriptors = [file]
        var failure = flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno
        if failure == 0 {
            let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            if folder >= 0 { descriptors.append(folder) }
            // Network file systems do not lock directories. There the lock on the file is the only one.
            if folder >= 0, flock(folder, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK { failure = EWOULDBLOCK }
        }
        guard failure == 0 else {
            for descriptor in descriptors { close(descriptor) }
            throw StoreOpenError(
                reason: failure == EWOULDBLOCK ? .locked : .failed,
                path: directory,
                message: failure == EWOULDBLOCK
                    ? "Another process uses this data directory. Stop it, or choose another directory."
                    : "Cannot be locked (\(String(cString: strerror(failure))))."
            )
        }
        self.descriptors = Mutex(descriptors)
    }

    /// Releases the locks.
    func release() {
        descriptors.withLock { descriptors in
            for descriptor in descriptors { close(descriptor) }
            descriptors = []
        }
    }

    deinit {
        release()
    }
}
