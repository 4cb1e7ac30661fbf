/** Actions on one crawler, by operators and by its partner, who may drain and resume it. */
import { z } from "zod";
import type { FleetKeys } from "#core/access-types";
import type { Actor } from "#core/actor";
import type { Change } from "#core/audit";
import { bytesText, howMany } from "#core/format";
import { crawlerName } from "#protocol/invitation";
import { Fault, operationsOf } from "../../ask/operation.ts";
import type { FrontierStore } from "../../crawl/frontier/frontier-store.ts";
import type { Budget, ChangedBudget, DrainedBy } from "../../place/crawlers/crawler.ts";
import type { CrawlerStore } from "../../place/crawlers/crawler-store.ts";
import type { MoveRefusal } from "../../place/crawlers/move-store.ts";
import { giveDomainSets, givenWords } from "../../place/domain-sets/assign.ts";
import { mostSetCharacters } from "../../place/domain-sets/domain-set.ts";
import { mostSets } from "../../place/domain-sets/partition.ts";
import { bytesPerDay, pagesPerDay, record, typedConfirmation } from "../../web/api-operation.ts";
import { crawlerPath } from "../../web/components.ts";
import { budgetSchema } from "./fleet-api.ts";
import type { FleetPorts } from "./fleet-store.ts";

const { post } = operationsOf<FleetPorts>();

export const crawlerNamed = crawlerName.meta({ description: "The crawler's name.", example: "athens" });
export const noCrawlerWords = "There is no crawler of this name";
export const noCrawler = (name: string) => new Fault(404, `There is no crawler named ${name.slice(0, 63)}.`);

const ofOne = { name: crawlerNamed };

const deed = <Deed extends string>(name: Deed) =>
  ({
    ...{ path: `/api/fleet/crawlers/{name}/${name}`, page: `/crawlers/:name/${name}`, crawlerIn: "name" },
    needs: "fleet-write",
    faults: { 404: noCrawlerWords },
    goTo: (done: { readonly name: string }) => crawlerPath(done.name),
  }) as const;

const changed = (name: string, deed: string, words: string, more: Partial<Change> = {}): Change => ({
  ...{ action: `crawler-${deed}`, target: name, words, ...more },
});

const byOf = ({ role }: Actor): DrainedBy => (role === "partner" ? "partner" : "operator");

const drained = z.strictObject({ name: z.string(), draining: z.boolean() });

export const drainCrawler = post({
  ...deed("drain"),
  partnersToo: true,
  summary: "Give a crawler no more work and hand over its subnets, until it is resumed",
  description: "Partners may do this with their own, on its page.",
  input: z.object(ofOne),
  output: drained,
  command: { name: "fleet drain" },
  run: async ({ input: { name }, ports, actor, now }) => {
    if (!(await ports.crawlers.drain(name, now, byOf(actor)))) throw noCrawler(name);
    return { name, draining: true };
  },
  change: ({ name }) =>
    changed(name, "drained", `${name} gets no more leases, and its subnets go to others.`),
});

export const resumeCrawler = post({
  ...deed("resume"),
  partnersToo: true,
  summary: "Resume a drained crawler: it gets the subnets nearest to it",
  description: "Partners may resume what they drained themselves.",
  input: z.object(ofOne),
  output: drained,
  command: { name: "fleet resume" },
  run: async ({ input: { name }, ports, actor, now }) => {
    const by = byOf(actor);
    if (await ports.crawlers.resume(name, now, by)) return { name, draining: false };
    if (by === "operator") throw noCrawler(name);
    const words = `${name} was drained by an operator, or is not trusted: ask an operator to resume it.`;
    throw new Fault(409, words, "Not by you");
  },
  change: ({ name }) => changed(name, "resumed", `${name} is back and gets the subnets nearest to it.`),
});

const shutOut = record("ShutOut", {
  name: z.string(),
  revoked: z.boolean(),
  returnedLeases: z.int().optional(),
});
const confirmed = { ...ofOne, confirmation: typedConfirmation("The crawler's name once more") };
const unconfirmed = { 404: noCrawlerWords, 422: "The confirmation is not the crawler's name" };

export const revokeCrawler = post({
  ...deed("revoke"),
  summary: "Revoke a crawler's access at once, whatever key it shows",
  description:
    "Its session ends, and none of its keys works; its subnets go to others after the departure delay. An invitation with " +
    "renews (nearcrawl fleet reinvite) brings it back.",
  input: z.object(confirmed),
  output: shutOut,
  example: { confirmation: "athens" },
  faults: unconfirmed,
  command: {
    name: "fleet revoke",
    follows: "its leases return when they expire; its subnets go to others after the departure delay.",
  },
  run: async ({ input: { name }, ports, now }) => {
    if ((await ports.keys.revoke(name, now)) === null) throw noCrawler(name);
    return { name, revoked: true };
  },
  change: ({ name }) =>
    changed(name, "revoked", `${name}'s access is revoked, and its session ends if it has one.`),
});

export const killCrawler = post({
  ...deed("kill"),
  summary: "Revoke a crawler's access, return its leases and hand over its subnets, all at once",
  description: "As revoke; its leases return and its subnets are handed over without waiting.",
  input: z.object(confirmed),
  output: shutOut,
  example: { confirmation: "athens" },
  faults: unconfirmed,
  command: { name: "fleet kill", follows: "its leases return and its subnets go to others at once." },
  run: async ({ input: { name }, ports, now }) => {
    const returnedLeases = await shutOutAtOnce(name, ports, now);
    if (returnedLeases === null) throw noCrawler(name);
    return { name, revoked: true, returnedLeases };
  },
  change: ({ name, returnedLeases }) => {
    const leases = howMany(returnedLeases, "lease");
    const words = `${name}'s access is revoked, ${leases} returned, and its subnets go to others.`;
    return changed(name, "killed", words, { after: { returnedLeases } });
  },
});

/**
 * Returns how many leases came back, or null if there is no such crawler. Running coordinators end its session and hand its
 * subnets over at once.
 */
export async function shutOutAtOnce(
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

export const rotateKey = post({
  ...deed("rotate"),
  summary: "Give a crawler a new key without touching its machine",
  description:
    "Now, when it is connected, else when it comes; the old key is good for graceHours after the new one has arrived. Keys " +
    "are replaced by themselves after 90 days.",
  input: z.object({
    ...ofOne,
    graceHours: z.number().min(0).max(720).default(24).describe("How long the old key stays good."),
  }),
  output: record("AskedRotation", { name: z.string(), online: z.boolean(), graceHours: z.number() }),
  answer: { status: 202 },
  example: { graceHours: 24 },
  faults: { 409: "No crawler of this name has an identity of its own" },
  command: { name: "fleet rotate" },
  run: async ({ input: { name, graceHours }, ports, now }) => {
    const [asked] = await ports.keys.askRotation(name, { graceHours, now });
    if (asked) return { ...asked, graceHours };
    const words = `${name} is no crawler with an identity of its own that may connect: invite it (POST /api/fleet/invitations).`;
    throw new Fault(409, words, "Nothing to rotate");
  },
  change: ({ name, online, graceHours }) => {
    const comes = online ? "now" : "when it comes next";
    const words = `${name} gets a new key ${comes}; the old one stays good for ${graceHours} hours after that.`;
    return changed(name, "key-rotated", words, { after: { graceHours } });
  },
});

export const renewSigningKey = post({
  ...deed("signing-key"),
  summary: "Have a crawler sign its requests to sites with another key",
  description:
    "It is asked now, when it is connected, else when it comes; it makes the key itself, and uses it once it is published " +
    "and caches know it. Done by itself after signingKeyDays.",
  input: z.object(ofOne),
  output: record("AskedSigningKey", { name: z.string(), online: z.boolean() }),
  answer: { status: 202 },
  faults: { 409: "No crawler of this name makes signing keys" },
  command: { name: "fleet renew-signing-key" },
  run: async ({ input: { name }, ports, now }) => {
    const [asked] = await ports.keys.askSigningKey(name, now);
    if (asked) return asked;
    const words = `${name} is no crawler that makes signing keys and may connect: older ones sign with their identities.`;
    throw new Fault(409, words, "No signing key to renew");
  },
  change: ({ name, online }) => {
    const comes = online ? "now" : "when it comes next";
    const words = `${name} makes another signing key ${comes}, and uses it once sites can know it.`;
    return changed(name, "signing-key-asked", words);
  },
});

export const believeCrawler = post({
  ...deed("believe"),
  summary: "Trust a crawler again",
  description: "The evidence against it no longer counts, and it starts as a newcomer.",
  input: z.object(ofOne),
  output: z.strictObject({ name: z.string(), restored: z.boolean() }),
  command: { name: "fleet believe" },
  run: async ({ input: { name }, ports, now }) => {
    if (!(await ports.restoreTrust(name, now))) throw noCrawler(name);
    return { name, restored: true };
  },
  change: ({ name }) => {
    const words = `${name} is trusted again: the evidence against it no longer counts, and it starts as a newcomer.`;
    return changed(name, "trust-restored", words);
  },
});

const asItsPartnerAllows = "At most; empty, none or null: as its partner allows.";

export const grantBudget = post({
  ...deed("budget"),
  summary: "Grant a crawler pages and bytes per day",
  description: "Takes effect at once, never beyond what its partner allows. What is left out stays as it is.",
  input: z.object({
    ...ofOne,
    pagesPerDay: pagesPerDay
      .nullable()
      .optional()
      .meta({ title: "Maximum pages per day", description: asItsPartnerAllows }),
    bytesPerDay: bytesPerDay
      .nullable()
      .optional()
      .meta({ title: "Maximum bytes per day, such as 2.5 GB", description: asItsPartnerAllows }),
  }),
  output: record("ChangedBudget", {
    ...{ name: z.string(), before: budgetSchema, granted: budgetSchema },
    inForce: z.strictObject({ pagesPerDay: z.int(), bytesPerDay: z.number() }),
  }),
  example: { pagesPerDay: 50000 },
  command: { name: "fleet budget" },
  run: async ({ input: { name, pagesPerDay, bytesPerDay }, ports }) => {
    if (pagesPerDay === undefined && bytesPerDay === undefined)
      throw new Fault(400, "say pagesPerDay, bytesPerDay or both");
    const granted = await ports.grantBudget(name, {
      ...(pagesPerDay === undefined ? {} : { pagesPerDay }),
      ...(bytesPerDay === undefined ? {} : { bytesPerDay }),
    });
    if (granted === null) throw noCrawler(name);
    return { name, ...granted };
  },
  change: (value) => {
    const { name, before, granted: after } = value;
    return changed(name, "budget-granted", budgetWords(name, value), { before, after });
  },
});

/** The words for people and for the audit log. */
function budgetWords(name: string, { granted, inForce }: ChangedBudget): string {
  const at = ({ pagesPerDay: pages, bytesPerDay: bytes }: Budget) =>
    `${pages === null ? "as many pages as its partner allows" : `${howMany(pages, "page")} at most`} and ` +
    (bytes === null ? "as many bytes as its partner allows" : `${bytesText(bytes)} at most`);
  return (
    `${name} is granted ${at(granted)} per day; with what its partner allows that is ` +
    `${howMany(inForce.pagesPerDay, "page")} and ${bytesText(inForce.bytesPerDay)}.`
  );
}

const setTexts = () => z.array(z.string().max(4096)).max(16);

export const setDomainSets = post({
  ...deed("domain-sets"),
  summary: "Give a crawler domain sets: which domains and languages it may have",
  description: "A host must be in one of the sets; none: every host. Open leases finish, and hosts move.",
  input: z.object({
    ...ofOne,
    sets: z
      .array(z.string().max(mostSetCharacters))
      .max(mostSets)
      .meta({
        title: "Sets",
        description:
          "One a line, such as .gr, example.org not shop.example.org or lang:el; a host must be in one of them. Empty: every " +
          "domain. Open leases finish, and hosts move within a minute or so.",
      }),
  }),
  output: record("ChangedDomainSets", {
    ...{ name: z.string(), operator: setTexts(), partner: setTexts(), before: setTexts() },
  }),
  example: { sets: [".gr not shop.gr", "lang:el"] },
  faults: {
    404: noCrawlerWords,
    422: "A set cannot be read, contradicts itself, or has nothing in common with what the partner allows; the message says which",
  },
  command: {
    ...{ name: "fleet domain-sets", takes: "sets..." },
    help: `

A set: .gr, "example.org not shop.example.org", ".gr lang:el"; none: every domain again. A host must be in one of the
sets, and in one of those that the crawler's partner names, if any; it is crawled by the nearest crawler that may have it.
While no page of a host is known, every language may hold it.`,
  },
  run: async ({ input: { name, sets }, ports }) => {
    const isNone = sets.length === 1 && sets[0] === "none";
    const given = await giveDomainSets({ name, sets: isNone ? [] : sets }, ports.domainSets);
    if (given.type === "no-crawler") throw noCrawler(name);
    if (given.type === "refused") throw new Fault(422, `${given.reason}.`, "Not given");
    const { operator, partner, before } = given.changed;
    return { name, operator, partner, before };
  },
  change: (value) => {
    const { name, before, operator: after } = value;
    return changed(name, "domain-sets-given", givenWords(value), { before, after });
  },
});

export const moveCrawler = post({
  ...deed("move"),
  summary: "Move a crawler to another host, with its name, subnets, hosts' paces and waiting results",
  description:
    "The coordinator leads it; GET /api/fleet/moves (nearcrawl fleet moves) tells how far it is. If anything fails before the " +
    "move is made, both continue as before.",
  input: z.object({
    ...ofOne,
    to: crawlerName.meta({
      title: "Crawler on the new host",
      description:
        "It has joined as a crawler of its own before, and ceases to exist; both must be connected.",
    }),
  }),
  output: z.strictObject({ moveId: z.int(), name: z.string(), to: z.string() }),
  answer: { status: 202 },
  example: { to: "athens-new" },
  faults: { 404: noCrawlerWords, 409: "It cannot be moved now; the words say why" },
  goTo: () => "/fleet/moves",
  command: { name: "fleet move", help: "\n\nLimits, daily counts and settings.toml stay with each host." },
  run: async ({ input: { name, to }, ports, now }) => {
    const moveId = await ports.moves.ask({ name, otherName: to }, now);
    if (typeof moveId === "string") throw moveRefused(moveId, name, to);
    return { moveId, to, name };
  },
  change: ({ name, ...after }) => {
    const words = `${name} moves to the host of ${after.to}; the crawler that runs there ceases to exist.`;
    return changed(name, "move-asked", words, { after });
  },
});

function moveRefused(refusal: MoveRefusal, name: string, to: string): Fault {
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
  return new Fault(409, `${name} was not moved: ${why[refusal]}.`, "Not moved");
}

export const crawlerDeedOperations = {
  ...{ revokeCrawler, killCrawler, rotateKey, renewSigningKey, drainCrawler, resumeCrawler, believeCrawler },
  ...{ grantBudget, giveDomainSets: setDomainSets, moveCrawler },
};
