// Hermes
// SPDX-License-Identifier: Apache-2.0

// The service worker for a page without its own service worker. A page's own service worker imports notifications.js.
import { showNotifications } from "./notifications.js";

showNotifications(self);
