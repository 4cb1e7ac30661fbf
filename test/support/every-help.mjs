// Prints the help of the given commands in one process, and on standard error which files were loaded and their bytes.
// Arguments: the built program, and the commands as JSON.
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { watchLoading } from "./loaded-files.mjs";

const [main, paths] = process.argv.slice(2);
const loaded = watchLoading();
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0);
for (const [index, path] of [[], ...JSON.parse(paths)].entries()) {
  process.argv = [process.execPath, main, ...path, "--help"];
  await import(`${pathToFileURL(main).href}?${index}`);
}
const files = loaded();
const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
process.stderr.write(JSON.stringify({ files, bytes }));
