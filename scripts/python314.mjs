// CPython 3.14 where none is installed: Pyodide (CPython compiled to WebAssembly) in Node 20 or later.
//
//   mkdir -p /opt/pyodide && cd /opt/pyodide && npm install pyodide@314      (once, outside the repository)
//   node scripts/python314.mjs script.py [argument ...]
//   node scripts/python314.mjs -m pytest tests/bytecode
//   node scripts/python314.mjs -c "import sys; print(sys.version)"
//
// The repository is seen at its own path, is the working directory, and its src/ is importable. Options
// before the script:  --mount FOLDER  shows one more folder of this machine, at its own path;
//                     --path FOLDER   does that and puts it on sys.path (pure Python packages: pytest).
// PYODIDE names the folder of the npm package (default: /opt/pyodide/node_modules/pyodide).
// There are no processes, threads and sockets. The exit status is that of the script.

import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const home = process.env.PYODIDE ?? "/opt/pyodide/node_modules/pyodide";
if (!existsSync(`${home}/pyodide.mjs`)) {
  console.error(`there is no Pyodide in ${home}; the head of ${process.argv[1]} says how to get it`);
  process.exit(2);
}

const mounts = [root];
const path = [`${root}/src`];
let rest = process.argv.slice(2);
while (rest[0] === "--mount" || rest[0] === "--path") {
  const folder = resolve(rest[1]);
  mounts.push(folder);
  if (rest[0] === "--path") path.push(folder);
  rest = rest.slice(2);
}

const { loadPyodide } = await import(pathToFileURL(`${home}/pyodide.mjs`).href);
const python = await loadPyodide({ env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" } });
for (const folder of mounts) {
  python.FS.mkdirTree(folder);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, folder);
}
python.FS.chdir(root);
process.stdout.on("error", () => process.exit(1)); // whoever read the output has gone
python.setStdout({ write: (buffer) => { process.stdout.write(Buffer.from(buffer)); return buffer.length; } });
python.setStderr({ write: (buffer) => { process.stderr.write(Buffer.from(buffer)); return buffer.length; } });
python.globals.set("_given", python.toPy({ path, rest }));
process.exitCode = python.runPython(`
import os, runpy, sys, traceback

def _run(path, rest):
    sys.path[:0] = path
    sys.dont_write_bytecode = True
    try:
        if rest[:1] == ["-m"]:
            sys.argv = rest[1:]
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        elif rest[:1] == ["-c"]:
            sys.argv = ["-c", *rest[2:]]
            exec(compile(rest[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = rest
            sys.path.insert(0, os.path.dirname(os.path.abspath(rest[0])))
            runpy.run_path(rest[0], run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return int(stop.code or 0)
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0

_run(**_given)
`);
