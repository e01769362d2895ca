"""FMUs that count their own steps, whoever runs them.

`counted(fmu, out)` puts count_steps.c before the library of an FMU; `Counter` is the file they count in.
"""

import mmap
import os
import re
import struct
import subprocess
import tempfile
import zipfile
import zlib
from pathlib import Path


def counted(fmu, out):
    """A copy of an FMU that counts its calls of doStep."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        with zipfile.ZipFile(fmu) as archive:
            archive.extractall(scratch / "fmu")
        description = (scratch / "fmu" / "modelDescription.xml").read_text(encoding="utf-8")
        name = re.search(r'<CoSimulation[^>]*modelIdentifier="([^"]+)"', description, re.S)[1]
        library = next((scratch / "fmu" / "binaries").glob(f"*linux*/{name}.so"))
        soname = re.search(r"SONAME\s+(\S+)", subprocess.run(["objdump", "-p", library], capture_output=True,
                                                             text=True, check=True).stdout)
        # By this name the loader looks for it, and takes what it has loaded under the same one.
        own_name = f"counted_{name}_{zlib.crc32(library.read_bytes()):08x}.so"
        inner = library.with_name(soname[1] if soname and soname[1] != library.name else own_name)
        library.rename(inner)
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-shared", "-fPIC", "-o", library,
                        Path(__file__).with_name("count_steps.c"), "-Wl,--no-as-needed", f"-L{inner.parent}",
                        f"-l:{inner.name}", "-Wl,-rpath,$ORIGIN", "-ldl"], check=True)
        with zipfile.ZipFile(out, "w") as archive:
            for file in sorted((scratch / "fmu").rglob("*")):
                archive.write(file, file.relative_to(scratch / "fmu"))
    return Path(out)


class Counter:
    """The number of steps that counted FMUs have taken since `reset`."""

    def __init__(self, file):
        Path(file).write_bytes(bytes(8))
        os.environ["FMU_DO_STEPS"] = str(file)
        with open(file, "r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), 8)

    def reset(self):
        self._memory[:8] = bytes(8)

    def __int__(self):
        return struct.unpack("Q", self._memory[:8])[0]
