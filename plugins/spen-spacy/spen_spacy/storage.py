"""A folder as bytes and back, for `to_bytes` and `from_bytes`. A plain archive: nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path, PurePosixPath

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
    """The inverse of `pack`.

    Raises:
        RunError: the bytes aren't an archive, or a file in it would be outside the folder, is compressed or overlaps
            another: few bytes may stand for many.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            stored = (info.file_size for info in archive.infolist() if info.compress_type == zipfile.ZIP_STORED)
            if (size := sum(stored)) > len(data):
                found = f"files of {size:,} bytes in {len(data):,}"
                raise RunError(f"the component's bytes hold {found}; expected files that do not overlap")
            for info in archive.infolist():
                name = PurePosixPath(info.filename)
                if name.is_absolute() or ".." in name.parts or any(mark in info.filename for mark in "\\:"):
                    raise RunError(
                        f"the component's bytes hold a file {info.filename!r}; expected names below a folder"
                    )
                if info.compress_type != zipfile.ZIP_STORED:
                    raise RunError(
                        f"the component's bytes hold {info.filename!r} compressed; to_bytes writes plain files"
                    )
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(info))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, OSError, RuntimeError, EOFError) as error:
        raise RunError(f"the component's bytes are damaged: {error}") from error
