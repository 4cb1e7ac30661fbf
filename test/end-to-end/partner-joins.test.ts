/**
 * A partner's crawler from its invitation to its removal, against a coordinator behind TLS: joined by the command, run from
 * its folder alone, given a new key, copied, invited again, uninstalled.
 */
import { cpSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { createFleetKeys } from "#coordinator/place/crawlers/identity-store";
import { readMembership } from "#crawler/core/membership";
import { startCrawler } from "#crawler/main";
import { homeSettings } from "#crawler/membership/home-folder";
import { formatInvitation } from "#protocol/invitation";
import { type JoiningWorld, newJoiningWorld } from "../gateway/joining-world.ts";
import { type PartnerConsole, partnerConsole } from "../migrating-crawler/support/partner-console.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

let world: JoiningWorld;
let partner: PartnerConsole;
const cleanups: (() => unknown)[] = [];
beforeAll(async () => {
  world = await newJoiningWorld();
}, 60_000);
beforeEach(async () => {
  partner = partnerConsole();
  const token = formatInvitation(await world.invite("athens"));
  const { code, text } = await partner.run("join", token);
  if (code !== 0) throw new Error(text);
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await until(async () => (await world.stateOf("athens")) !== "online", 10_000);
  await world.reset();
});
afterAll(async () => await world?.close());

const soonMs = 15_000;

/** Runs by the folder's settings and membership; resolves when it is welcomed or refused. */
async function run(home: string) {
  let refused: string | null = null;
  const crawler = await startCrawler(homeSettings(home), {
    onRefused: ({ reason }) => {
      refused = reason;
    },
  });
  cleanups.push(() => crawler.stop());
  await until(() => crawler.status().connected || refused !== null, soonMs);
  return { crawler, refusal: () => refused };
}

it("a joined crawler runs from its folder alone, also on a reinstalled machine", async () => {
  const { home } = partner;
  const first = await run(home);
  const idOfFirst = first.crawler.status().crawlerId;
  await first.crawler.stop();
  const rebuilt = temporaryFolder("nearcrawl-rebuilt-");
  cleanups.push(() => rmSync(rebuilt, { recursive: true }));
  cpSync(home, rebuilt, { recursive: true });
  rmSync(home, { recursive: true });

  const second = await run(rebuilt);

  expect(second.refusal()).toBeNull();
  expect(second.crawler.status().crawlerId).toBe(idOfFirst);
  expect(await world.keptKeys("athens")).toBe(1);
});

it("a new key is on the disk before the coordinator learns of it, and is used in the next session", async () => {
  const { home } = partner;
  const { crawler } = await run(home);
  const old = readMembership(home)!.key;

  await createFleetKeys(world.pool).askRotation("athens", { graceHours: 0, now: new Date() });
  await until(() => readMembership(home)!.key !== old, soonMs);
  const newestIsKept =
    "select from crawler_key where kept_at is not null and key_id = (select max(key_id) from crawler_key)";
  await until(async () => (await world.rows(newestIsKept)).length === 1, soonMs);
  await crawler.stop();
  await world.rows("update crawler_key set expires_at = now() where expires_at is not null");
  const next = await run(home);

  expect(next.refusal()).toBeNull();
});

it("a copied folder is refused with instructions while the other runs, and runs after a new invitation", async () => {
  const { home } = partner;
  const original = await run(home);
  const copy = `${home}-copy`;
  cpSync(home, copy, { recursive: true });
  rmSync(join(copy, "spool", "lock"));

  const copied = await run(copy);
  await original.crawler.stop();
  await until(async () => (await world.stateOf("athens")) !== "online", soonMs);
  const token = formatInvitation(await world.invite("athens", { renews: true }));
  const again = await partner.run("join", token, "--again", "--home", copy);
  const renewed = await run(copy);
  const outdated = await run(home);

  expect(copied.refusal()).toMatch(
    /copied-folder.* Run only one of them: stop the other one, and remove the copy/,
  );
  // Incidents are collected for a moment before they are written.
  await until(async () => (await world.incidentKinds()).includes("copied-folder"), soonMs);
  expect(again).toMatchObject({ code: 0 });
  expect(renewed.refusal()).toBeNull();
  expect(outdated.refusal()).toMatch(/wrong-key.* run join with it and --again/);
});

it("a folder with a replaced identity is refused for its signature, and an uninstall leaves nothing", async () => {
  const { home } = partner;
  const keys = join(home, "identity.json");
  const other = partnerConsole();
  await other.run("join", formatInvitation(await world.invite("sparta")));
  cpSync(join(other.home, "identity.json"), `${keys}.other`);
  cpSync(keys, `${keys}.own`);
  cpSync(`${keys}.other`, keys);

  const wrong = await run(home);
  cpSync(`${keys}.own`, keys);
  const { code } = await partner.run("uninstall", "--yes");

  expect(wrong.refusal()).toMatch(/bad-signature.* put both back from the same backup/);
  expect(code).toBe(0);
  expect(existsSync(home)).toBe(false);
});

it("the coordinator plans with the limits in the folder's settings", async () => {
  const { home } = partner;
  writeFileSync(join(home, "settings.toml"), "[limits]\npagesPerDay = 4321\n");

  await run(home);

  expect(await world.rows("select pages_per_day::int from crawler where name = 'athens'")).toEqual([
    { pages_per_day: 4321 },
  ]);
});
