# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The common parts of all interop programs: the environment, the server process, the checks."""
