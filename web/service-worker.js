// Hermes
// SPDX-License-Identifier: Apache-2.0

// The service worker of a page that has none of its own. A page that has one imports notifications.js into it.
import { showNotifications } from "./notifications.js";

showNotifications(self);
