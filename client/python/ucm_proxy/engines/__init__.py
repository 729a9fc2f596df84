# SPDX-License-Identifier: Apache-2.0
"""Adapters for inference engines, a module each; none imports its engine before it is used."""
