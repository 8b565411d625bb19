"""A folder as bytes and back, for `to_bytes` and `from_bytes`. A plain archive: nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

from spen_plugins import RunError


def pack(folder: Path) -> bytes:
    """All files below a folder; equal folders give equal bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes())
    return packed.getvalue()


def unpack(data: bytes, folder: Path) -> None:
    """The inverse of `pack`; names that lead out of the folder are cut, so that nothing is written elsewhere.
    `RunError` if the bytes aren't an archive, or files in it are compressed or overlap."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > len(data):
                raise RunError("the component's bytes unpack to more than they hold; expected the output of to_bytes")
            archive.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, RuntimeError, EOFError) as error:
        raise RunError(f"the component's bytes are damaged: {error}") from error
