/** Which signed lists on disk a supervisor trusts after keys have changed. */
import { rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { emptyState } from "#crawler/core/release-state";
import { releasePolicy } from "#crawler/settings/release-policy";
import { ReleaseSource } from "#crawler/supervisor/release-source";
import { ReleaseShelf } from "#crawler/supervisor/release-store";
import { takeCurrent } from "#crawler/supervisor/release-updates";
import { faultOfKept, keptTrust, refreshTrust } from "#crawler/supervisor/verify-release";
import { anyOf, formatEnvelope, rawPublicKey, readEnvelope, signBody } from "#protocol/release-envelope";
import { temporaryFolder } from "../../support/temporary-folder.ts";
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

test("a list of revoked releases counts on after the key that signed it was retired, pinned or not", () => {
  const digest = "0".repeat(64);
  const list = { product, sequence: 1, createdAt, digests: [digest], reason: "it leaks" };
  shelf.write("revocations.json", signBody("revocations", list, second));
  shelf.write("rotations.json", [rotation(1, first, second), rotation(2, second, third)]);

  const trust = keptTrust({ shelf, pinned, now });

  expect(trust.roles.releases.keys).toEqual([rawPublicKey(third)]);
  expect(trust.revocations?.digests).toEqual([digest]);
});

test("a release on the disk may run until it is revoked, however genuine it is", async () => {
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

test("a statement of what is newest is asked for on, and goes stale, whatever the clock was set to", () => {
  const now = Date.now();
  const at = (days: number) => new Date(now + days * 86_400_000);
  const [stated, until] = [at(0).toISOString(), at(7).toISOString()];
  const said = { product, sequence: now, createdAt: stated, expiresAt: until, release: null, revocations: 0 };
  shelf.write("timestamp.json", signBody("timestamp", said, first));

  const newness = (days: number) => keptTrust({ shelf, pinned, now: () => at(days) }).newness.type;

  expect([-400, 0, 6, 8].map(newness)).toEqual(["stated", "stated", "stated", "stale"]);
});

test("a statement that is older, good for longer than any is, or withheld takes the place of none", async () => {
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

test("of lists without end no more is read than they can have", async () => {
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
