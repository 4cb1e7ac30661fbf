/** When a supervisor returns to the previous release, with real processes: faults, revocations, damage. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SupervisorTiming } from "#crawler/supervisor/supervisor-home";
import { until } from "../../support/until.ts";
import { type Behaviour, bundleText, offer, startSupervisor } from "./release-world.ts";
import {
  nextVersion,
  publish,
  reasonOf,
  running,
  type Supervised,
  soonMs,
  supervised,
  useReleaseWorld,
  world,
} from "./supervisor-ground.ts";

useReleaseWorld();

describe("a new release that fails", () => {
  const bad: readonly [Behaviour, Partial<SupervisorTiming>, RegExp][] = [
    ["crashes-at-start", {}, /^it ended 3 times by itself; .* code 1: .*the new parser cannot be loaded/],
    ["crashes-later", { watchMs: 60_000 }, /ended with code 7: .*out of memory, it seems/],
    ["hangs", { silenceMs: 800 }, /no sign of life for 0.8 s/],
    ["never-welcomed", { welcomeMs: 200 }, /did not welcome it within 0.2 s/],
  ];
  let supervisor: Supervised;
  beforeAll(async () => {
    supervisor = await supervised();
    running.splice(running.indexOf(supervisor), 1);
  });
  afterAll(() => supervisor.stop());

  it.each(bad)(
    "because it %s is replaced by the last good one, and is not tried again for now",
    async (behaviour, timing, words) => {
      const usual = { ...supervisor.timing };
      const release = publish(behaviour);
      Object.assign(supervisor.timing, timing);

      offer(supervisor.home, release);

      await until(() => reasonOf(supervisor, release, "returned") !== undefined, soonMs);
      Object.assign(supervisor.timing, usual);
      expect(reasonOf(supervisor, release, "returned")).toMatch(words);
      expect(supervisor.state().current?.digest).toBe(supervisor.first.digest);
      expect(supervisor.state()).toMatchObject({ offered: { digest: release.digest } });
      const bad = supervisor.state().bad.at(-1)!;
      expect(bad).toMatchObject({ digest: release.digest, returns: 1 });
      expect(Date.parse(bad.againAt!) - Date.parse(bad.at)).toBe(3_600_000);
      await until(
        () => supervisor.home.notes().at(-1)!.startsWith(`${supervisor.first.version} started`),
        soonMs,
      );
      // The release that runs again forwards the report.
      const greeting = JSON.parse(
        supervisor.home
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

      offer(supervisor.home, release);

      await until(() => supervisor.state().good?.digest === release.digest, soonMs);
      expect(supervisor.state().bad.some(({ digest }) => digest === release.digest)).toBe(false);
      expect(reasonOf(supervisor, release, "returned")).toBeUndefined();
    },
  );

  it("is tried again after 1, 4 and 16 hours, and is bad from then on", async () => {
    let hours = 0;
    const now = () => new Date(Date.now() + hours * 3_600_000);
    const home = world.newHome();
    const first = publish();
    world.offerToAll(first);
    const again = await startSupervisor(home, { pollMs: 30 }, now);
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

  it("is not accepted because the previous one passed its watch while it drained", async () => {
    const home = world.newHome();
    const version = nextVersion();
    const drains = bundleText(version).replace(
      `if (message.type === "stop") process.exit(0);`,
      `if (message.type === "stop") return setTimeout(() => process.exit(0), 800);`,
    );
    const first = world.publish(version, drains);
    world.offerToAll(first);
    const before = await startSupervisor(home);
    await until(() => before.state().good?.digest === first.digest, soonMs);
    await before.stop();
    const release = publish("crashes-at-start");
    offer(home, release);
    const watchMs = 600;

    const supervisor = await startSupervisor(home, { watchMs });
    running.push(supervisor);

    await until(() => reasonOf(supervisor, release, "returned") !== undefined, soonMs);
    expect(supervisor.state().current?.digest).toBe(first.digest);
  });

  it("stays when the coordinator answers nobody", async () => {
    const supervisor = await supervised({ welcomeMs: 100 });
    const release = publish("never-welcomed");
    offer(supervisor.home, release);
    await until(() => supervisor.state().current?.digest === release.digest, soonMs);
    let asked = 0;
    world.handlers.set("/releases/keys.json", (_request, answer) => {
      asked += 1;
      answer.destroy();
    });

    await until(() => asked > 3, soonMs);
    expect(supervisor.state().current?.digest).toBe(release.digest);

    world.handlers.clear();
    await until(() => supervisor.state().current?.digest === supervisor.first.digest, soonMs);
  });
});

describe("a release that is revoked while it runs", () => {
  it("is replaced at once by the last good one", async () => {
    const supervisor = await supervised({ pollMs: 30 });
    const next = publish();
    offer(supervisor.home, next);
    await until(() => supervisor.state().good?.digest === next.digest, soonMs);

    world.revoke(1, next);

    await until(
      () => supervisor.home.notes().at(-1)!.startsWith(`${supervisor.first.version} started`),
      soonMs,
    );
    // The reports may be empty, because the release that runs again may have forwarded them.
    expect(supervisor.state().bad).toContainEqual(
      expect.objectContaining({ digest: next.digest, reason: "it was revoked: it lies" }),
    );
    expect(supervisor.state().good?.digest).toBe(supervisor.first.digest);
  });

  it("ends when there is no other; a later supervisor does not run it either", async () => {
    const supervisor = await supervised({ pollMs: 30 });
    world.revoke(1, supervisor.first);
    await until(() => supervisor.home.notes().at(-1) === `${supervisor.first.version} ended`, soonMs);
    await supervisor.stop();
    world.files.delete("/releases/revocations.json");

    const later = await startSupervisor(supervisor.home);
    running.push(later);

    expect(later.state().current).toBe(null);
    expect(supervisor.home.notes()).toHaveLength(2);
  });
});

describe("a good release", () => {
  it("that crashes is started again, and its last words are reported to the coordinator", async () => {
    const home = world.newHome();
    const first = publish("crashes-when-told");
    world.offerToAll(first);
    const supervisor = await startSupervisor(home);
    running.push(supervisor);
    await until(() => supervisor.state().good?.digest === first.digest, soonMs);

    writeFileSync(join(home.path, "crawler/crash"), "");

    await until(() => home.notes().length === 3, soonMs);
    const { lastEnd } = JSON.parse(home.notes()[2]!.replace(/^.* started /, ""));
    expect(lastEnd.reason).toMatch(/^release .*: it ended with code 1: .*a page that nobody had thought of/);
    expect(supervisor.state().current?.digest).toBe(first.digest);
  });

  it("whose file is damaged is not run: the previous one is", async () => {
    const supervisor = await supervised();
    const next = publish();
    offer(supervisor.home, next);
    await until(() => supervisor.state().good?.digest === next.digest, soonMs);
    await supervisor.stop();
    const file = join(supervisor.home.path, "releases", `${next.digest}.mjs`);
    writeFileSync(file, readFileSync(file, "utf8").replace("ended", "3nded"));

    const again = await startSupervisor(supervisor.home);
    running.push(again);

    expect(again.state().current?.digest).toBe(supervisor.first.digest);
    // The release may be fetched again.
    expect(again.state().bad).toEqual([]);
  });
});
