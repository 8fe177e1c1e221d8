// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A child process that runs another program. It inherits only the file descriptors that it is given. With Musl, and
/// with glibc before 2.34, it also inherits all descriptors that are not marked close-on-exec.
///
/// Foundation's `Process` is not used. On Linux it first examines each open descriptor of this process, and crashes if
/// other tests open and close descriptors meanwhile.
package struct ChildProcess {
    private let id: pid_t

    /// - Parameters:
    ///   - path: the program's path.
    ///   - input: the descriptor for standard input; nil means `/dev/null`.
    ///   - output: the descriptor for standard output; nil means `/dev/null`.
    package init(_ path: String, _ arguments: [String], input: Int32? = nil, output: Int32? = nil) throws {
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        #else
        var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (own, theirs) in [(input, STDIN_FILENO), (output, STDOUT_FILENO), (nil, STDERR_FILENO)] {
            if let own {
                posix_spawn_file_actions_adddup2(&actions, own, theirs)
            } else {
                posix_spawn_file_actions_addopen(&actions, theirs, "/dev/null", O_RDWR, 0)
            }
        }
        // If the program inherited the sockets of other tests, these would stay open until the program ends.
        #if canImport(Darwin)
        var attributes: posix_spawnattr_t?
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_CLOEXEC_DEFAULT))
        #else
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        Self.closeAll(&actions)
        #endif
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var id: pid_t = 0
        let error = posix_spawn(&id, path, &actions, &attributes, &words, environ)
        guard error == 0 else { throw Failed(program: path, reason: String(cString: strerror(error))) }
        self.id = id
    }

    #if canImport(Glibc)
    private typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32

    /// Makes the program start without any other descriptors. The function is looked up at run time, because Swift does
    /// not import functions that need `_GNU_SOURCE`.
    private static func closeAll(_ actions: inout posix_spawn_file_actions_t) {
        guard let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else { return }
        _ = unsafeBitCast(symbol, to: CloseFrom.self)(&actions, STDERR_FILENO + 1)
    }
    #elseif !canImport(Darwin)
    private static func closeAll(_ actions: inout posix_spawn_file_actions_t) {}
    #endif

    /// Runs a program to its end.
    ///
    /// - Throws: if the program cannot be started, or does not end with the code 0.
    package static func run(_ path: String, _ arguments: [String]) throws {
        let status = try ChildProcess(path, arguments).waitUntilExit()
        guard status == 0 else { throw Failed(program: path, reason: "\(arguments) ended with \(status)") }
    }

    package func terminate() { kill(id, SIGTERM) }

    /// Waits until the program has ended. Only the first call returns its status.
    ///
    /// - Returns: the status from `waitpid`, which is 0 if the program succeeded; -1 if an earlier call has waited for
    ///   the program.
    @discardableResult package func waitUntilExit() -> Int32 {
        var status: Int32 = 0
        while waitpid(id, &status, 0) < 0 { if errno != EINTR { return -1 } }
        return status
    }

    package struct Failed: Error {
        let program: String
        let reason: String
    }
}
