/** The dock over real processes, a real HTTP server and real keys: what it takes, what it leaves, when it returns. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { DockTiming } from "#crawler/dock/dock-timing";
import { formatEnvelope, rawPublicKey, signBody } from "#protocol/release-envelope";
import { until } from "../../support/until.ts";
import {
  type Behaviour,
  bundleText,
  type Home,
  newKey,
  offer,
  type Published,
  type ReleaseWorld,
  type RunningDock,
  startDock,
  startReleaseWorld,
  writeSettings,
} from "./release-world.ts";

let world: ReleaseWorld;
const running: RunningDock[] = [];
beforeAll(async () => {
  world = await startReleaseWorld();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ dock }) => dock.stop()));
  world.files.delete("/releases/revocations.json");
  world.files.set("/releases/keys.json", `{"rotations":[]}`);
  world.handlers.clear();
});
afterAll(() => world.close());

const soonMs = 20_000;
let versions = 0;
/** No two tests have a version or a digest in common. */
const nextVersion = () => `1.${++versions}.0`;

function publish(behaviour: Behaviour = "well"): Published {
  const version = nextVersion();
  return world.publish(version, bundleText(version, behaviour));
}

type Docked = RunningDock & { readonly home: Home; readonly first: Published };

/** A dock whose first release runs and is good. */
async function docked(timing: Partial<DockTiming> = {}, settings = ""): Promise<Docked> {
  const home = world.newHome(settings);
  const first = publish();
  world.offerToAll(first);
  const dock = { ...(await startDock(home, timing)), home, first };
  running.push(dock);
  await until(() => dock.state().good?.digest === first.digest, soonMs);
  return dock;
}

const reports = ({ state }: RunningDock) =>
  state().reports.map(({ version, state: what }) => [version, what]);
const reasonOf = ({ state }: RunningDock, { version }: Published, what?: string) =>
  state().reports.findLast((one) => one.version === version && (what ?? one.state) === one.state)?.reason;

describe("a dock that has just joined", () => {
  it("fetches, verifies and runs the release that is offered to all, and reports it once it is well", async () => {
    const dock = await docked();

    expect(reports(dock)).toEqual([[dock.first.version, "running"]]);
    expect(dock.state()).toMatchObject({ current: { version: dock.first.version }, previous: null });
    const greeting = JSON.parse(dock.home.notes()[0]!.replace(/^.* started /, ""));
    expect(greeting).toMatchObject({
      type: "dock",
      release: { version: dock.first.version, digest: dock.first.digest },
      policy: "follow: releases are taken when they are offered",
      lastEnd: null,
    });
  });

  it("waits where there is none, and takes the first one that comes", async () => {
    world.files.set(
      "/releases/current.json",
      JSON.stringify({ manifest: null, revocations: null, rotations: [] }),
    );
    const home = world.newHome();
    const dock = await startDock(home, { pollMs: 20 });
    running.push(dock);
    const first = publish();

    world.offerToAll(first);

    await until(() => dock.state().good?.digest === first.digest, soonMs);
  });

  it("goes on trying a first release that crashes, and takes the next one in its place", async () => {
    const home = world.newHome();
    world.offerToAll(publish("crashes-at-start"));
    const dock = await startDock(home, { pollMs: 20 });
    running.push(dock);
    await until(() => home.notes().length > 1, soonMs);
    const better = publish();

    world.offerToAll(better);

    await until(() => dock.state().good?.digest === better.digest, soonMs);
  });
});

describe("a release that is offered", () => {
  let dock: Docked;
  beforeAll(async () => {
    dock = await docked();
    running.splice(running.indexOf(dock), 1);
  });
  afterAll(() => dock.dock.stop());

  const refusals: readonly [string, (first: Published) => Published, RegExp][] = [
    [
      "signed by another key",
      () => world.publish(nextVersion(), bundleText("a"), {}, newKey()),
      /not signed by a trusted key/,
    ],
    [
      "changed after it was signed",
      () => {
        const release = publish();
        const path = `/releases/${release.digest}/manifest.json`;
        world.files.set(path, String(world.files.get(path)).replace('notes\\":\\"', 'notes\\":\\"x'));
        return release;
      },
      /the signature by .* is wrong/,
    ],
    [
      "with a bundle of another digest",
      () => {
        const release = publish();
        const other = Buffer.from(release.bytes);
        other[0] = 0x20;
        world.files.set(`/releases/${release.digest}`, other);
        return release;
      },
      /not the one that was signed/,
    ],
    [
      "that has expired",
      () => world.publish(nextVersion(), bundleText("b"), { expiresAt: "2020-01-01T00:00:00.000Z" }),
      /expired at 2020/,
    ],
    [
      "older than what ran here",
      () => world.publish(nextVersion(), bundleText("c"), { sequence: 1 }),
      /is older than a release that was here before/,
    ],
    [
      "for a newer dock",
      () => world.publish(nextVersion(), bundleText("d"), { oldestDock: "99.0" }),
      /needs dock 99.0 or newer/,
    ],
    [
      "whose manifest is another's",
      (first) => {
        const release = publish();
        const other = world.files.get(`/releases/${first.digest}/manifest.json`)!;
        world.files.set(`/releases/${release.digest}/manifest.json`, other);
        return { ...release, version: first.version };
      },
      /another release's/,
    ],
  ];
  it.each(refusals)("%s is refused, and what runs goes on", async (_what, make, words) => {
    const release = make(dock.first);

    offer(dock.home, release);

    await until(() => reasonOf(dock, release, "refused") !== undefined, soonMs);
    expect(reasonOf(dock, release, "refused")).toMatch(words);
    expect(dock.state()).toMatchObject({ current: { digest: dock.first.digest }, offered: null });
    expect(dock.home.notes()).toHaveLength(1);
  });
});

describe("a release that takes over", () => {
  it("waits until the one before it is drained, which stays on the disk", async () => {
    const dock = await docked();
    const next = publish();

    offer(dock.home, next);

    await until(() => dock.state().good?.digest === next.digest, soonMs);
    expect(dock.state().previous?.digest).toBe(dock.first.digest);
    expect(dock.home.notes().map((note) => note.split(" ", 2).join(" "))).toEqual([
      `${dock.first.version} started`,
      `${dock.first.version} ended`,
      `${next.version} started`,
    ]);
  });

  it("and was revoked is refused; the list of revoked releases never goes back", async () => {
    const dock = await docked({ pollMs: 30 });
    const revoked = publish();
    world.revoke(7, revoked);

    offer(dock.home, revoked);

    await until(() => reports(dock).some(([version]) => version === revoked.version), soonMs);
    expect(reasonOf(dock, revoked)).toMatch(/was revoked: it lies/);

    world.revoke(6);
    await until(() => dock.lines.some((line) => /has number 6, 7 is known/.test(line)), soonMs);
    world.files.delete("/releases/revocations.json");
    await until(() => dock.lines.some((line) => /no longer serves the list/.test(line)), soonMs);
  });

  it("and signed by a new key is taken once the old key has signed the rotation, and the old key counts no more", async () => {
    const dock = await docked();
    const second = newKey();
    const rotation = {
      product: "nearcrawl-crawler",
      sequence: 1,
      newKey: rawPublicKey(second),
      retires: rawPublicKey(world.key),
      createdAt: new Date().toISOString(),
    };
    const rotations = [JSON.parse(formatEnvelope(signBody("key", rotation, world.key)))];
    const late = publish();
    const version = nextVersion();
    const next = world.publish(version, bundleText(version), {}, second);
    world.files.set("/releases/keys.json", JSON.stringify({ rotations }));

    offer(dock.home, next);
    await until(() => dock.state().good?.digest === next.digest, soonMs);
    // A coordinator that hides the rotation later changes nothing.
    world.files.set("/releases/keys.json", `{"rotations":[]}`);
    offer(dock.home, late);

    await until(() => reports(dock).some(([name]) => name === late.version), soonMs);
    expect(reasonOf(dock, late)).toMatch(/not signed by a trusted key/);
  });
});

describe("a download", () => {
  it("that breaks off is tried again, and then taken", async () => {
    const dock = await docked();
    const next = publish();
    let asked = 0;
    world.handlers.set(`/releases/${next.digest}`, (_request, answer) => {
      asked += 1;
      answer.writeHead(200, { "content-length": next.bytes.length });
      if (asked > 2) answer.end(next.bytes);
      else answer.write(next.bytes.subarray(0, 100), () => answer.destroy());
    });

    offer(dock.home, next);

    await until(() => dock.state().good?.digest === next.digest, soonMs);
    expect(asked).toBe(3);
  });

  it("that never ends is cut off at the length that was signed", async () => {
    const dock = await docked();
    const next = publish();
    world.handlers.set(`/releases/${next.digest}`, (_request, answer) => {
      const piece = Buffer.alloc(64 * 1024);
      answer.on("error", () => {});
      const more = () => {
        while (!answer.destroyed && answer.write(piece));
        answer.once("drain", more);
      };
      more();
    });

    offer(dock.home, next);

    await until(
      () => dock.lines.some((line) => line.includes(`longer than ${next.bytes.length} bytes`)),
      soonMs,
    );
    expect(dock.state().current?.digest).toBe(dock.first.digest);
  });

  it("of a release shorter than was signed is refused", async () => {
    const dock = await docked();
    const next = publish();
    world.files.set(`/releases/${next.digest}`, next.bytes.subarray(0, -1));

    offer(dock.home, next);

    await until(() => reasonOf(dock, next) !== undefined, soonMs);
    expect(reasonOf(dock, next)).toMatch(/bytes, its manifest says/);
  });
});

describe("a new release that is not well", () => {
  const bad: readonly [Behaviour, Partial<DockTiming>, RegExp][] = [
    ["crashes-at-start", {}, /ended with code 1: .*the new parser cannot be loaded/],
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
    "because it %s gives way to the last good one, and is not tried again",
    async (behaviour, timing, words) => {
      const usual = { ...dock.timing };
      const release = publish(behaviour);
      Object.assign(dock.timing, timing);

      offer(dock.home, release);

      await until(() => reasonOf(dock, release, "returned") !== undefined, soonMs);
      Object.assign(dock.timing, usual);
      expect(reasonOf(dock, release, "returned")).toMatch(words);
      expect(dock.state().current?.digest).toBe(dock.first.digest);
      expect(dock.state().bad.at(-1)?.digest).toBe(release.digest);
      await until(() => dock.home.notes().at(-1)!.startsWith(`${dock.first.version} started`), soonMs);
      // The release that runs again hands the report on.
      const greeting = JSON.parse(
        dock.home
          .notes()
          .at(-1)!
          .replace(/^.* started /, ""),
      );
      expect(greeting.reports).toContainEqual(
        expect.objectContaining({ version: release.version, state: "returned" }),
      );
      await until(() => reasonOf(dock, release, "refused") !== undefined, soonMs);
      expect(reasonOf(dock, release, "refused")).toMatch(/it was tried here/);
    },
  );

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
    expect(reasonOf(dock, next)).toBe("it was revoked: it lies");
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

describe("the partner's policy", () => {
  let dock: Docked;
  beforeAll(async () => {
    dock = await docked();
    running.splice(running.indexOf(dock), 1);
  });
  afterAll(() => dock.dock.stop());

  it.each([
    ["pin", `[releases]\npolicy = "pin"`, "pinned", "the partner stays with what runs"],
    ["ask", `[releases]\npolicy = "ask"`, "pinned", "the partner has not accepted this version yet"],
    [
      "delay",
      `[releases]\npolicy = "delay"\ndelayHours = 2`,
      "delayed",
      expect.stringMatching(/takes it at 20/),
    ],
  ])("%s keeps what runs, and says so", async (_policy, settings, state, reason) => {
    writeSettings(dock.home.path, settings);
    const next = publish();

    offer(dock.home, next);

    await until(() => reasonOf(dock, next) !== undefined, soonMs);
    expect(dock.state().reports.at(-1)).toEqual({ version: next.version, state, reason });
    expect(dock.state().current?.digest).toBe(dock.first.digest);
  });

  it("refuse keeps one version out and lets the next one in", async () => {
    const [unwanted, wanted] = [publish(), publish()];
    writeSettings(dock.home.path, `[releases]\nrefuse = ["${unwanted.version}"]`);

    offer(dock.home, unwanted);
    await until(() => reasonOf(dock, unwanted) !== undefined, soonMs);
    offer(dock.home, wanted);

    await until(() => dock.state().good?.digest === wanted.digest, soonMs);
    expect(reasonOf(dock, unwanted)).toBe("the partner refuses this version");
  });

  it("delay takes the release when its time has come", async () => {
    const home = world.newHome(`[releases]\npolicy = "delay"\ndelayHours = 2`);
    const first = publish();
    world.offerToAll(first);
    let hours = 0;
    const clock = () => new Date(Date.now() + hours * 3_600_000);
    const dock = await startDock(home, { pollMs: 30 }, clock);
    running.push(dock);
    await until(() => dock.state().good?.digest === first.digest, soonMs);
    const next = publish();
    offer(home, next);
    await until(() => reports(dock).some(([, state]) => state === "delayed"), soonMs);

    hours = 3;

    await until(() => dock.state().good?.digest === next.digest, soonMs);
  });

  it("pin brings back the version that it names, when it is on the disk", async () => {
    const dock = await docked({ pollMs: 30 });
    const next = publish();
    offer(dock.home, next);
    await until(() => dock.state().good?.digest === next.digest, soonMs);

    writeSettings(dock.home.path, `[releases]\npolicy = "pin"\npin = "${dock.first.version}"`);

    await until(() => dock.state().good?.digest === dock.first.digest, soonMs);
    expect(dock.state().bad).toEqual([]);
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

    writeFileSync(join(home.path, "crash"), "");

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
    // It may be fetched again.
    expect(again.state().bad).toEqual([]);
  });
});
