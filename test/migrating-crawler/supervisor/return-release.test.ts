/** When a supervisor returns to the previous release, with real processes: faults, revocations, damage. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DockTiming } from "#crawler/supervisor/supervisor-home";
import { until } from "../../support/until.ts";
import { type Behaviour, bundleText, offer, startDock } from "./release-world.ts";
import {
  type Docked,
  docked,
  nextVersion,
  publish,
  reasonOf,
  running,
  soonMs,
  useReleaseWorld,
  world,
} from "./supervisor-ground.ts";

useReleaseWorld();

describe("a new release that is not well", () => {
  const bad: readonly [Behaviour, Partial<DockTiming>, RegExp][] = [
    ["crashes-at-start", {}, /^it ended 3 times by itself; .* code 1: .*the new parser cannot be loaded/],
    ["crashes-later", { watchMs: 60_000 }, /ended with code 7: .*out of memory, it seems/],
    ["hangs", { silenceMs: 800 }, /no sign of life for 0.8 s/],
    ["never-welcomed", { welcomeMs: 200 }, /did not welcome it within 0.2 s/],
  ];
  let dock: Docked;
  beforeAll(async () => {
    dock = await docked();
    running.splice(running.indexOf(dock), 1);
  });
  afterAll(() => dock.dock.stop());

  it.each(bad)(
    "because it %s gives way to the last good one, and is not tried again for now",
    async (behaviour, timing, words) => {
      const usual = { ...dock.timing };
      const release = publish(behaviour);
      Object.assign(dock.timing, timing);

      offer(dock.home, release);

      await until(() => reasonOf(dock, release, "returned") !== undefined, soonMs);
      Object.assign(dock.timing, usual);
      expect(reasonOf(dock, release, "returned")).toMatch(words);
      expect(dock.state().current?.digest).toBe(dock.first.digest);
      expect(dock.state()).toMatchObject({ offered: { digest: release.digest } });
      const bad = dock.state().bad.at(-1)!;
      expect(bad).toMatchObject({ digest: release.digest, returns: 1 });
      expect(Date.parse(bad.againAt!) - Date.parse(bad.at)).toBe(3_600_000);
      await until(() => dock.home.notes().at(-1)!.startsWith(`${dock.first.version} started`), soonMs);
      // The release that runs again forwards the report.
      const greeting = JSON.parse(
        dock.home
          .notes()
          .at(-1)!
          .replace(/^.* started /, ""),
      );
      expect(greeting.reports).toContainEqual(
        expect.objectContaining({ version: release.version, state: "returned" }),
      );
    },
  );

  it.each(["crashes-once", "is-killed-often", "finds-the-disk-full"] as const)(
    "stays when it %s: that says nothing of it",
    async (behaviour) => {
      const release = publish(behaviour);

      offer(dock.home, release);

      await until(() => dock.state().good?.digest === release.digest, soonMs);
      expect(dock.state().bad.some(({ digest }) => digest === release.digest)).toBe(false);
      expect(reasonOf(dock, release, "returned")).toBeUndefined();
    },
  );

  it("is tried again an hour later, then 4, then 16, and is bad from then on", async () => {
    let hours = 0;
    const now = () => new Date(Date.now() + hours * 3_600_000);
    const home = world.newHome();
    const first = publish();
    world.offerToAll(first);
    const again = await startDock(home, { pollMs: 30 }, now);
    running.push(again);
    await until(() => again.state().good?.digest === first.digest, soonMs);
    const release = publish("crashes-at-start");
    const starts = () => home.notes().filter((note) => note.startsWith(`${release.version} started`)).length;

    offer(home, release);
    for (const [returns, waitHours] of [1, 4, 16].entries()) {
      await until(() => again.state().bad.at(-1)?.returns === returns + 1, soonMs);
      expect(again.state()).toMatchObject({
        current: { digest: first.digest },
        offered: { digest: release.digest },
      });
      expect(starts()).toBe(3 * (returns + 1));
      hours += waitHours;
    }

    await until(() => again.state().bad.at(-1)?.againAt === null, soonMs);
    expect(again.state().bad.at(-1)).toMatchObject({ digest: release.digest, returns: 4 });
    expect(starts()).toBe(12);
    writeFileSync(join(home.path, "offer"), "");
    offer(home, release);
    await until(() => reasonOf(again, release, "refused") !== undefined, soonMs);
  });

  it("is not held well because the one before it has passed its watch while it drained", async () => {
    const home = world.newHome();
    const version = nextVersion();
    const drains = bundleText(version).replace(
      `if (message.type === "stop") process.exit(0);`,
      `if (message.type === "stop") return setTimeout(() => process.exit(0), 800);`,
    );
    const first = world.publish(version, drains);
    world.offerToAll(first);
    const before = await startDock(home);
    await until(() => before.state().good?.digest === first.digest, soonMs);
    await before.dock.stop();
    const release = publish("crashes-at-start");
    offer(home, release);
    const watchMs = 600;

    const dock = await startDock(home, { watchMs });
    running.push(dock);

    await until(() => reasonOf(dock, release, "returned") !== undefined, soonMs);
    expect(dock.state().current?.digest).toBe(first.digest);
  });

  it("stays when the coordinator answers nobody: that is not its fault", async () => {
    const dock = await docked({ welcomeMs: 100 });
    const release = publish("never-welcomed");
    offer(dock.home, release);
    await until(() => dock.state().current?.digest === release.digest, soonMs);
    let asked = 0;
    world.handlers.set("/releases/keys.json", (_request, answer) => {
      asked += 1;
      answer.destroy();
    });

    await until(() => asked > 3, soonMs);
    expect(dock.state().current?.digest).toBe(release.digest);

    world.handlers.clear();
    await until(() => dock.state().current?.digest === dock.first.digest, soonMs);
  });
});

describe("a release that is revoked while it runs", () => {
  it("gives way at once to the last good one", async () => {
    const dock = await docked({ pollMs: 30 });
    const next = publish();
    offer(dock.home, next);
    await until(() => dock.state().good?.digest === next.digest, soonMs);

    world.revoke(1, next);

    await until(() => dock.home.notes().at(-1)!.startsWith(`${dock.first.version} started`), soonMs);
    // The reports may be empty, because the release that runs again may have forwarded them.
    expect(dock.state().bad).toContainEqual(
      expect.objectContaining({ digest: next.digest, reason: "it was revoked: it lies" }),
    );
    expect(dock.state().good?.digest).toBe(dock.first.digest);
  });

  it("ends where there is no other; a dock that starts later does not run it either", async () => {
    const dock = await docked({ pollMs: 30 });
    world.revoke(1, dock.first);
    await until(() => dock.home.notes().at(-1) === `${dock.first.version} ended`, soonMs);
    await dock.dock.stop();
    world.files.delete("/releases/revocations.json");

    const later = await startDock(dock.home);
    running.push(later);

    expect(later.state().current).toBe(null);
    expect(dock.home.notes()).toHaveLength(2);
  });
});

describe("a good release", () => {
  it("that crashes is started again, and the coordinator is told its last words", async () => {
    const home = world.newHome();
    const first = publish("crashes-when-told");
    world.offerToAll(first);
    const dock = await startDock(home);
    running.push(dock);
    await until(() => dock.state().good?.digest === first.digest, soonMs);

    writeFileSync(join(home.path, "crawler/crash"), "");

    await until(() => home.notes().length === 3, soonMs);
    const { lastEnd } = JSON.parse(home.notes()[2]!.replace(/^.* started /, ""));
    expect(lastEnd.reason).toMatch(/^release .*: it ended with code 1: .*a page that nobody had thought of/);
    expect(dock.state().current?.digest).toBe(first.digest);
  });

  it("whose file was damaged on the disk is not run: the one before it is", async () => {
    const dock = await docked();
    const next = publish();
    offer(dock.home, next);
    await until(() => dock.state().good?.digest === next.digest, soonMs);
    await dock.dock.stop();
    const file = join(dock.home.path, "releases", `${next.digest}.mjs`);
    writeFileSync(file, readFileSync(file, "utf8").replace("ended", "3nded"));

    const again = await startDock(dock.home);
    running.push(again);

    expect(again.state().current?.digest).toBe(dock.first.digest);
    // The release may be fetched again.
    expect(again.state().bad).toEqual([]);
  });
});
