/** Which releases the supervisor takes, with real processes, a real HTTP server and real keys. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pinReleaseKeys } from "#crawler/supervisor/release-store";
import { formatEnvelope, rawPublicKey, signBody } from "#protocol/release-envelope";
import { until } from "../../support/until.ts";
import { bundleText, newKey, offer, type Published, startDock } from "./release-world.ts";
import {
  type Docked,
  docked,
  nextVersion,
  publish,
  reasonOf,
  reports,
  running,
  soonMs,
  useReleaseWorld,
  world,
} from "./supervisor-ground.ts";

useReleaseWorld();

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

  it("says once what it waits for, to its log, its state and the coordinator, and no more when something runs", async () => {
    const told: unknown[] = [];
    const waiting = async (words: RegExp, home = world.newHome()) => {
      const dock = await startDock(home, { emptyPollMs: 20 }, undefined, async ({ code }) => {
        told.push(code);
        return { type: "told" };
      });
      running.push(dock);
      await until(() => words.test(dock.state().waitsFor?.reason ?? ""), soonMs);
      return dock;
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
  it.each(refusals)("%s is refused, and what runs goes on", async (_what, make, words) => {
    const release = make();

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
    // A coordinator that later hides the rotation changes nothing.
    world.files.set("/releases/keys.json", `{"rotations":[]}`);
    offer(dock.home, late);

    await until(() => reports(dock).some(([name]) => name === late.version), soonMs);
    expect(reasonOf(dock, late)).toMatch(/not signed by a trusted key/);
  });
});

describe("a download", () => {
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

  it("comes in pieces, and goes on where it was cut off", async () => {
    const dock = await docked();
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

    offer(dock.home, next);

    await until(() => dock.state().good?.digest === next.digest, soonMs);
    expect(ranges).toHaveLength(2);
    expect(ranges[1]).toMatch(/^bytes=[1-9]\d*-/);
  });

  it("that is not what was signed is not fetched again, however often it is offered", async () => {
    const dock = await docked();
    const [next, other] = [publish(), publish()];
    let asked = 0;
    world.handlers.set(`/releases/${next.digest}`, (_request, answer) => {
      asked += 1;
      answer.end(Buffer.alloc(next.bytes.length));
    });

    offer(dock.home, next);
    await until(() => reasonOf(dock, next) !== undefined, soonMs);
    world.files.delete(`/releases/${other.digest}/manifest.json`);
    offer(dock.home, other);
    await until(() => dock.state().offered?.digest === other.digest, soonMs);
    offer(dock.home, next);
    await until(() => (reasonOf(dock, next) ?? "").includes("fetched again in a day"), soonMs);
    expect(asked).toBe(1);
  });
});
