/** A supervised process that is asked to stop ends with its work, without being killed. */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { builtDoors, projectRoot } from "../../support/built-command.ts";

// Inside the project, so that its imports resolve.
const folder = mkdtempSync(join(projectRoot, "test/ops/cli/.waiting-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("exits by itself after a signal, though its channel to the supervisor stays open", async () => {
  const script = join(folder, "waiting.mjs");
  writeFileSync(
    script,
    `import { untilAskedToStop } from "#ops/cli/until-asked-to-stop";
const asked = untilAskedToStop();
const work = setInterval(() => {}, 1000);
process.send?.("ready");
process.send?.(await asked);
clearInterval(work);
`,
  );
  await builtDoors();
  const child = fork(script, [], { execArgv: [] });
  const said: unknown[] = [];
  const ended = new Promise<[number | null, string | null]>((done) =>
    child.once("exit", (code, signal) => done([code, signal])),
  );
  child.on("message", (message) => {
    said.push(message);
    if (message === "ready") child.kill("SIGTERM");
  });

  expect(await ended).toEqual([0, null]);
  expect(said).toEqual(["ready", "signal"]);
}, 60_000);
