"""Turning a fitted model into files for a device. For workstations: it imports TensorFlow."""

from twinedge_export.quantise import quantise

__all__ = ["quantise"]
