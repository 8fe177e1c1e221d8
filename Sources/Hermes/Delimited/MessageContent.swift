// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A message's content. Newer versions add kinds, so a `switch` over them needs a `default`.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum MessageContent: Hashable, Sendable {
    /// A text of at most 64 KiB of UTF-8.
    case text(String)
    /// A picture, with its width and height in pixels. An unknown width or height is 0.
    case image(url: URL, width: Int, height: Int)
    /// An audio recording.
    case sound(url: URL, duration: Duration, fileName: String)
    /// A place: latitude and longitude in degrees (WGS 84), and a label.
    case location(latitude: Double, longitude: Double, label: String)
    /// A video.
    case video(url: URL, duration: Duration, thumbnailURL: URL?)
    /// A sticker.
    case expression(id: Int, name: String)
    /// Content of the application's own type.
    case custom(type: String, data: [UInt8])
    /// Content that this version does not know, or the removed content of a recalled message.
    case unknown
}
