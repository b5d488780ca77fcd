"""The first sheet of an Excel workbook, read with the standard library.

An .xlsx file is a zip of XML files. One data set comes as such a file; a dependency for that alone
would be heavier than the set.
"""

import io
import re
import xml.etree.ElementTree as ET
import zipfile

_NS = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_SHEET = "xl/worksheets/sheet1.xml"
_STRINGS = "xl/sharedStrings.xml"
_LARGEST_PART = 2**25  # bytes unpacked: a small zip can unpack to a disk full


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Unpack one file of a zip.

    Raises
    ------
    ValueError
        When it is not there, damaged, or larger than 32 MiB.
    """
    try:
        info = archive.getinfo(name)
        if info.file_size > _LARGEST_PART:
            raise ValueError(f"{name} unpacks to {info.file_size} bytes")
        return archive.read(info)
    except KeyError:
        raise ValueError(f"no {name} in the zip file") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"{name} is damaged: {error}") from None


def open_zip(data: bytes) -> zipfile.ZipFile:
    """Open a zip file held in memory; ValueError if it is not one."""
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        raise ValueError("not a zip file") from None


def first_sheet(data: bytes) -> list[dict[str, str]]:
    """Read the first sheet of a workbook.

    Parameters
    ----------
    data
        The .xlsx file.

    Returns
    -------
    list of dict
        For each row, the text of its cells by column letter; empty cells are left out.

    Raises
    ------
    ValueError
        When it is not a workbook.
    """
    with open_zip(data) as archive:
        strings = []
        if _STRINGS in archive.namelist():
            root = _parse(read_member(archive, _STRINGS), _STRINGS)
            strings = [_text(item) for item in root.iter(f"{_NS}si")]
        sheet = _parse(read_member(archive, _SHEET), _SHEET)
    rows = []
    for row in sheet.iter(f"{_NS}row"):
        cells = {}
        for cell in row.iter(f"{_NS}c"):
            text = _cell_text(cell, strings)
            if text:
                cells[re.sub(r"\d+$", "", cell.get("r", ""))] = text
        rows.append(cells)
    return rows


def _parse(xml: bytes, name: str) -> ET.Element:
    # Entities let a small XML file expand until it fills memory; a workbook has no use for them.
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        raise ValueError(f"{name} declares entities")
    try:
        return ET.fromstring(xml)
    except ET.ParseError as error:
        raise ValueError(f"{name} is damaged: {error}") from None


def _cell_text(cell: ET.Element, strings: list[str]) -> str:
    kind = cell.get("t")
    if kind == "inlineStr":
        return _text(cell)
    value = cell.findtext(f"{_NS}v") or ""
    if kind == "s":
        if not value.isdecimal() or int(value) >= len(strings):
            raise ValueError(f"cell {cell.get('r')} points to no string")
        return strings[int(value)]
    return value


def _text(element: ET.Element) -> str:
    return "".join(part.text or "" for part in element.iter(f"{_NS}t"))
