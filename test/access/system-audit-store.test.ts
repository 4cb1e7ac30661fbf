/** The coordinator's own changes are in the audit log, once: real stores, real database. */
import { afterEach, beforeAll, expect, it } from "vitest";
import { notedTrust } from "#coordinator/crawl/trust/start";
import { createTrustStore } from "#coordinator/crawl/trust/trust-store";
import { createAuditLog, noteOwnChanges } from "#coordinator/database/audit-log";
import { createMoveStore } from "#coordinator/place/crawlers/move-store";
import { notedMoves } from "#coordinator/place/crawlers/start";
import { readTarget } from "#coordinator/run/opt-outs/opt-out";
import { notedOptOuts } from "#coordinator/run/opt-outs/start";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { releaseMoved } from "#coordinator/run/releases/move-stage";
import { asCrawlerId } from "#core/ids";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";

const database = await forThisFile(testDatabase());
const now = () => worldNow;
const errors: object[] = [];
const log = { error: (fields: object) => void errors.push(fields) };
const note = () => noteOwnChanges({ pool: database.pool, log, now });

beforeAll(async () => {
  await seedWorld(database.pool);
  await database.pool.query("update crawler set public_key = 'key of ' || name");
});
afterEach(async () => void (await database.pool.query("truncate audit_entry")));

async function noted(): Promise<string[]> {
  const { entries } = await createAuditLog(database.pool).list({ limit: 50 });
  return [...entries]
    .reverse()
    .map(({ actor, via, action, target, words }) => `${actor} (${via}) ${action} ${target}: ${words}`);
}

it("a crawler that is no longer trusted", async () => {
  const state = { crawler: () => undefined } as unknown as Parameters<typeof notedTrust>[1];
  const trust = notedTrust(createTrustStore(database.pool), state, note());
  const crawlerId = asCrawlerId(1);
  const distrust = { crawlerId, words: "its pages differed", now: worldNow, drain: null };

  await trust.distrust(distrust);
  await trust.distrust(distrust);
  await trust.doubtProbes({ crawlerId, words: "too fast", now: worldNow });

  expect(await noted()).toEqual([
    "coordinator (coordinator) crawler-distrusted crawler 1: crawler 1 is no longer trusted, and it keeps its subnets: its pages differed.",
    "coordinator (coordinator) crawler-probes-doubted crawler 1: crawler 1's probe reports are no longer trusted: too fast.",
  ]);
});

it("moves that were made, and those that failed", async () => {
  await database.pool.query("delete from crawler_trust; update crawler set state = 'online'");
  const moves = notedMoves(createMoveStore(database.pool), note());
  const ask = async () => {
    const moveId = await moves.ask({ name: "athens", otherName: "tokyo" }, worldNow);
    if (typeof moveId === "string") throw new Error(moveId);
    return moveId;
  };

  await moves.fail(await ask(), "nothing happened", worldNow);
  const moveId = await ask();
  const steps = ["asked", "emptying", "packing", "sending"] as const;
  for (const [index, from] of steps.slice(0, -1).entries()) {
    await moves.advance(moveId, { from, to: steps[index + 1] ?? "failed" }, worldNow);
  }
  expect(await moves.commit(moveId, worldNow)).toBe(true);

  expect(await noted()).toEqual([
    "coordinator (coordinator) crawler-move-failed athens: athens was not moved to the host of tokyo: nothing happened.",
    "coordinator (coordinator) crawler-moved athens: athens has moved to the host of tokyo, which no longer exists.",
  ]);
});

it("opt-outs: asked for with the form, confirmed by the site, lapsed", async () => {
  const optOuts = notedOptOuts(createOptOutStore(database.pool), note());
  const request = async (site: string) => {
    const target = readTarget(site, "sites-only");
    if (typeof target === "string") throw new Error(target);
    const asked = { target, source: "form", words: "", replyTo: null, requester: "192.0.2.7" } as const;
    return await optOuts.request({ ...asked, confirmed: false }, worldNow);
  };

  const { optOutId } = await request("www.example.org");
  await optOuts.confirm(optOutId, "site", worldNow);
  await request("old.example.org");
  await optOuts.lapse(new Date(worldNow.getTime() + 365 * 86_400_000));

  expect(await noted()).toEqual([
    "anybody (page) opted-out www.example.org: Somebody opted www.example.org out with the form (unconfirmed: hidden until 2026-03-08, then deleted).",
    "coordinator (coordinator) opt-out-confirmed www.example.org: www.example.org proved its opt-out, in its DNS or by a file: it is permanent.",
    "anybody (page) opted-out old.example.org: Somebody opted old.example.org out with the form (unconfirmed: hidden until 2026-03-08, then deleted).",
    "coordinator (coordinator) opt-outs-lapsed null: 1 lapsed: nobody confirmed in time.",
  ]);
});

it("releases that moved on or were held", async () => {
  await note()(
    releaseMoved({ version: "1.4.0", type: "advance", stage: "percent", words: "athens runs it" }),
  );
  await note()(releaseMoved({ version: "1.4.0", type: "stop", stage: "none", words: "athens returned" }));

  expect(await noted()).toEqual([
    "coordinator (coordinator) release-staged release 1.4.0: Release 1.4.0 moved on: athens runs it.",
    "coordinator (coordinator) release-held release 1.4.0: Release 1.4.0 is held: athens returned.",
  ]);
});

it("a change that cannot be recorded is logged, and stays done", async () => {
  const away = { query: async () => await Promise.reject(new Error("the server is away")) };

  await noteOwnChanges({ pool: away as never, log, now })({ action: "x", target: "athens", words: "" });

  expect(errors).toEqual([{ error: new Error("the server is away"), action: "x", target: "athens" }]);
});
