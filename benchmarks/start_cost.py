"""What ``depyf_start.pth`` costs each start of Python, DEPYF_DUMP_DIR unset and set: ``python -c pass``, in turn.

    python benchmarks/start_cost.py [NUMBER]
"""

import os
import pathlib
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main(number: int = 200) -> None:
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, symlinks=True)
        packages = pathlib.Path(sysconfig.get_path("purelib", "posix_prefix", {"base": place, "platbase": place}))
        (packages / "depyf.pth").write_text(f"{ROOT / 'src'}\n")
        line = (ROOT / "src" / "depyf_start.pth").read_text()
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("DEPYF", "PYTHON"))}
        watched = {**plain, "DEPYF_DUMP_DIR": os.path.join(place, "none")}
        cases = {"without the file": (False, plain), "with it": (True, plain), "with it, variable set": (True, watched)}
        times: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(number):
            for name, (present, environment) in cases.items():
                file = packages / "depyf_start.pth"
                if present:
                    file.write_text(line)
                else:
                    file.unlink(missing_ok=True)
                begun = time.perf_counter()
                subprocess.run([f"{place}/bin/python", "-c", "pass"], env=environment, check=True)
                times[name].append(time.perf_counter() - begun)
        for name, seconds in times.items():
            print(f"{name:24} median {statistics.median(seconds) * 1000:6.2f} ms, least {min(seconds) * 1000:6.2f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
