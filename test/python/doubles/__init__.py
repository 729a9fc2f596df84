# SPDX-License-Identifier: Apache-2.0
"""Doubles of what the engines call and are called by, written from their interfaces, versioned by name."""
