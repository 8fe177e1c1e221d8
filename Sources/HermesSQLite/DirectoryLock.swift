// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Keeps a second server away from a data directory: an exclusive `flock` on a file in it. The system releases it when
/// the process ends, however it ends.
final class DirectoryLock: Sendable {
    private let descriptor: Mutex<Int32?>

    init(directory: String) throws(StoreOpenError) {
        let path = directory + "/hermes.lock"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreOpenError(
                reason: errno == ENOSPC ? .diskFull : .unwritable,
                path: path,
                message: "Cannot be opened for writing (\(String(cString: strerror(errno)))). Check its owner and mode."
            )
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            close(descriptor)
            throw StoreOpenError(
                reason: reason == EWOULDBLOCK ? .locked : .failed,
                path: directory,
                message: reason == EWOULDBLOCK
                    ? "Another process uses this data directory. Stop it, or choose another directory."
                    : "Cannot be locked (\(String(cString: strerror(reason))))."
            )
        }
        self.descriptor = Mutex(descriptor)
    }

    /// Releases the lock.
    func release() {
        descriptor.withLock { descriptor in
            if let open = descriptor { close(open) }
            descriptor = nil
        }
    }

    deinit {
        release()
    }
}
