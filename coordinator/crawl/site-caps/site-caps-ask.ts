/** The /fleet/site-caps page: how slowly operators have a site crawled. Whoever may change policies sets and removes caps. */
import { z } from "zod";
import { howMany } from "#core/format";
import { column, form, lead, table } from "../../ask/document.ts";
import { Fault, operationsOf } from "../../ask/operation.ts";
import { dateTime, openRecord } from "../../web/api-operation.ts";
import { askAbout } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import {
  type ListedCap,
  leastDelaySeconds,
  mostDelaySeconds,
  mostWords,
  readSite,
  type SiteCap,
} from "./site-cap.ts";
import type { SiteCapStore } from "./site-cap-store.ts";

const siteCap = openRecord("SiteCap", {
  site: z.string().describe("It and all names below it."),
  delayMs: z.int().describe("Least time between two requests to one host of the site."),
  words: z.string().describe("Why, as whoever set it says."),
  setBy: z.string(),
  setAt: dateTime(),
  hosts: z.int().describe("Known hosts that belong to the site."),
});

const example = {
  site: "example.org",
  delayMs: 10_000,
  words: "asked for by its webmaster",
  setBy: "anna",
  setAt: "2026-03-01T12:00:00.000Z",
  hosts: 3,
};

const { get, post } = operationsOf<SiteCapStore>();

const removeSiteCap = post({
  ...{ path: "/api/fleet/site-caps/{site}/remove", needs: "policy-write" },
  summary: "Let a site be crawled at its usual pace again",
  description:
    "A crawler that was told the cap keeps to it until it reads the site's robots.txt again, within a day.",
  input: z.object({ site: z.string().meta({ description: "As listed.", example: "example.org" }) }),
  output: siteCap.omit({ hosts: true }).meta({ id: "RemovedSiteCap" }),
  faults: { 404: "There is no such cap" },
  command: { name: "site-caps remove" },
  run: async ({ input: { site }, ports }) => {
    const removed = await ports.remove(site);
    if (removed === null) throw new Fault(404, `${site.slice(0, 100)} has no cap.`);
    return removed;
  },
  change: ({ site, delayMs, words }: SiteCap) => ({
    ...{ action: "site-cap-removed", target: site, before: { delayMs, words } },
    words: `${site} is crawled at its usual pace again.`,
  }),
});

const setSiteCap = post({
  ...{ path: "/api/fleet/site-caps", needs: "policy-write" },
  label: "Add cap",
  summary: "Keep a site's requests so far apart",
  description: "It holds from the next lease of each host on; a site that has a cap gets the new one.",
  input: z.object({
    site: z.string().min(1).max(2100).meta({
      title: "Site and all its subdomains",
      description: "A host's name, or a URL of it.",
      example: "example.org",
    }),
    seconds: z
      .number()
      .min(leastDelaySeconds)
      .max(mostDelaySeconds)
      .meta({
        title: "Seconds between requests to one host",
        description: `Up to ${mostDelaySeconds}.`,
        example: 10,
      }),
    words: z
      .string()
      .max(mostWords)
      .default("")
      .meta({ title: "Reason", description: "Why, for the record.", example: "asked for by its webmaster" }),
  }),
  output: siteCap,
  example: { site: "example.org", seconds: 10, words: "asked for by its webmaster" },
  answer: { status: 201, example },
  faults: { 422: "That is no site, or there are too many caps" },
  command: {
    ...{ name: "site-caps set", takes: "site" },
    help: "\n\nExample:\n  nearcrawl site-caps set example.org --seconds 10 --words 'asked for by its webmaster'",
  },
  run: async ({ input: { site, seconds, words }, ports, actor, now }) =>
    await ports.set({
      ...{ site: readSite(site), delayMs: Math.round(seconds * 1000), words: words.trim() },
      ...{ setBy: actor.name, setAt: now },
    }),
  change: ({ site, delayMs, words, hosts }: ListedCap) => ({
    ...{ action: "site-cap-set", target: site, after: { delayMs, words } },
    words: `${site} gets at most one request every ${delayMs / 1000} s to each of its hosts (${howMany(hosts, "host")} known): ${words || "no reason given"}.`,
  }),
});

const siteCaps = get({
  ...{ path: "/api/fleet/site-caps", needs: "read" },
  navigation: { group: "Sites", order: 50, entry: "Caps" },
  alsoFound: "limit pace crawl-delay slow",
  summary: "Sites that operators have slowed down",
  description: "What robots.txt, answers and the usual rest ask for holds beside a cap: the slowest does.",
  input: z.object({}),
  output: z.object({ caps: z.array(siteCap) }).meta({ id: "SiteCaps" }),
  command: {
    name: "site-caps list",
    group: {
      says: "sites that are crawled more slowly than they would be: list, set, remove",
      help: `

A cap is the least time between two requests to each host of a site. Robots.txt, the site's answers and the usual
pace hold beside it: the slowest does. It holds from the next lease of each host on; after its removal a crawler
that was told it keeps to it until it reads the site's robots.txt again, within a day.

Example:
  nearcrawl site-caps set example.org --seconds 10 --words 'asked for by its webmaster'`,
    },
  },
  run: async ({ ports }) => ({ caps: await ports.list() }),
  view: ({ caps }) => ({
    title: "Caps on sites",
    nodes: [
      lead(html`A cap is the shortest time between two requests to a host of a site. robots.txt, the site's answers and the
<a href="/policies?show=all#pace">usual pace</a> apply as well; the slowest wins.`),
      table<ListedCap>({
        label: "Caps on sites",
        columns: [
          column("site", "Site", ({ site }) => askAbout(site), { kind: "break" }),
          column("delay_ms", "Seconds between requests", ({ delayMs }) => delayMs / 1000, {
            ...{ kind: "number", value: ({ delayMs }) => delayMs },
          }),
          column("hosts", "Known hosts", ({ hosts }) => hosts, { unit: "count" }),
          column("words", "Reason", ({ words }) => words, { kind: "wide break" }),
          column("set_by", "Set by", ({ setBy }) => setBy),
          column("set_at", "Since", ({ setAt }) => setAt),
        ],
        rows: caps,
        empty: ["No caps.", html`Hosts in progress, and how fast: <a href="/fleet/in-hand">In progress</a>.`],
        actions: ({ site }) => [{ operation: removeSiteCap, path: { site }, label: "Remove" }],
      }),
      form({ operation: setSiteCap, title: "Add a cap" }),
    ],
  }),
});

export const siteCapOperations = { siteCaps, setSiteCap, removeSiteCap };
