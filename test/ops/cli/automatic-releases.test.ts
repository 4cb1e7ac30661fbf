/** A coordinator's own release key and first release: real database, real files, given time. */
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { invitingCoordinator } from "#coordinator/run/access/inviting-coordinator-reads";
import { silentLog } from "#core/log";
import {
  automaticKeyFile,
  keepReleases,
  releaseStores,
  timestampKeyFile,
} from "#ops/cli/release/automatic-releases";
import { readSigningKey, writeNewKey } from "#ops/cli/release/release-key-file";
import { signRoot, signRotation } from "#ops/cli/release/sign-release";
import { rawPublicKey } from "#protocol/release-envelope";
import { type FlowWorld, newFlowWorld } from "../../support/flow-world.ts";
import { newReleaseKey } from "../../support/releases.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let world: FlowWorld;
let folder: string;
let changes: string[];
beforeAll(async () => {
  world = await newFlowWorld();
});
beforeEach(async () => {
  await world.reset();
  await world.pool.query(
    "truncate release_key, release_key_rotation, release_revocation, release_timestamp, release_bundle, release, release_offer",
  );
  folder = temporaryFolder("nearcrawl-automatic-");
  changes = [];
  ship("the first crawler");
  return () => rmSync(folder, { recursive: true, force: true });
});
afterAll(async () => await world?.close());

const at = (name: string) => join(folder, name);
const ship = (text: string) => writeFileSync(at("bundle.mjs"), `console.log(${JSON.stringify(text)});\n`);
const now = new Date();
const after = (days: number) => new Date(now.getTime() + days * 86_400_000);
const stores = () => ({
  ...releaseStores(world.pool),
  record: async ({ action }: { readonly action: string }) => void changes.push(action),
});
const start = async (when = now, home = at("home"), version = "0.1.0") =>
  await keepReleases({ stores: stores(), home, version, log: silentLog, bundleFile: at("bundle.mjs") }, when);
const releases = async () =>
  (await stores().releases.list()).map(({ version, stage }) => `${version} ${stage}`);
const trusted = async () => await stores().keys.trusted();

it("the first start makes a key readable only by its owner, and a release for all; the next changes nothing", async () => {
  await start();
  const invitation = await invitingCoordinator(world.pool, { url: "wss://search.example/crawler" });
  const made = [...changes];
  await start();

  const key = await readSigningKey(automaticKeyFile(at("home")), null);
  expect(statSync(automaticKeyFile(at("home"))).mode & 0o777).toBe(0o600);
  expect(await releases()).toEqual(["0.1.0 all"]);
  expect(invitation).toMatchObject({ releaseKeys: [rawPublicKey(key)], firstRelease: "0.1.0" });
  expect(made).toEqual(["release-key-trusted", "release-published", "release-staged"]);
  expect(changes).toEqual(made);
});

it("coordinators that start at once on one database agree on one key and one release", async () => {
  const homes = Array.from({ length: 8 }, (_, number) => at(`home-${number}`));

  await Promise.all(homes.map((home) => start(now, home)));

  expect((await trusted()).length).toBe(1);
  expect(await releases()).toEqual(["0.1.0 all"]);
  expect(homes.filter((home) => existsSync(automaticKeyFile(home))).length).toBe(1);
});

it("an upgrade is published automatically: to all if no supervisor exists yet, else to one crawler first", async () => {
  await start();
  ship("the second crawler");
  await start(after(1));
  const athens = await world.crawler("athens");
  const runs = { version: "0.1.0", digest: "a".repeat(64), dockVersion: "1.0.0", policy: "follow" };
  await stores().releaseFleet.arrived(athens, runs);
  ship("the third crawler");
  await start(after(2), at("home"), "0.2.0");

  const [third, second, first] = await stores().releases.list();
  expect(third).toMatchObject({ version: "0.2.0", stage: "one", firstCrawlerId: athens, soakMinutes: 60 });
  expect(second?.version).toMatch(/^0\.1\.0-[0-9a-f]{8}$/);
  expect([second?.stage, first?.version]).toEqual(["all", "0.1.0"]);
});

it("a release is signed again before it ends, except one that an operator holds or replaced", async () => {
  await start();
  await start(after(50));
  const before = (await stores().releases.list())[0]!;
  await start(after(70));
  const renewed = (await stores().releases.list())[0]!;
  await stores().releases.setStage(
    "0.1.0",
    { stage: "none", percent: null, words: "it does harm", soakMinutes: null },
    now,
  );
  await start(after(140));

  expect(before.expiresAt.getTime()).toBe(after(90).getTime());
  expect(renewed.expiresAt.getTime()).toBe(after(160).getTime());
  expect([renewed.version, renewed.digest, renewed.stage]).toEqual(["0.1.0", before.digest, "all"]);
  expect(await releases()).toEqual(["0.1.0 none"]);
});

it("nothing is signed where operators sign: their key, the key taken away, or rotated", async () => {
  await stores().keys.trustFirst(newReleaseKey().publicKey, now);
  await start();
  const ownKey = [await releases(), existsSync(at("home"))];
  await world.pool.query("truncate release_key");

  await start();
  ship("the second crawler");
  const later = after(1);
  renameSync(automaticKeyFile(at("home")), at("offline.pem"));
  await start(later);
  const takenAway = await releases();
  renameSync(at("offline.pem"), automaticKeyFile(at("home")));
  writeNewKey(at("next.pem"), null);
  const [old, next] = [
    await readSigningKey(automaticKeyFile(at("home")), null),
    await readSigningKey(at("next.pem"), null),
  ];
  await stores().keys.rotate(signRotation({ old, next, keepOld: false }, now).signed, now);
  await start(later);

  expect(ownKey).toEqual([[], false]);
  expect(takenAway).toEqual(["0.1.0 all"]);
  expect(await releases()).toEqual(["0.1.0 all"]);
  expect(await trusted()).toEqual([rawPublicKey(next)]);
});

it("the newest release is stated daily for a week, by the automatic key or the root's", async () => {
  const statedUntil = async () => (await stores().releases.statedUntil())?.getTime();
  await start();
  const first = await statedUntil();
  await start(after(0.5));
  const same = await statedUntil();
  await start(after(1));
  const second = await statedUntil();
  await stores().releases.setStage(
    "0.1.0",
    { stage: "none", percent: null, words: "it does harm", soakMinutes: null },
    now,
  );
  await start(after(1.1));
  const held = await stores().releases.timestamp();

  expect([first, same, second]).toEqual([after(7).getTime(), after(7).getTime(), after(8).getTime()]);
  expect(JSON.parse(held?.body ?? "{}")).toMatchObject({ release: null, revocations: 0 });

  const automatic = await readSigningKey(automaticKeyFile(at("home")), null);
  writeNewKey(timestampKeyFile(at("home")), null);
  const stating = rawPublicKey(await readSigningKey(timestampKeyFile(at("home")), null));
  const role = (key: string) => ({ keys: [key], threshold: 1 });
  const own = role(rawPublicKey(automatic));
  const roles = { root: own, releases: own, revocations: own, timestamp: role(stating) };
  await stores().keys.rotate(signRoot(roles, [automatic], after(2)).signed, after(2));
  await start(after(2));

  expect((await stores().releases.timestamp())?.signatures.map(({ key }) => key)).toEqual([stating]);
});

it("a killed start is finished by the next one; without a bundle nothing is made", async () => {
  rmSync(at("bundle.mjs"));
  await start();
  const without = readdirSync(folder);
  ship("the first crawler");
  await start();
  await world.pool.query("update release set stage = 'none', stage_since = null");
  await start();
  const staged = await releases();
  await world.pool.query("truncate release_bundle, release cascade");
  await start();
  await world.pool.query("truncate release_key");
  const [key] = [rawPublicKey(await readSigningKey(automaticKeyFile(at("home")), null))];
  await start();

  expect(without).toEqual([]);
  expect([staged, await releases()]).toEqual([["0.1.0 all"], ["0.1.0 all"]]);
  expect(await trusted()).toEqual([key]);
});
