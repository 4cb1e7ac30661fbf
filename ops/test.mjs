// Runs everything that CI runs: the tests, and type check, format and lint beside them. The last line counts the tests.
// Arguments are passed to vitest (`npm test -- test/core`).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-report-"));

/** Prints the output as it arrives, or `inOnePiece` at the end. */
async function run(title, script, args, { inOnePiece = false } = {}) {
  if (!inOnePiece) process.stdout.write(`\n# ${title}\n`);
  const stdio = inOnePiece ? ["ignore", "pipe", "pipe"] : "inherit";
  const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio });
  const pieces = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => pieces.push(piece));
  const [status, signal] = await once(child, "close");
  if (inOnePiece) process.stdout.write(`\n# ${title}\n${Buffer.concat(pieces)}`);
  if (signal) process.stdout.write(`# ${title}: ended by ${signal}\n`);
  return status === 0;
}

const packageFile = (name, path) => join(dirname(require.resolve(`${name}/package.json`)), path);
const report = join(folder, "report.json");

/** Runs beside the tests, which mostly wait at their beginning and end. */
async function checkSource() {
  const inOnePiece = { inOnePiece: true };
  const types = packageFile("typescript", "bin/tsc");
  const style = packageFile("@biomejs/biome", "bin/biome");
  return [
    await run("types", types, ["-p", "tsconfig.json", "--noEmit"], inOnePiece),
    await run("format and lint", style, ["check", "."], inOnePiece),
  ];
}

const source = checkSource();
const testsHold = await run("tests", packageFile("vitest", "vitest.mjs"), [
  "run",
  "--reporter=default",
  "--reporter=json",
  `--outputFile.json=${report}`,
  ...process.argv.slice(2),
]);
const [typesHold, styleHolds] = await source;

let counted = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 };
try {
  counted = JSON.parse(readFileSync(report, "utf8"));
} catch {
  process.stdout.write("the test runner left no report\n");
}
rmSync(folder, { recursive: true, force: true });

// A file that fails before its first test makes the run fail without a failed test.
const brokenFiles = counted.numFailedTests === 0 && !testsHold ? 1 : 0;
const failed = counted.numFailedTests + brokenFiles + (typesHold ? 0 : 1) + (styleHolds ? 0 : 1);
const skipped = (counted.numPendingTests ?? 0) + (counted.numTodoTests ?? 0);
process.stdout.write(`\n${counted.numPassedTests} passed, ${failed} failed, ${skipped} skipped\n`);
process.exit(typesHold && styleHolds && testsHold ? 0 : 1);
