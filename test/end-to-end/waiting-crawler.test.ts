/**
 * A crawler that has joined and cannot run yet says so at both ends: a coordinator behind TLS, the partner's commands and local
 * page, and the real crawler as a release once there is one.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { createReleaseStore } from "#coordinator/run/releases/release-store";
import { stateWords } from "#coordinator/tell/fleet/fleet-api";
import { fleetEntry } from "#coordinator/tell/fleet/fleet-reads";
import { alertFacts } from "#coordinator/tell/overview/alert-reads";
import { alertsOf } from "#coordinator/tell/overview/alert-rules";
import { runSupervisor } from "#crawler/supervisor/run-supervisor";
import { supervisorTiming } from "#crawler/supervisor/supervisor-home";
import { formatInvitation } from "#protocol/invitation";
import { type JoiningWorld, newJoiningWorld } from "../gateway/joining-world.ts";
import { type PartnerConsole, partnerConsole } from "../migrating-crawler/support/partner-console.ts";
import { builtDoors, projectRoot } from "../support/built-command.ts";
import { everyRead } from "../support/every-read.ts";
import { freePort } from "../support/free-port.ts";
import { publishedRelease } from "../support/releases.ts";
import { until } from "../support/until.ts";

let world: JoiningWorld;
let partner: PartnerConsole;
let port: number;
const supervisors: (() => Promise<void>)[] = [];
beforeAll(async () => {
  world = await newJoiningWorld();
}, 60_000);
beforeEach(async () => {
  partner = partnerConsole();
  const { code, text } = await partner.run("join", formatInvitation(await world.invite("athens")));
  if (code !== 0) throw new Error(text);
  port = await freePort();
});
afterEach(async () => {
  for (const stop of supervisors.splice(0)) await stop();
  await world.reset();
});
afterAll(async () => await world?.close());

const soonMs = 30_000;
const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

/** `run` in this process; its output is its log. */
function startSupervisor(settings = ""): string[] {
  writeFileSync(join(partner.home, "settings.toml"), `[status]\nport = ${port}\n${settings}`);
  const lines: string[] = [];
  let ask: (asked: "stop") => void = () => {};
  const asked = new Promise<"stop">((resolve) => {
    ask = resolve;
  });
  const running = runSupervisor({
    ...{ home: partner.home, env: {}, program: "nearcrawl-crawler.mjs" },
    print: (line) => void lines.push(line),
    timing: { ...supervisorTiming, emptyPollMs: 300 },
    untilAsked: async () => await asked,
  });
  supervisors.push(async () => {
    ask("stop");
    await running;
  });
  return lines;
}

/** Empty while the page is not served: its thread is starting, or the supervisor hands the port to the crawler. */
const page = async () =>
  await fetch(`http://127.0.0.1:${port}/`).then(
    async (answer) => await answer.text(),
    () => "",
  );
const reason = async () =>
  String((await world.rows("select offline_reason from crawler where name = 'athens'"))[0]?.offline_reason);
const alerts = async () => {
  const nowMs = () => performance.now();
  const facts = await alertFacts(world.pool, everyRead(world.pool, nowMs), { now: new Date(), nowMs });
  return alertsOf(facts).map(({ name, targets }) => [name, ...targets].join(" "));
};

it("without a release, its log, status and local page and the coordinator's pages, commands and alerts say so; with one it runs", async () => {
  const lines = startSupervisor();
  await until(async () => (await reason()).includes("it waits for"), soonMs);
  await until(async () => (await partner.run("status")).text.includes("waits for"), soonMs);
  const status = await partner.run("status");
  const log = await partner.run("log");
  await until(async () => (await page()) !== "", soonMs);
  const shown = await page();
  const record = await fleetEntry(world.pool, "athens", new Date());
  const told = [...(await alerts())];
  await builtDoors();
  const bundle = readFileSync(join(projectRoot, "dist/crawler-bundle.mjs"), "utf8");
  await publishedRelease(world.pool, {
    ...{ version: "1.0.0", stage: "all", bundle },
    manifest: { createdAt: day(0), expiresAt: day(1) },
  });
  await until(async () => (await world.stateOf("athens")) === "online", soonMs);
  await until(async () => (await page()).includes("Connected"), soonMs);

  const waits = /waits for a release: the coordinator offers none to all crawlers/;
  expect(status).toMatchObject({ code: 3, text: expect.stringMatching(waits) });
  expect(status.text).not.toContain("Nothing holds it back");
  expect(log.text).toMatch(/warn: no crawler runs here for now waitsFor=.*offers none to all/);
  expect(lines.filter((line) => line.includes("no crawler runs here for now")).length).toBe(1);
  expect(shown).toMatch(waits);
  expect(stateWords(record!).advice).toMatch(/Offer one to all: nearcrawl release list/);
  expect(stateWords({ ...record!, connectedAt: null }).why).toMatch(waits);
  expect(told).toEqual(expect.arrayContaining(["release-missing", "crawler-waits athens"]));
  expect((await alerts()).filter((name) => /release-missing|crawler-waits/.test(name))).toEqual([]);
  expect((await partner.run("status")).code).toBe(0);
  await createReleaseStore(world.pool).setStage(
    "1.0.0",
    { stage: "none", percent: null, words: "", soakMinutes: null },
    new Date(),
  );
});

it("a release that its administrator has not accepted, and a refusal by the coordinator, are shown at both ends", async () => {
  await publishedRelease(world.pool, {
    ...{ version: "2.0.0", stage: "all", bundle: "process.exit(0);\n" },
    manifest: { createdAt: day(0), expiresAt: day(1) },
  });
  startSupervisor(`[releases]\npolicy = "ask"\n`);
  await until(async () => (await reason()).includes("administrator"), soonMs);
  await until(
    async () => (await partner.run("status")).text.includes("this machine's administrator"),
    soonMs,
  );
  const asked = await partner.run("status");
  const record = await fleetEntry(world.pool, "athens", new Date());
  for (const stop of supervisors.splice(0)) await stop();
  await world.rows("update crawler set revoked_at = now() where name = 'athens'");
  const lines = startSupervisor(`[releases]\npolicy = "ask"\n`);
  await until(async () => (await partner.run("status")).text.includes("removed this crawler"), soonMs);
  const refused = await partner.run("status");
  await new Promise((done) => setTimeout(done, 3000));
  const noted = await world.rows("select kind from incident");
  const told = await alerts();
  const anew = formatInvitation(await world.invite("athens", { renews: true }));
  for (const stop of supervisors.splice(0)) await stop();
  const joined = await partner.run("join", anew, "--again");
  startSupervisor(`[releases]\npolicy = "ask"\n`);
  await until(
    async () => (await partner.run("status")).text.includes("this machine's administrator"),
    soonMs,
  );

  expect(asked.text).toMatch(/this machine's administrator: release 2\.0\.0 is offered, and by \[releases\]/);
  expect(stateWords(record!).advice).toContain("Its partner decides which releases run there");
  expect(refused.text).toMatch(/waits for a new invitation; the operator has removed this crawler/);
  expect(refused.text).toMatch(/asks the coordinator no more: .*Ask the operator why/);
  expect(lines.filter((line) => line.includes("has removed this crawler")).length).toBe(1);
  expect(noted).toEqual([]);
  expect(told.filter((name) => /incidents|athens/.test(name))).toEqual([]);
  expect(joined).toMatchObject({ code: 0 });
});
