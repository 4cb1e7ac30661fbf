/** After a SIGKILL of the supervisor anywhere in a swap, its successor continues correctly. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emptyState, releaseState } from "#crawler/core/release-state";
import { ReleaseShelf } from "#crawler/supervisor/release-store";
import { runningSupervisor } from "#crawler/supervisor/supervisor-home";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";
import {
  bundleText,
  type Home,
  offer,
  type Published,
  type ReleaseWorld,
  startReleaseWorld,
} from "./release-world.ts";

const root = join(import.meta.dirname, "../../..");
const soonMs = 25_000;
let scratch: string;
let program: string;
const worlds: ReleaseWorld[] = [];
const processes: ChildProcess[] = [];
beforeAll(async () => {
  scratch = temporaryFolder("nearcrawl-killed-dock-");
  program = join(scratch, "dock-process.mjs");
  await build({
    entryPoints: [join(import.meta.dirname, "supervisor-process.ts")],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["nearcrawl-source"],
    absWorkingDir: root,
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    logLevel: "error",
  });
});
afterAll(async () => {
  for (const one of processes) one.kill("SIGKILL");
  await Promise.all(worlds.map((world) => world.close()));
  rmSync(scratch, { recursive: true, force: true });
});

async function newWorld(): Promise<ReleaseWorld> {
  const world = await startReleaseWorld();
  worlds.push(world);
  return world;
}

function startProcess(home: Home): ChildProcess {
  const supervisor = spawn(process.execPath, [program, home.path], { stdio: ["ignore", "pipe", "inherit"] });
  supervisor.stdout?.resume();
  processes.push(supervisor);
  return supervisor;
}

const stateOf = ({ path }: Home) =>
  releaseState.parse(JSON.parse(readFileSync(join(path, "releases/state.json"), "utf8")));

const isGood = (home: Home, digest: string) => {
  try {
    return stateOf(home).good?.digest === digest;
  } catch {
    return false;
  }
};

const isLike = (report: object, wanted: object) => expect.objectContaining(wanted).asymmetricMatch(report);

/** Code in a bundle that kills the supervisor once. */
const killSupervisor = `if (!existsSync(home + "/crawler/killed")) {
  appendFileSync(home + "/crawler/killed", "");
  process.kill(process.ppid, "SIGKILL");
}`;

describe("a supervisor that is killed", () => {
  /** The bundles' texts at each moment; `well` means that the new release must run in the end. */
  const moments: readonly [string, (text: string) => string, (text: string) => string, boolean][] = [
    [
      "when the new release stands in the state and the old crawler drains",
      (first) =>
        first.replace(
          `if (message.type === "stop") process`,
          `if (message.type === "stop") {${killSupervisor}} $&`,
        ),
      (next) => next,
      true,
    ],
    [
      "when the new crawler was just started",
      (first) => first,
      (next) => next.replace(`if (message.type !== "dock") return;`, `$&${killSupervisor}`),
      true,
    ],
    [
      "while it watches the new crawler",
      (first) => first,
      (next) => next.replace(`process.send({ type: "healthy" });`, `$&${killSupervisor}`),
      true,
    ],
    [
      "when it has returned and starts the old crawler again",
      (first) =>
        first.replace(
          `if (message.type !== "dock") return;`,
          `$&
        if (message.reports.length > 0) {${killSupervisor}}`,
        ),
      (next) => next.replace(`process.send({ type: "healthy" });`, `throw new Error("broken");`),
      false,
    ],
    [
      "each time that it starts the new crawler",
      (first) => first,
      (next) =>
        next.replace(`if (message.type !== "dock") return;`, `$&process.kill(process.ppid, "SIGKILL");`),
      false,
    ],
  ];
  it.concurrent.each(moments)("%s", async (what, ofFirst, ofNext, well) => {
    const world = await newWorld();
    const home = world.newHome();
    const version = `1.${moments.findIndex(([name]) => name === what)}`;
    const first = world.publish(version, ofFirst(bundleText(version)));
    const next = world.publish(`${version}.1`, ofNext(bundleText(`${version}.1`)));
    settle(home, world, first);
    offer(home, next);

    let supervisor = startProcess(home);
    const ended: (string | null)[] = [];
    const watch = async () => {
      for (;;) {
        const [, signal] = await once(supervisor, "exit");
        ended.push(signal);
        if (signal !== "SIGKILL") return;
        supervisor = startProcess(home);
      }
    };
    const watching = watch();

    const wanted = well ? next : first;
    const outcome = { version: next.version, state: well ? "running" : "returned" };
    await until(() => ended.length > 0 && isGood(home, wanted.digest), soonMs);
    await until(() => stateOf(home).current?.digest === wanted.digest, soonMs);
    await until(() => stateOf(home).reports.some((report) => isLike(report, outcome)), soonMs);
    await until(() => home.notes().at(-1)?.startsWith(`${wanted.version} started`) ?? false, soonMs);
    supervisor.kill("SIGTERM");
    await watching;
    expect(home.notes().at(-1)).toBe(`${wanted.version} ended`);
    expect(overlaps(home.notes())).toEqual([]);
    expect(runningSupervisor(home.path)).toBe(null);
  });

  it("while it downloads a release starts the download over", async () => {
    const world = await newWorld();
    const home = world.newHome();
    const first = world.publish("2.0", bundleText("2.0"));
    const next = world.publish("2.1", bundleText("2.1"));
    settle(home, world, first);
    offer(home, next);
    const supervisor = startProcess(home);
    world.handlers.set(`/releases/${next.digest}`, (_request, answer) => {
      answer.write(next.bytes.subarray(0, 50));
      world.handlers.clear();
      supervisor.kill("SIGKILL");
    });
    await once(supervisor, "exit");

    const after = startProcess(home);

    await until(() => isGood(home, next.digest), soonMs);
    after.kill("SIGTERM");
    await once(after, "exit");
  });
});

/** Makes the first release good on the home's disk. */
function settle(home: Home, { files }: ReleaseWorld, { version, digest, bytes }: Published): void {
  const shelf = new ReleaseShelf({ home: home.path, warn: () => {} });
  const first = { version, digest, sequence: 1, bytes: bytes.length };
  writeFileSync(shelf.bundlePath(digest), bytes);
  shelf.writeManifest(digest, JSON.parse(files.get(`/releases/${digest}/manifest.json`) as string));
  shelf.saveState({ ...emptyState, current: first, good: first });
}

/** Finds crawlers that started before the previous one had ended: two on one spool. */
function overlaps(notes: readonly string[]): string[] {
  return notes.filter((note, index) => / started /.test(note) && / started /.test(notes[index - 1] ?? ""));
}
