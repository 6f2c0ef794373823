"""Files of containers written by hand, and whether arrays are mapped."""

import io
import json
import zipfile

import numpy as np


def forge(path, payload, entry=None, compression=zipfile.ZIP_STORED, version=1, names=("a",)):
    """Write a file with correct checksums and wrong content."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        entries = []
        for i, name in enumerate(names):
            archive.writestr(f"arrays/{i}.npy", payload)
            entries.append(
                {
                    "name": name,
                    "shape": [2],
                    "dtype": "<f8",
                    "crc32": archive.getinfo(f"arrays/{i}.npy").CRC,
                    **(entry or {}),
                }
            )
        archive.writestr(
            "structsolve.json",
            json.dumps(
                {
                    "format": "structsolve",
                    "format_version": version,
                    "structsolve_version": "0",
                    "kind": "model",
                    "meta": {},
                    "arrays": entries,
                }
            ),
        )


def npy(array, version=(1, 0), **header):
    out = io.BytesIO()
    if header:
        np.lib.format.write_array_header_1_0(
            out, {"descr": "<f8", "fortran_order": False, "shape": (2,), **header}
        )
        out.write(array.tobytes())
    else:
        np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def is_mapped(array):
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False
