/** One crawler: its page, its log and absences, and what would happen if it were shut out. */

import type { z } from "zod";
import type { FleetKeys } from "#core/access-types";
import { mayDo } from "#core/actor";
import { bytesText, howMany } from "#core/format";
import { asCrawlerId } from "#core/ids";
import { timeRange } from "#core/time-range";
import type { Budget, ChangedBudget, DrainedBy } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { MoveRefusal } from "../crawlers/move-store.ts";
import { giveDomainSets, givenWords } from "../domain-sets/assign.ts";
import type { FrontierStore } from "../frontier/frontier-store.ts";
import type { Visit } from "../web/access.ts";
import type { ActionOperation, Actions, AskedAction, Outcome } from "../web/actions.ts";
import { type BodyOf, routePath } from "../web/api-operation.ts";
import {
  bytesOrNull,
  confirmationOf,
  isName,
  noCrawler,
  numberOrNull,
  unconfirmed,
} from "../web/form-fields.ts";
import { type AskedView, numberIn, type Views } from "../web/views.ts";
import { crawlerApi, type ShutOutPreview } from "./crawler-api.ts";
import { crawlerLogBody } from "./crawler-history-page.ts";
import { crawlerBody, shutOutBody } from "./crawler-page.ts";
import { type CrawlerView, crawlerView } from "./crawler-view.ts";
import type { FleetPorts } from "./fleet-store.ts";

/** Fifty lines each: as far back as anybody reads. */
const mostLogPages = 200;

export function addCrawlerRoutes(views: Views, ports: FleetPorts): void {
  views.describe({
    ...{ path: "/crawlers/:name", operation: crawlerApi.crawler, crawlerIn: "name" },
    view: async (asked) => await crawlerShown(asked, ports),
  });
  views.describe({
    path: "/crawlers/:name/log",
    operation: crawlerApi.crawlerLog,
    ...{ crawlerIn: "name" },
    view: async (asked) => await logShown(asked, ports),
  });
  views.describe({
    path: "/crawlers/:name/kill",
    operation: crawlerApi.shutOutPreview,
    view: async (asked) => await shutOutShown(asked, ports),
  });
}

async function viewOf(asked: AskedView, ports: FleetPorts): Promise<CrawlerView | null> {
  const { visit, now } = asked;
  const name = asked.param("name");
  if (!isName(name)) return null;
  const logPage = Math.min(mostLogPages, Math.max(1, numberIn(asked.query("page"), 1)));
  return await crawlerView({ name, logPage, actor: visit.actor, now }, ports);
}

async function crawlerShown(asked: AskedView, ports: FleetPorts) {
  const view = await viewOf(asked, ports);
  if (view === null) return null;
  const at = asked.now.toISOString();
  const history = await ports.overview.crawlerCharts(view.crawler, timeRange(asked.query, asked.now));
  return {
    status: 200,
    value: { ...view, history },
    title: view.crawler.name,
    body: (visit: Visit) => crawlerBody({ view, history, at }, visit),
  };
}

async function logShown(asked: AskedView, ports: FleetPorts) {
  const view = await viewOf(asked, ports);
  if (view === null || view.inside === null) return null;
  const { log } = view.inside;
  const { absences } = view.operation;
  const at = asked.now.toISOString();
  return {
    status: 200,
    value: { name: view.crawler.name, ...log, absences },
    title: `Log of ${view.crawler.name}`,
    body: () => crawlerLogBody(view.crawler.name, log, at),
    csv: () => ({
      columns: ["at", "kind", "words", "by"],
      rows: log.lines.map((line) => [line.at.toISOString(), line.kind, line.words, line.by]),
    }),
  };
}

async function shutOutShown(asked: AskedView, ports: FleetPorts) {
  const name = asked.param("name");
  if (!isName(name) || !mayDo(asked.visit.actor, "fleet-write")) return null;
  const entry = await ports.reads.crawler(name, asked.now);
  if (entry === null) return null;
  const heirs = await ports.succession(asCrawlerId(entry.crawlerId));
  const { state, revoked, openLeases, subnets } = entry;
  const preview: ShutOutPreview = { name, state, revoked, openLeases, subnets, heirs };
  return {
    status: 200,
    value: preview,
    title: `Remove ${name}?`,
    body: (visit: Visit) => shutOutBody(preview, visit),
  };
}

// A crawler that must go at once: no key opens anything, its leases return, its subnets go to others.

/**
 * Returns how many leases came back; null: there is no crawler of that name. Running coordinators end its session
 * and hand its subnets over without waiting for it.
 */
export async function killCrawler(
  name: string,
  ports: {
    readonly keys: Pick<FleetKeys, "revoke">;
    readonly crawlers: Pick<CrawlerStore, "drain">;
    readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
  },
  now: Date,
): Promise<number | null> {
  const crawlerId = await ports.keys.revoke(name, now);
  if (crawlerId === null) return null;
  await ports.crawlers.drain(name, now);
  return await ports.frontier.returnLeasesOf(crawlerId, now);
}

// What operators do with a crawler, and the two things that its partner may do, too: drain it and take it back.

type Asked<Body> = Pick<AskedAction<Body>, "body" | "actor" | "now"> & { readonly name: string };

export function addCrawlerActions(actions: Actions, ports: FleetPorts): void {
  const add = <Schema extends z.ZodType>(deed: {
    readonly operation: ActionOperation<Schema>;
    readonly partnersToo?: true;
    readonly fromForm?: (values: Readonly<Record<string, string>>) => unknown;
    readonly act: (asked: Asked<z.infer<Schema>>, ports: FleetPorts) => Promise<Outcome>;
  }) => {
    actions.describe({
      path: routePath(deed.operation).replace("/api/fleet", ""),
      operation: deed.operation,
      ...{ crawlerIn: "name", partnersToo: deed.partnersToo === true },
      fromForm: deed.fromForm ?? (() => ({})),
      act: async ({ body, actor, now, param }) =>
        await deed.act({ body, actor, now, name: param("name") }, ports),
    });
  };
  add({ operation: crawlerApi.drainCrawler, partnersToo: true, act: drain });
  add({ operation: crawlerApi.resumeCrawler, partnersToo: true, act: resume });
  add({ operation: crawlerApi.revokeCrawler, fromForm: confirmationOf, act: revoke });
  add({ operation: crawlerApi.killCrawler, fromForm: confirmationOf, act: kill });
  add({ operation: crawlerApi.rotateKey, act: rotate });
  add({ operation: crawlerApi.renewSigningKey, act: renewSigningKey });
  add({ operation: crawlerApi.believeCrawler, act: believe });
  add({
    operation: crawlerApi.giveDomainSets,
    fromForm: ({ sets = "" }) => ({ sets: sets.split(/\r?\n/).filter((line) => line.trim() !== "") }),
    act: domainSets,
  });
  add({ operation: crawlerApi.moveCrawler, fromForm: ({ to }) => ({ to }), act: move });
  add({
    operation: crawlerApi.grantBudget,
    fromForm: (values) => ({
      pagesPerDay: numberOrNull(values.pagesPerDay),
      bytesPerDay: bytesOrNull(values.gigabytesPerDay),
    }),
    act: budget,
  });
}

const pageOf = (name: string) => `/crawlers/${encodeURIComponent(name)}`;
const byOf = ({ role }: Asked<unknown>["actor"]): DrainedBy => (role === "partner" ? "partner" : "operator");

type Done = Extract<Outcome, { readonly type: "done" }>;

function done(name: string, deed: string, words: string, value: object, more: object = {}): Done {
  const change = { action: `crawler-${deed}`, target: name, words, ...more };
  return { type: "done", value, goTo: pageOf(name), said: words, change };
}

const accepted = (outcome: Done, goTo = outcome.goTo): Outcome => ({ ...outcome, status: 202, goTo });

async function drain({ name, actor, now }: Asked<unknown>, { crawlers }: FleetPorts): Promise<Outcome> {
  if (!(await crawlers.drain(name, now, byOf(actor)))) return noCrawler(name);
  const words = `${name} gets no more leases, and its subnets go to others.`;
  return done(name, "drained", words, { name, draining: true });
}

async function resume({ name, actor, now }: Asked<unknown>, ports: FleetPorts): Promise<Outcome> {
  const by = byOf(actor);
  if (!(await ports.crawlers.resume(name, now, by))) {
    return by === "partner" ? notYours(name) : noCrawler(name);
  }
  const words = `${name} is back and gets the subnets nearest to it.`;
  return done(name, "resumed", words, { name, draining: false });
}

const notYours = (name: string): Outcome => ({
  type: "fault",
  status: 409,
  title: "Not by you",
  words: `${name} was drained by an operator, or is not trusted: ask an operator to resume it.`,
});

type Confirmed = BodyOf<typeof crawlerApi.killCrawler>;

const nameOf = (name: string) => ({ text: name, words: "the crawler's name" });

async function revoke({ name, body, now }: Asked<Confirmed>, { keys }: FleetPorts): Promise<Outcome> {
  const fault = unconfirmed(body, nameOf(name));
  if (fault !== null) return fault;
  if ((await keys.revoke(name, now)) === null) return noCrawler(name);
  const words = `${name}'s access is revoked, and its session ends if it has one.`;
  return done(name, "revoked", words, { name, revoked: true });
}

async function kill({ name, body, now }: Asked<Confirmed>, ports: FleetPorts): Promise<Outcome> {
  const fault = unconfirmed(body, nameOf(name));
  if (fault !== null) return fault;
  const returnedLeases = await killCrawler(name, ports, now);
  if (returnedLeases === null) return noCrawler(name);
  const words = `${name}'s access is revoked, ${howMany(returnedLeases, "lease")} returned, and its subnets go to others.`;
  return done(name, "killed", words, { name, revoked: true, returnedLeases }, { after: { returnedLeases } });
}

async function rotate(
  { name, body, now }: Asked<BodyOf<typeof crawlerApi.rotateKey>>,
  { keys }: FleetPorts,
): Promise<Outcome> {
  const [asked] = await keys.askRotation(name, { ...body, now });
  if (!asked) return cannotRotate(name);
  const words = `${name} gets a new key ${asked.online ? "now" : "when it comes next"}; the old one stays good for ${body.graceHours} hours after that.`;
  return accepted(done(name, "key-rotated", words, { ...asked, ...body }, { after: body }));
}

const cannotRotate = (name: string): Outcome => ({
  type: "fault",
  status: 409,
  title: "Nothing to rotate",
  words: `${name.slice(0, 63)} is no crawler with an identity of its own that may connect: invite it (POST /api/fleet/invitations).`,
});

async function renewSigningKey({ name, now }: Asked<unknown>, { keys }: FleetPorts): Promise<Outcome> {
  const [asked] = await keys.askSigningKey(name, now);
  if (!asked) {
    const words = `${name.slice(0, 63)} is no crawler that makes signing keys and may connect: older ones sign with their identities.`;
    return { type: "fault", status: 409, title: "No signing key to renew", words };
  }
  const words = `${name} makes another signing key ${asked.online ? "now" : "when it comes next"}, and uses it once sites can know it.`;
  return accepted(done(name, "signing-key-asked", words, asked));
}

async function believe({ name, now }: Asked<unknown>, { restoreTrust }: FleetPorts): Promise<Outcome> {
  if (!(await restoreTrust(name, now))) return noCrawler(name);
  const words = `${name} is trusted again: the evidence against it no longer counts, and it starts as a newcomer.`;
  return done(name, "trust-restored", words, { name, restored: true });
}

async function budget(
  { name, body }: Asked<BodyOf<typeof crawlerApi.grantBudget>>,
  { grantBudget }: FleetPorts,
): Promise<Outcome> {
  const changed = await grantBudget(name, {
    ...(body.pagesPerDay === undefined ? {} : { pagesPerDay: body.pagesPerDay }),
    ...(body.bytesPerDay === undefined ? {} : { bytesPerDay: body.bytesPerDay }),
  });
  if (changed === null) return noCrawler(name);
  const { before, granted: after } = changed;
  return done(name, "budget-granted", budgetWords(name, changed), { name, ...changed }, { before, after });
}

async function domainSets(
  { name, body: { sets } }: Asked<BodyOf<typeof crawlerApi.giveDomainSets>>,
  { domainSets: store }: FleetPorts,
): Promise<Outcome> {
  const given = await giveDomainSets({ name, sets }, store);
  if (given.type === "no-crawler") return noCrawler(name);
  if (given.type === "refused") {
    return { type: "fault", status: 422, title: "Not given", words: `${given.reason}.` };
  }
  const { before, operator, partner } = given.changed;
  const value = { name, operator, partner, before };
  return done(name, "domain-sets-given", givenWords(given.changed), value, { before, after: operator });
}

/** For people, and the audit log. */
function budgetWords(name: string, { granted, inForce }: ChangedBudget): string {
  const at = ({ pagesPerDay: pages, bytesPerDay: bytes }: Budget) =>
    `${pages === null ? "as many pages as its partner allows" : `${howMany(pages, "page")} at most`} and ` +
    (bytes === null ? "as many bytes as its partner allows" : `${bytesText(bytes)} at most`);
  return (
    `${name} is granted ${at(granted)} per day; with what its partner allows that is ` +
    `${howMany(inForce.pagesPerDay, "page")} and ${bytesText(inForce.bytesPerDay)}.`
  );
}

async function move(
  { name, body: { to }, now }: Asked<BodyOf<typeof crawlerApi.moveCrawler>>,
  { moves }: FleetPorts,
): Promise<Outcome> {
  const moveId = await moves.ask({ name, otherName: to }, now);
  if (typeof moveId === "string") return moveRefused(moveId, name, to);
  const words = `${name} moves to the host of ${to}; the crawler that runs there ceases to exist.`;
  const after = { moveId, to };
  return accepted(done(name, "move-asked", words, { ...after, name }, { after }), "/fleet/moves");
}

function moveRefused(refusal: MoveRefusal, name: string, to: string): Outcome {
  if (refusal === "no-such-crawler") return noCrawler(name);
  if (refusal === "no-such-host") return noCrawler(to);
  const why: Readonly<Record<Exclude<MoveRefusal, "no-such-crawler" | "no-such-host">, string>> = {
    "same-crawler": "name another crawler, which runs on the new host",
    offline: `${name} is not connected; if its host is gone, reissue its credentials`,
    "host-offline": `${to} is not connected: start it on the new host first`,
    "no-identity": "both must have joined with an invitation",
    "shut-out": "the access of one of the two was revoked",
    distrusted: `${to} is not trusted, and its host would not be either as ${name}`,
    moving: "one of the two takes part in another move",
  };
  const words = `${name} was not moved: ${why[refusal]}.`;
  return { type: "fault", status: 409, title: "Not moved", words };
}
