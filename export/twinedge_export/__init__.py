"""Turning a fitted model into files for a device. For workstations: it imports TensorFlow."""

from twinedge_export.deploy import FORMATS, Export, export
from twinedge_export.quantise import quantise

__all__ = ["FORMATS", "Export", "export", "quantise"]
