"""Workbooks written by hand, cell by cell: .xlsx and .ods as the standards say, with no library in between."""

import datetime as dt
import io
from xml.sax.saxutils import escape
from zipfile import ZipFile

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACK = "http://schemas.openxmlformats.org/package/2006"
_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def xlsx(sheets):
    """Return the bytes of a workbook {title: rows}; texts that begin with "#" are errors of a formula."""
    rels = [(f"r{i}", "worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(sheets) + 1)]
    listed = "".join(f'<sheet name="{title}" sheetId="{i}" r:id="r{i}"/>' for i, title in enumerate(sheets, 1))
    kinds = "".join(
        f'<Override PartName="/xl/{path}" ContentType="application/vnd.openxmlformats-officedocument.'
        f'spreadsheetml.{kind}+xml"/>'
        for _, kind, path in (*rels, ("", "styles", "styles.xml"), ("", "sheet.main", "workbook.xml"))
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACK}/content-types"><Default Extension="rels" ContentType='
        f'"application/vnd.openxmlformats-package.relationships+xml"/>{kinds}</Types>',
        "_rels/.rels": _relations([("w", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_REL}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relations([*rels, ("s", "styles", "styles.xml")]),
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/>'
        "</cellXfs></styleSheet>",
    }
    for i, rows in enumerate(sheets.values(), 1):
        body = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
        parts[f"xl/worksheets/sheet{i}.xml"] = f'<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData></worksheet>'
    return _zipped({name: f'<?xml version="1.0" encoding="UTF-8"?>{text}' for name, text in parts.items()})


def ods(sheets):
    """Return the bytes of a spreadsheet of OpenDocument."""
    body = "".join(
        f'<table:table table:name="{title}">'
        + "".join(f"<table:table-row>{''.join(map(_open_cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for title, rows in sheets.items()
    )
    spaces = " ".join(f'xmlns:{name}="{_ODF}:{name}:1.0"' for name in ("office", "table", "text"))
    content = (
        f'<office:document-content {spaces} office:version="1.2"><office:body><office:spreadsheet>{body}'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
    manifest = f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0">{entry}</manifest:manifest>'
    return _zipped({"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": content})


def _relations(rows):
    each = "".join(f'<Relationship Id="{key}" Type="{_REL}/{kind}" Target="{path}"/>' for key, kind, path in rows)
    return f'<Relationships xmlns="{_PACK}/relationships">{each}</Relationships>'


def _cell(value):
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value!r}</v></c>"
    if isinstance(value, dt.datetime):
        return f'<c s="1"><v>{(value - dt.datetime(1899, 12, 30)) / dt.timedelta(1)!r}</v></c>'
    if value.startswith("#"):
        return f'<c t="e"><v>{value}</v></c>'
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def _open_cell(value):
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'
    return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'


def _zipped(parts):
    out = io.BytesIO()
    with ZipFile(out, "w") as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
    return out.getvalue()
