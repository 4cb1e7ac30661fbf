/** Which releases the supervisor takes, with real processes, a real HTTP server and real keys. */

import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeMembership } from "#crawler/core/membership";
import { judgeByPolicy, releasePolicy } from "#crawler/settings/release-policy";
import { pinnedReleaseKeys, pinReleaseKeys } from "#crawler/supervisor/release-store";
import { readSupervisorSettings } from "#crawler/supervisor/supervisor-home";
import { formatEnvelope, rawPublicKey, signBody } from "#protocol/release-envelope";
import { until } from "../../support/until.ts";
import {
  bundleText,
  newKey,
  offer,
  type Published,
  startSupervisor,
  writeSettings,
} from "./release-world.ts";
import {
  nextVersion,
  publish,
  reasonOf,
  reports,
  running,
  type Supervised,
  soonMs,
  supervised,
  useReleaseWorld,
  world,
} from "./supervisor-ground.ts";

useReleaseWorld();

describe("a supervisor that has just joined", () => {
  it("fetches, verifies and runs the release that is offered to all, and reports when it works", async () => {
    const supervisor = await supervised();

    expect(reports(supervisor)).toEqual([[supervisor.first.version, "running"]]);
    expect(supervisor.state()).toMatchObject({
      current: { version: supervisor.first.version },
      previous: null,
    });
    const greeting = JSON.parse(supervisor.home.notes()[0]!.replace(/^.* started /, ""));
    expect(greeting).toMatchObject({
      type: "dock",
      release: { version: supervisor.first.version, digest: supervisor.first.digest },
      policy: "follow: releases are taken when they are offered",
      lastEnd: null,
    });
  });

  it("waits when there is none, and takes the first one", async () => {
    world.files.set(
      "/releases/current.json",
      JSON.stringify({ manifest: null, revocations: null, rotations: [] }),
    );
    const home = world.newHome();
    const supervisor = await startSupervisor(home, { pollMs: 20 });
    running.push(supervisor);
    const first = publish();

    world.offerToAll(first);

    await until(() => supervisor.state().good?.digest === first.digest, soonMs);
  });

  it("reports once what it waits for in its log, its state and to the coordinator, and no longer when something runs", async () => {
    const told: unknown[] = [];
    const waiting = async (words: RegExp, home = world.newHome()) => {
      const supervisor = await startSupervisor(home, { emptyPollMs: 20 }, undefined, async ({ code }) => {
        told.push(code);
        return { type: "told" };
      });
      running.push(supervisor);
      await until(() => words.test(supervisor.state().waitsFor?.reason ?? ""), soonMs);
      return supervisor;
    };
    const unpinned = world.newHome();
    pinReleaseKeys(unpinned.path, { releaseKeys: [], releaseThreshold: 1 });
    const unsigned = world.publish(nextVersion(), bundleText("u"), {}, newKey());

    world.offerToAll(unsigned);
    const other = await waiting(/signed by a key that the invitation pinned: .* Ask the operator/);
    await waiting(/^a release key: the invitation pinned none/, unpinned);
    const release = publish();
    world.offerToAll(release);
    await until(() => other.state().good?.digest === release.digest, soonMs);

    expect(other.state().waitsFor).toBeNull();
    expect(other.lines.filter((line) => line.includes("no crawler runs here for now")).length).toBe(1);
    expect(told).toEqual(["awaits-key", "awaits-key"]);
  });

  it("keeps trying a first release that crashes, and takes the next one instead", async () => {
    const home = world.newHome();
    world.offerToAll(publish("crashes-at-start"));
    const supervisor = await startSupervisor(home, { pollMs: 20 });
    running.push(supervisor);
    await until(() => home.notes().length > 1, soonMs);
    const better = publish();

    world.offerToAll(better);

    await until(() => supervisor.state().good?.digest === better.digest, soonMs);
  });
});

describe("a release that is offered", () => {
  let supervisor: Supervised;
  beforeAll(async () => {
    supervisor = await supervised();
    running.splice(running.indexOf(supervisor), 1);
  });
  afterAll(() => supervisor.stop());

  // test/protocol/release.test.ts checks what a manifest may say; this only checks that it is verified.
  const refusals: readonly [string, () => Published, RegExp][] = [
    [
      "signed by another key",
      () => world.publish(nextVersion(), bundleText("a"), {}, newKey()),
      /not signed by a trusted key/,
    ],
    [
      "older than what ran here",
      () => world.publish(nextVersion(), bundleText("c"), { sequence: 1 }),
      /is older than a release that was seen here before/,
    ],
    [
      "for a newer dock",
      () => world.publish(nextVersion(), bundleText("d"), { oldestDock: "99.0" }),
      /needs supervisor 99.0 or newer/,
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
      "with a bundle that is shorter than was signed",
      () => {
        const release = publish();
        world.files.set(`/releases/${release.digest}`, release.bytes.subarray(0, -1));
        return release;
      },
      /bytes, its manifest says/,
    ],
    [
      "whose manifest is another's",
      () => {
        const [release, other] = [publish(), publish()];
        const manifest = world.files.get(`/releases/${other.digest}/manifest.json`)!;
        world.files.set(`/releases/${release.digest}/manifest.json`, manifest);
        return { ...release, version: other.version };
      },
      /another release's/,
    ],
  ];
  it.each(refusals)("%s is refused, and the running one continues", async (_what, make, words) => {
    const release = make();

    offer(supervisor.home, release);

    await until(() => reasonOf(supervisor, release, "refused") !== undefined, soonMs);
    expect(reasonOf(supervisor, release, "refused")).toMatch(words);
    expect(supervisor.state()).toMatchObject({ current: { digest: supervisor.first.digest }, offered: null });
    expect(supervisor.home.notes()).toHaveLength(1);
  });
});

describe("a release that takes over", () => {
  it("waits until the previous one is drained, which stays on the disk", async () => {
    const supervisor = await supervised();
    const next = publish();

    offer(supervisor.home, next);

    await until(() => supervisor.state().good?.digest === next.digest, soonMs);
    expect(supervisor.state().previous?.digest).toBe(supervisor.first.digest);
    expect(supervisor.home.notes().map((note) => note.split(" ", 2).join(" "))).toEqual([
      `${supervisor.first.version} started`,
      `${supervisor.first.version} ended`,
      `${next.version} started`,
    ]);
  });

  it("that was revoked is refused; the list of revoked releases never shrinks", async () => {
    const supervisor = await supervised({ pollMs: 30 });
    const revoked = publish();
    world.revoke(7, revoked);

    offer(supervisor.home, revoked);

    await until(() => reports(supervisor).some(([version]) => version === revoked.version), soonMs);
    expect(reasonOf(supervisor, revoked)).toMatch(/was revoked: it lies/);

    world.revoke(6);
    await until(() => supervisor.lines.some((line) => /has number 6, 7 is known/.test(line)), soonMs);
    world.files.delete("/releases/revocations.json");
    await until(() => supervisor.lines.some((line) => /no longer serves the list/.test(line)), soonMs);
  });

  it("that a new key signed is taken once the old key has signed the rotation, and the old key no longer counts", async () => {
    const supervisor = await supervised();
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

    offer(supervisor.home, next);
    await until(() => supervisor.state().good?.digest === next.digest, soonMs);
    // A coordinator that later hides the rotation changes nothing.
    world.files.set("/releases/keys.json", `{"rotations":[]}`);
    offer(supervisor.home, late);

    await until(() => reports(supervisor).some(([name]) => name === late.version), soonMs);
    expect(reasonOf(supervisor, late)).toMatch(/not signed by a trusted key/);
  });
});

describe("a download", () => {
  it("that never ends is aborted at the signed length", async () => {
    const supervisor = await supervised();
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

    offer(supervisor.home, next);

    await until(
      () => supervisor.lines.some((line) => line.includes(`longer than ${next.bytes.length} bytes`)),
      soonMs,
    );
    expect(supervisor.state().current?.digest).toBe(supervisor.first.digest);
  });

  it("comes in pieces, and resumes where it was interrupted", async () => {
    const supervisor = await supervised();
    const next = world.publish("7.0.0", bundleText(`7.0.0 ${"x".repeat(300_000)}`));
    const ranges: string[] = [];
    world.handlers.set(`/releases/${next.digest}`, (request, answer) => {
      const [, first = 0, last = 0] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
      ranges.push(String(request.headers.range));
      const part = next.bytes.subarray(Number(first), Number(last) + 1);
      answer.writeHead(206, { "content-length": part.length });
      if (ranges.length === 1) {
        answer.write(part.subarray(0, 100_000));
        setTimeout(() => answer.destroy(), 200);
        return;
      }
      answer.end(part);
    });

    offer(supervisor.home, next);

    await until(() => supervisor.state().good?.digest === next.digest, soonMs);
    expect(ranges).toHaveLength(2);
    expect(ranges[1]).toMatch(/^bytes=[1-9]\d*-/);
  });

  it("that differs from what was signed is not fetched again, however often it is offered", async () => {
    const supervisor = await supervised();
    const [next, other] = [publish(), publish()];
    let asked = 0;
    world.handlers.set(`/releases/${next.digest}`, (_request, answer) => {
      asked += 1;
      answer.end(Buffer.alloc(next.bytes.length));
    });

    offer(supervisor.home, next);
    await until(() => reasonOf(supervisor, next) !== undefined, soonMs);
    world.files.delete(`/releases/${other.digest}/manifest.json`);
    offer(supervisor.home, other);
    await until(() => supervisor.state().offered?.digest === other.digest, soonMs);
    offer(supervisor.home, next);
    await until(() => (reasonOf(supervisor, next) ?? "").includes("fetched again in a day"), soonMs);
    expect(asked).toBe(1);
  });
});

// What a supervisor trusts after somebody has tampered with its crawler's files or its own.

useReleaseWorld();

it("keys that the crawler writes into its membership are ignored once the supervisor has its own", async () => {
  const supervisor = await supervised();
  const { path, membership } = supervisor.home;
  const stranger = newKey();
  await supervisor.stop();
  writeMembership(path, { ...membership, releaseKeys: [rawPublicKey(stranger)] });
  const version = nextVersion();
  const forged = world.publish(version, bundleText(version), {}, stranger);

  const later = await startSupervisor({
    ...supervisor.home,
    membership: { ...membership, releaseKeys: [rawPublicKey(stranger)] },
  });
  running.push(later);
  offer(supervisor.home, forged);

  await until(() => reasonOf(later, forged) !== undefined, soonMs);
  expect(reasonOf(later, forged)).toMatch(/not signed by a trusted key/);
  expect(later.state().current?.digest).toBe(supervisor.first.digest);
});

it("an unsigned bundle that is placed on disk and entered into the state does not run", async () => {
  const supervisor = await supervised();
  const { path } = supervisor.home;
  await supervisor.stop();
  const version = nextVersion();
  const bytes = Buffer.from(bundleText(version));
  const digest = createHash("sha256").update(bytes).digest("hex");
  const forged = { version, digest, bytes: bytes.length, sequence: 1 };
  const own = readFileSync(join(path, `releases/${supervisor.first.digest}.manifest.json`));
  writeFileSync(join(path, `releases/${digest}.mjs`), bytes);
  writeFileSync(join(path, `releases/${digest}.manifest.json`), own);
  const state = { ...supervisor.state(), current: forged, previous: supervisor.state().good };
  writeFileSync(join(path, "releases/state.json"), JSON.stringify(state));

  const later = await startSupervisor(supervisor.home);
  running.push(later);

  await until(() => supervisor.home.notes().filter((note) => note.includes("started")).length === 2, soonMs);
  expect(supervisor.home.notes().some((note) => note.startsWith(`${version} `))).toBe(false);
  expect(later.lines.join("\n")).toMatch(/not what was signed.*its manifest is another release's/);
  expect(later.state().current?.digest).toBe(supervisor.first.digest);
});

it("a folder from before pins and manifests adopts both once", async () => {
  const supervisor = await supervised();
  const { path, membership } = supervisor.home;
  await supervisor.stop();
  const manifest = join(path, `releases/${supervisor.first.digest}.manifest.json`);
  for (const file of [manifest, join(path, "releases/pins.json")]) rmSync(file);

  running.push(await startSupervisor(supervisor.home));

  await until(() => supervisor.home.notes().filter((note) => note.includes("started")).length === 2, soonMs);
  expect(existsSync(manifest)).toBe(true);
  expect(pinnedReleaseKeys(path, { releaseKeys: [], releaseThreshold: 1 }).keys).toEqual(
    membership.releaseKeys,
  );
});

it("damaged pins are not replaced by the crawler's", () => {
  const { path, membership } = world.newHome();
  pinReleaseKeys(path, membership);
  writeFileSync(join(path, "releases/pins.json"), "{");

  expect(() => pinnedReleaseKeys(path, membership)).toThrow(
    /pins\.json: this is no whole JSON file.*join --again/s,
  );
});

it.each([".", "releases", "log/archive", ".."])(
  "an archive in HOME/%s is refused: the crawler could write what the supervisor goes by",
  (folder) => {
    const { path, membership } = world.newHome();
    writeFileSync(join(path, "settings.toml"), `[warc]\nfolder = ${JSON.stringify(join(path, folder))}\n`);

    expect(() => readSupervisorSettings(path, membership)).toThrow(
      /settings\.toml: warc\.folder: .*choose a folder/,
    );
  },
);

// The supervisor follows a partner's release policy, with real processes.

useReleaseWorld();

describe("the partner's policy", () => {
  const [firstOfferedAt, now] = [new Date("2026-11-01T00:00:00Z"), new Date("2026-11-01T03:00:00Z")];
  /** Returns why a release is not taken, or null. */
  const judged = (version: string, policy: object, hasRelease: boolean) => {
    const answer = judgeByPolicy(version, {
      policy: releasePolicy.parse(policy),
      now,
      firstOfferedAt,
      hasRelease,
    });
    return answer.take ? null : answer.reason;
  };
  it.each([
    [{}, "1.5.0", null],
    [{ refuse: ["1.5.0"] }, "1.5.0", "the partner refuses this version"],
    [{ refuse: ["1.4.0"] }, "1.5.0", null],
    [{ policy: "pin" }, "1.5.0", "the partner stays with what runs"],
    [{ policy: "pin", pin: "1.4.0" }, "1.5.0", "the partner stays with 1.4.0"],
    [{ policy: "pin", pin: "1.5.0" }, "1.5.0", null],
    [{ policy: "ask" }, "1.5.0", "the partner has not accepted this version yet"],
    [{ policy: "ask", accept: ["1.5.0"] }, "1.5.0", null],
    [{ policy: "delay", delayHours: 3.001 }, "1.5.0", "the partner takes it at 2026-11-01T03:00:03.600Z"],
    [{ policy: "delay", delayHours: 3 }, "1.5.0", null],
  ])("%j rejects %s with the words: %s", (policy, version, words) => {
    expect(judged(version, policy, true)).toBe(words);
  });

  it("does not keep or delay anything when nothing runs", () => {
    const policies = [
      { policy: "pin" },
      { policy: "delay" },
      { policy: "pin", pin: "1.4.0" },
      { policy: "ask" },
    ];

    expect(policies.map((policy) => judged("1.5.0", policy, false) === null)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("is named in the report, and the running release continues", async () => {
    const supervisor = await supervised();
    writeSettings(supervisor.home.path, `[releases]\npolicy = "pin"`);
    const next = publish();

    offer(supervisor.home, next);

    await until(() => reasonOf(supervisor, next) !== undefined, soonMs);
    const reason = "the partner stays with what runs";
    expect(supervisor.state().reports.at(-1)).toEqual({ version: next.version, state: "pinned", reason });
    expect(supervisor.state().current?.digest).toBe(supervisor.first.digest);
  });

  it("delay takes the release when its time comes", async () => {
    const home = world.newHome(`[releases]\npolicy = "delay"\ndelayHours = 2`);
    const first = publish();
    world.offerToAll(first);
    let hours = 0;
    const clock = () => new Date(Date.now() + hours * 3_600_000);
    const supervisor = await startSupervisor(home, { pollMs: 30 }, clock);
    running.push(supervisor);
    await until(() => supervisor.state().good?.digest === first.digest, soonMs);
    const next = publish();
    offer(home, next);
    await until(() => reports(supervisor).some(([, state]) => state === "delayed"), soonMs);

    hours = 3;

    await until(() => supervisor.state().good?.digest === next.digest, soonMs);
  });

  it("pin returns to the version that it names, when it is on the disk", async () => {
    const supervisor = await supervised({ pollMs: 30 });
    const next = publish();
    offer(supervisor.home, next);
    await until(() => supervisor.state().good?.digest === next.digest, soonMs);

    writeSettings(supervisor.home.path, `[releases]\npolicy = "pin"\npin = "${supervisor.first.version}"`);

    await until(() => supervisor.state().good?.digest === supervisor.first.digest, soonMs);
    expect(supervisor.state().bad).toEqual([]);
  });
});
