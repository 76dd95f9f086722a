"""Compares rows with the codec of the official package: each line is a kind, the bytes, the key and the cells of a row."""

import struct
import sys

from tablestore.metadata import INF_MAX, INF_MIN, PK_AUTO_INCR
from tablestore.plainbuffer.plain_buffer_builder import (
    PlainBufferCodedInputStream,
    PlainBufferCodedOutputStream,
    PlainBufferCrc8,
    PlainBufferInputStream,
    PlainBufferOutputStream,
)

SPECIAL = {"min": INF_MIN, "max": INF_MAX, "auto": PK_AUTO_INCR}


def value(kind, text):
    if kind == "i":
        return int(text)
    if kind == "d":
        return struct.unpack("<d", bytes.fromhex(text))[0]
    if kind == "t":
        return text == "1"
    if kind == "s":
        return bytes.fromhex(text).decode("utf-8")
    if kind == "b":
        return bytearray.fromhex(text)
    return SPECIAL[kind]


def columns(text):
    return [part.split(",") for part in text.split("|")] if text else []


def attribute(cell):
    name, _, timestamp, kind, text = cell
    content = None if kind == "-" else value(kind, text)
    return (name, content) if timestamp == "-" else (name, content, int(timestamp))


def encoded(kind, key, cells):
    # Not by PlainBufferBuilder: the size that it reckons for an update can be too small.
    stream = PlainBufferOutputStream(1 << 20)
    coded = PlainBufferCodedOutputStream(stream)
    coded.write_header()
    checksum = coded.write_primary_key(key, 0)
    if kind == "put":
        checksum = coded.write_columns([attribute(cell) for cell in cells], checksum)
    if kind == "update":
        changes = {}
        for cell in cells:
            changes.setdefault(cell[1], []).append(cell[0] if cell[1] == "DELETE_ALL" else attribute(cell))
        checksum = coded.write_update_columns(changes, checksum)
    if kind == "delete":
        checksum = coded.write_delete_marker(checksum)
    else:
        checksum = PlainBufferCrc8.crc_int8(checksum, 0)
    coded.write_row_checksum(checksum)
    return bytes(stream.get_buffer())


def main():
    rows = 0
    for line in sys.stdin:
        kind, hexed, key, cells = line.rstrip("\n").split(";")
        ours = bytes.fromhex(hexed)
        key = [(name, value(of, text)) for name, of, text in columns(key)]
        cells = columns(cells)
        theirs = encoded(kind, key, cells)
        assert ours == theirs, f"{line}\nours   {ours.hex()}\ntheirs {theirs.hex()}"
        if kind == "put":
            # Its decoder takes what a server sends.
            read_key, read_cells = PlainBufferCodedInputStream(PlainBufferInputStream(ours)).read_row()
            assert read_key == key, f"{line}: {read_key}"
            wanted = [attribute(cell) for cell in cells]
            wanted = [cell if len(cell) == 3 else (*cell, None) for cell in wanted]
            assert read_cells == wanted, f"{line}: {read_cells}"
        rows += 1
    print(f"{rows} rows")


main()
