/** The crawler's bundle is the same wherever it is built, so that a signed release can be verified; and it runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildBundle, notedCommit, projectFolder } from "#ops/cli/release/build-bundle";
import { pageThread } from "../../ops/bundle-crawler.mjs";
import { freePort } from "../support/free-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

let folder: string;
beforeAll(() => {
  folder = temporaryFolder("nearcrawl-builds-");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("two builds of the same sources in different folders are identical, without a path of either", async () => {
  const [here, there] = [copyOfSources("here"), copyOfSources("some/where/else")];

  const first = await buildBundle({ source: here, out: join(folder, "first.mjs") });
  const second = await buildBundle({ source: there, out: join(folder, "another-name.mjs") });
  const text = readFileSync(second.file, "utf8");

  expect(second).toMatchObject({ digest: first.digest, builtFrom: null });
  expect(text.length).toBeGreaterThan(1_000_000);
  expect([folder, projectFolder()].filter((path) => text.includes(path.slice(1)))).toEqual([]);
});

test("the file serves its local page from a thread without packages", async () => {
  const { file } = await buildBundle({ source: projectFolder(), out: join(folder, "with-page.mjs") });
  const [settings, home, port] = [join(folder, "settings.json"), join(folder, "home"), await freePort()];
  const config = {
    coordinatorUrl: "ws://127.0.0.1:9/",
    key: "k".repeat(43),
    name: "paged",
    home,
    status: { port },
  };
  writeFileSync(settings, JSON.stringify(config));
  let page = "";
  const look = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => null);
    page = (await answer?.text()) ?? "";
  };

  const crawler = spawn(process.execPath, [file, settings], { stdio: "ignore" });
  await until(() => look().then(() => page !== ""), 20_000);
  crawler.kill();
  await once(crawler, "exit");

  expect(page).toContain("Not connected");
  expect(await pageThread(projectFolder())).not.toContain("node_modules");
});

test("the note beside a bundle names its commit, and is valid for that bundle only", () => {
  const [bundle, commit] = [join(folder, "noted.mjs"), "1".repeat(40)];
  writeFileSync(`${bundle}.json`, JSON.stringify({ digest: "a".repeat(64), builtFrom: commit }));

  expect(notedCommit(bundle, "a".repeat(64))).toBe(commit);
  expect(notedCommit(bundle, "b".repeat(64))).toBeNull();
  expect(notedCommit(join(folder, "other.mjs"), "a".repeat(64))).toBeNull();
});

test("a folder without the crawler's sources is refused with a message", async () => {
  const build = buildBundle({ source: folder, out: join(folder, "none.mjs") });

  await expect(build).rejects.toThrow("does not hold the crawler's sources: name a clone of the project");
});

/** Like a clone, with the packages linked. */
function copyOfSources(name: string): string {
  const copy = join(folder, name);
  for (const part of [
    "coordinator/core",
    "coordinator/protocol",
    "migrating-crawler",
    "ops/bundle-crawler.mjs",
    "package.json",
  ]) {
    mkdirSync(dirname(join(copy, part)), { recursive: true });
    cpSync(join(projectFolder(), part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(projectFolder(), "node_modules"), join(copy, "node_modules"));
  return copy;
}
