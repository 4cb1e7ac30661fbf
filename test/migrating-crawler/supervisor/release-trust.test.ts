/** Which signed lists on disk a supervisor trusts after keys have changed. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { emptyState } from "#crawler/core/release-state";
import { limitsSchema } from "#crawler/settings/limits-config";
import { releasePolicy } from "#crawler/settings/release-policy";
import { DownloadAllowance, ReleaseSource } from "#crawler/supervisor/release-source";
import { ReleaseShelf } from "#crawler/supervisor/release-store";
import { takeCurrent } from "#crawler/supervisor/release-updates";
import { faultOfKept, keptTrust, refreshTrust } from "#crawler/supervisor/verify-release";
import { anyOf, formatEnvelope, rawPublicKey, readEnvelope, signBody } from "#protocol/release-envelope";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";
import { onLoopback } from "../support/loopback.ts";
import { newKey, type ReleaseWorld, startReleaseWorld } from "./release-world.ts";

let world: ReleaseWorld;
let home: string;
let shelf: ReleaseShelf;
beforeEach(async () => {
  world = await startReleaseWorld();
  home = temporaryFolder("nearcrawl-trust-");
  shelf = new ReleaseShelf({ home, warn: () => {} });
});
afterEach(async () => {
  rmSync(home, { recursive: true });
  await world.close();
});

const [product, createdAt] = ["nearcrawl-crawler", "2026-11-01T00:00:00Z"] as const;
const [first, second, third] = [newKey(), newKey(), newKey()];
const pinned = anyOf([rawPublicKey(first)]);
const now = () => new Date();

const sourceOf = ({ port }: ReleaseWorld) =>
  new ReleaseSource({
    coordinatorUrl: `ws://127.0.0.1:${port}/crawler`,
    route: () => ({ proxy: null, certificatePin: null, timeoutMs: 5000 }),
  });

const rotation = (sequence: number, from: typeof first, to: typeof first) => {
  const [newOne, retires] = [rawPublicKey(to), rawPublicKey(from)];
  return signBody("key", { product, sequence, newKey: newOne, retires, createdAt }, from);
};

test("a list of revoked releases still counts after the key that signed it was retired, pinned or not", () => {
  const digest = "0".repeat(64);
  const list = { product, sequence: 1, createdAt, digests: [digest], reason: "it leaks" };
  shelf.write("revocations.json", signBody("revocations", list, second));
  shelf.write("rotations.json", [rotation(1, first, second), rotation(2, second, third)]);

  const trust = keptTrust({ shelf, pinned, now });

  expect(trust.roles.releases.keys).toEqual([rawPublicKey(third)]);
  expect(trust.revocations?.digests).toEqual([digest]);
});

test("a genuine release on the disk may run until it is revoked", async () => {
  const { digest, version, bytes } = world.publish("1.0.0", "// a crawler");
  const manifest = readEnvelope(String(world.files.get(`/releases/${digest}/manifest.json`)));
  if ("refused" in manifest) throw new Error(manifest.refused);
  shelf.writeManifest(digest, manifest);
  writeFileSync(shelf.bundlePath(digest), bytes);
  const publishedBy = anyOf([rawPublicKey(world.key)]);
  const fault = () =>
    faultOfKept(
      { digest, version, bytes: bytes.length, sequence: 1 },
      { shelf, trust: keptTrust({ shelf, pinned: publishedBy, now }) },
    );
  expect(await fault()).toBeNull();

  const list = { product, sequence: 1, createdAt, digests: [digest], reason: "it leaks" };
  shelf.write("revocations.json", signBody("revocations", list, world.key));

  expect(await fault()).toBe("it was revoked: it leaks");
});

test("the statement of the newest release is asked for again and expires, whatever the clock was set to", () => {
  const now = Date.now();
  const at = (days: number) => new Date(now + days * 86_400_000);
  const [stated, until] = [at(0).toISOString(), at(7).toISOString()];
  const said = { product, sequence: now, createdAt: stated, expiresAt: until, release: null, revocations: 0 };
  shelf.write("timestamp.json", signBody("timestamp", said, first));

  const newness = (days: number) => keptTrust({ shelf, pinned, now: () => at(days) }).newness.type;

  expect([-400, 0, 6, 8].map(newness)).toEqual(["stated", "stated", "stated", "stale"]);
});

test("a statement that is older, valid for too long, or withheld replaces none", async () => {
  const source = sourceOf(world);
  const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  let [days, served] = [0, 0];
  const newness = async (said: object | null) => {
    const stated = { product, createdAt: day(0), release: null, revocations: 0, ...said };
    const path = "/releases/timestamp.json";
    if (said === null) world.files.delete(path);
    else world.files.set(path, formatEnvelope(signBody("timestamp", stated, first)));
    served += 1;
    const trust = await refreshTrust({ shelf, pinned, now: () => new Date(day(days)), source });
    return "reason" in trust.newness ? trust.newness.reason : trust.newness.type;
  };

  expect(await newness({ sequence: 2, expiresAt: day(1) })).toBe("stated");
  days = 2;
  expect(await newness({ sequence: 1, expiresAt: day(30) })).toContain("has number 1, 2 is known");
  expect(await newness({ sequence: 3, expiresAt: day(400) })).toContain("longer than 60 days");
  expect(await newness(null)).toMatch(/^what is newest was last stated until .*Z$/);
  expect(await newness({ sequence: 3, expiresAt: day(30) })).toBe("stated");
  expect(served).toBe(5);
});

test("endless lists are read up to their maximum length", async () => {
  world.files.set("/releases/keys.json", `{"rotations":[${" ".repeat(1024 * 1024)}]}`);
  world.files.set("/releases/current.json", `{"manifest":null${" ".repeat(3 * 1024 * 1024)}}`);
  const source = sourceOf(world);
  const tools = {
    ...{ source, shelf, now: new Date(), onSeen: () => {}, wrongBundles: new Map<string, number>() },
    policy: releasePolicy.parse({}),
    trust: keptTrust({ shelf, pinned, now }),
  };

  await expect(refreshTrust({ shelf, pinned, now, source })).rejects.toThrow(/longer than 1048576 bytes/);
  expect(await takeCurrent(emptyState, tools)).toMatchObject({
    type: "failed",
    reason: expect.stringMatching(/longer than 3145728 bytes/),
  });
});

/** What the supervisor's downloads may use, against a real server that sends as fast as possible. */
describe("the allowance for downloads", () => {
  const bundle = Buffer.alloc(400 * 1024, "x");
  let server: Awaited<ReturnType<typeof onLoopback>>;
  let home: string;
  let asked: (string | undefined)[];
  let sentBytes: number;
  beforeEach(async () => {
    home = temporaryFolder("nearcrawl-allowance-");
    asked = [];
    sentBytes = 0;
    const serving = createServer((request, answer) => {
      asked.push(request.headers.range);
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
      const body = first === undefined ? bundle : bundle.subarray(Number(first), Number(last) + 1);
      sentBytes += body.length;
      answer.writeHead(first === undefined ? 200 : 206, { "content-length": body.length }).end(body);
    });
    server = await onLoopback(serving);
  });
  afterEach(() => server.close());

  function source(limits: object) {
    const allowance = new DownloadAllowance({ home, limits: () => limitsSchema.parse(limits) });
    const from = new ReleaseSource({
      coordinatorUrl: `ws://127.0.0.1:${server.port}/crawler`,
      route: () => ({ proxy: null, certificatePin: null, timeoutMs: 5000 }),
      allowance,
    });
    return { from, allowance };
  }

  const countedBytes = () =>
    (JSON.parse(readFileSync(join(home, "day-count.json"), "utf8")) as { bytes: number }).bytes;

  it("a bundle is downloaded no faster than the partner's rate, in pieces that occupy no place at the coordinator", async () => {
    const { from } = source({ kilobytesPerSecond: 100 });
    const beganMs = performance.now();
    const fetched = from.download("/releases/x", { bytes: bundle.length, file: join(home, "x.draft") });
    const rates: number[] = [];
    const watch = setInterval(() => rates.push(sentBytes / ((performance.now() - beganMs) / 1000)), 500);

    expect(await fetched).toBe(true);
    clearInterval(watch);

    // 400 KiB at 100 KiB a second, of which a tenth of a second arrives at once.
    expect(performance.now() - beganMs).toBeGreaterThan(3500);
    expect(readFileSync(join(home, "x.draft")).equals(bundle)).toBe(true);
  });

  it("a supervisor that is stopped does not wait for the rate", { timeout: 20_000 }, async () => {
    const { from } = source({ kilobytesPerSecond: 1 });
    const file = join(home, "x.draft");
    const fetched = from
      .download("/releases/x", { bytes: bundle.length, file })
      .catch((error: Error) => error);
    await until(() => sentBytes > 0, 5000);

    from.close();

    expect(await fetched).toBeInstanceOf(Error);
  });

  it("a slow line downloads it in several requests", async () => {
    const { from, allowance } = source({ kilobytesPerSecond: 1 });
    Object.assign(allowance, { take: () => null, tell: () => true });

    await from.download("/releases/x", { bytes: bundle.length, file: join(home, "x.draft") });

    expect(asked).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map(
        (at) => `bytes=${at * 65_536}-${Math.min((at + 1) * 65_536, bundle.length) - 1}`,
      ),
    );
    expect(readFileSync(join(home, "x.draft")).equals(bundle)).toBe(true);
  });

  it("downloaded bytes count in the day's ledger, and nothing is asked for when the day is used up", async () => {
    const { from } = source({ bytesPerDay: 440 * 1024 });
    const file = join(home, "x.draft");
    await from.download("/releases/x", { bytes: bundle.length, file });
    await until(() => countedBytes() >= bundle.length, 5000);
    const before = asked.length;

    const again = from.download("/releases/y", { bytes: bundle.length, file: join(home, "y.draft") });
    const bundleWords = await again.catch((error: Error) => error.message);
    const list = await from.text("/releases/keys.json", 1024 * 1024).catch((error: Error) => error.message);

    expect(bundleWords).toBe("/releases/y: the bytes that this machine's settings allow are used up");
    expect(list).toBe("/releases/keys.json: the bytes that this machine's settings allow are used up");
    expect(asked.length).toBe(before);
  });

  it("a running crawler is informed, and its own ledger is not touched", async () => {
    const { from, allowance } = source({});
    let told = 0;
    allowance.tell = (bytes) => {
      told += bytes;
      return true;
    };

    await from.text("/releases/keys.json", 1024 * 1024);

    await until(() => told > bundle.length, 5000);
    expect(() => countedBytes()).toThrow(/ENOENT/);
  });

  // Issue 41: AbortSignal.timeout only accepts whole milliseconds, and most rates give fractions.
  it.each([1, 3, 7, 100, 1000.3, 9_999_999.5])(
    "lists and bundles arrive at %d KB a second",
    async (kilobytesPerSecond) => {
      const { from, allowance } = source({ kilobytesPerSecond });
      Object.assign(allowance, { take: () => null, tell: () => true });
      const file = join(home, "x.draft");

      expect(await from.text("/releases/keys.json", 1024 * 1024)).toHaveLength(bundle.length);
      expect(await from.download("/releases/x", { bytes: bundle.length, file })).toBe(true);
    },
  );
});
