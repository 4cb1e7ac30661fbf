/** zlib-sync is skipped where it does not load or would end the process. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "zlib-sync-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function packageThat(ends: string): string {
  const path = join(folder, `${ends.length}.cjs`);
  writeFileSync(
    path,
    `module.exports = { Z_SYNC_FLUSH: 2, Z_STREAM_END: 1, Inflate: class { push() {} } };
    if (process.execArgv.includes('--expose-gc')) setImmediate(() => setImmediate(() => { ${ends} }));`,
  );
  return path;
}

it("where it ends a process by itself, from Node 24 on", async () => {
  const [aborts, works] = [packageThat("process.abort()"), packageThat("")];

  expect(await loadZlibSync(aborts, 24)).toBeNull();
  expect(await loadZlibSync(works, 24)).toMatchObject({ Z_SYNC_FLUSH: 2 });
  expect(await loadZlibSync(aborts, 22)).toMatchObject({ Z_SYNC_FLUSH: 2 });
});

it("where it is not installed", async () => {
  expect(await loadZlibSync("no-such-package", 24)).toBeNull();
  expect(await loadZlibSync("no-such-package", 20)).toBeNull();
});
