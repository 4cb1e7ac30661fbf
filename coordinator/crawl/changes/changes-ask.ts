/** The /changes page: what changed on crawled pages, either the latest changes with filters, or all since a cursor. */
import { z } from "zod";
import { UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { urlKeyOf } from "#core/url-key";
import { column, filters, lead, onward, picture, snakeCase, table } from "../../ask/document.ts";
import { type Document, Fault, operationsOf, type Seen } from "../../ask/operation.ts";
import { domainSetHolds, parseDomainSet } from "../../place/domain-sets/domain-set.ts";
import { askAbout } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import { answersText } from "../batch/stated-uses.ts";
import type { ChangeFeed, ChangeQuery, ChangesRead, CursorFault } from "./change-feed-reads.ts";
import { changeKinds, changes } from "./changes-api.ts";
import { type ChangeKind, changeWords, kindWords, type PageChange, toldChange } from "./page-change.ts";
import { differenceText, partWords, type TextDifference, type TextPlace } from "./text-difference.ts";

const input = z.object({
  since: z.string().max(4000).optional().meta({
    description: "A cursor (next of an answer, number of a change), earliest, or now.",
    example: "earliest",
  }),
  host: z
    .string()
    .max(253)
    .optional()
    .meta({
      ...{ title: "Host", description: "Only this host.", example: "www.example.org" },
    }),
  prefix: z.string().max(2048).optional().meta({
    title: "URLs that begin with",
    description: "Only URLs with this prefix, including scheme and host.",
    example: "https://www.example.org/docs/",
  }),
  dset: z.string().max(4096).optional().meta({
    title: "Domain set",
    description:
      "Only hosts and languages of a domain set: top-level domains, domains, lang:CODE, each with not before it for all but that.",
    example: ".org lang:en",
  }),
  kind: z
    .string()
    .max(200)
    .optional()
    .meta({
      title: "Change",
      description: `Kinds, separated by commas: ${changeKinds.join(", ")}.`,
      example: "changed",
    }),
  limit: z
    .int()
    .min(1)
    .max(1000)
    .default(100)
    .meta({ description: "Maximum number of changes.", example: 100 }),
});

export const changeOperations = {
  changes: operationsOf<ChangeFeed>().get({
    ...{ path: "/api/changes", needs: "read" },
    navigation: { group: "Sites", order: 30, entry: "Changes" },
    alsoFound: "feed new gone",
    summary: "What visits found new, changed or gone, since a cursor",
    description:
      "Needs the scope read where the pages are not open to everybody. Without since: the latest changes; with since: " +
      "those after it, oldest first. Continue with next, at once while more is true. This reads every change exactly " +
      "once, whatever is written meanwhile. Also as CSV: format=csv.",
    input,
    output: changes,
    faults: {
      400: "An invalid cursor, host, prefix, domain set, kind or limit",
      410: "The cursor is older than what is kept: some changes were missed",
    },
    command: {
      ...{ name: "changes", says: "list the pages that were new, changed or gone when they were fetched" },
      help: `

Again with --since and the cursor of the answer: what came meanwhile. The web page: /changes.

Examples:
  nearcrawl changes --host www.example.org
  nearcrawl changes --since 4711 --kind changed,gone --json`,
    },
    run: async ({ input: asked, ports }): Promise<ChangesTold> => {
      const since = readSince(asked.since);
      const found = await readChanges(ports, since, readChangeQuery(asked));
      if (found.type === "read")
        return { changes: found.changes.map(toldChange), next: found.next, more: found.more };
      const words = cursorWords(Number(since), found);
      if (found.type === "unknown") throw new UsageError(words);
      const more = { earliest: goOnFrom(found) };
      throw new Fault(410, words, "That cursor is no longer valid", { more });
    },
    view: changesDocument,
  }),
};

interface ChangesTold {
  /** The changes found, in number order. */
  readonly changes: readonly ReturnType<typeof toldChange>[];
  readonly next: number;
  readonly more: boolean;
}

function changesDocument(
  { changes: found, next, more }: ChangesTold,
  { input: asked }: Seen<z.infer<typeof input>>,
): Document {
  const isFeed = asked.since !== undefined;
  // Only with a filter by kind, prefix or domain set may earlier changes match when none was found here.
  const isNothing = found.length === 0 && !asked.kind && !asked.prefix && !asked.dset;
  const none =
    isFeed && more
      ? (["No match in this part of the feed.", "Continue: later parts may have some."] as const)
      : (["No changes match.", "New ones appear here as pages are fetched."] as const);
  const programs = html`<p class="small">Programs continue from a cursor:
<a href="${pathWith("/api/changes", { ...asked, since: next })}">JSON since ${next}</a>.
On the coordinator's machine: <code>nearcrawl changes</code>.</p>`;
  return {
    title: "Changes",
    csv: changesCsv(found),
    nodes: [
      lead("Pages that were new, changed or gone when they were last fetched, latest first."),
      filters({
        ...{ label: "Changes", names: ["kind", "host", "prefix", "dset"], choices: { kind: kindWords } },
      }),
      table({
        ...{ label: "Changes", kind: "feed", rows: [...found].reverse(), columns: shownColumns, empty: none },
      }),
      // There is nothing after the latest changes.
      isFeed
        ? onward({ name: "since", next: more ? next : null, words: "Later", first: "Latest" })
        : onward({ name: "since", next: isNothing ? null : "earliest", words: "Earliest change kept" }),
      picture(programs, `The next cursor is ${next}.`),
    ],
  };
}

const shownColumns = [
  column<PageChange>("", "When", ({ seenAt }) => seenAt, { kind: "nowrap" }),
  column<PageChange>("", "Change", ({ kind }) => kindBadge(kind), { kind: "nowrap" }),
  column<PageChange>("", "Page", ({ url }) => askAbout(url), { kind: "break" }),
  column<PageChange>(
    "",
    "Details",
    (change) => html`<bdi>${changeWords(change)}</bdi> ${foldedDifference(change.difference)}`,
    { kind: "wide" },
  ),
];

export const kindBadge = (kind: ChangeKind) =>
  html`<span class="kind kind-${kind}">${kindWords[kind]}</span>`;

const csvNames =
  `number kind url host seenAt notedAt status reason language digestBefore digestAfter simhashDistance titleBefore
titleAfter wordsBefore wordsAfter linksBefore linksAfter linksAdded linksRemoved location stated statedBefore difference`.split(
    /\s/,
  ) as (keyof PageChange)[];

/** A row per change, in number order, with all details. */
export const changesCsv = (rows: readonly PageChange[]) => ({
  rows,
  columns: csvNames.map((name) =>
    column<PageChange>(snakeCase(name), null, (change) => csvValue(change[name])),
  ),
});

function csvValue(value: PageChange[keyof PageChange]) {
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  return "places" in value ? differenceText(value) : answersText(value.answers);
}

// Displays what changed in a page's text: for each place, the words removed, the words added, and those around them.

/** The difference in collapsed form, for table rows. */
function foldedDifference(difference: TextDifference | null): Html {
  if (difference === null) return nothing;
  const count = difference.places.length + difference.more;
  return html`<details class="difference"><summary>${howMany(count, "place")} in the text</summary>${differenceList(difference)}</details>`;
}

export function differenceList({ places, more }: TextDifference): Html {
  return html`<ul class="difference-places">${places.map((place, at) => placeItem(place, places[at - 1]))}</ul>${
    more === 0 ? nothing : html`<p class="small">And ${howMany(more, "more place")}.</p>`
  }`;
}

/** Names the part of the page only at its first place. */
function placeItem({ part, before, removed, added, after }: TextPlace, last: TextPlace | undefined): Html {
  return html`<li>${part === last?.part ? nothing : html`<span class="small">${partWords[part]}</span>`}<bdi>${before}</bdi>${
    removed === "" ? nothing : html` <del><bdi>${removed}</bdi></del>`
  }${added === "" ? nothing : html` <ins><bdi>${added}</bdi></ins>`} <bdi>${after}</bdi></li>`;
}

// Parses a request for the change feed, by page or command, and reads the answer.

/** The parameters as typed. An omitted one does not filter. */
interface ChangesAsked {
  readonly host?: string | undefined;
  /** A domain set, such as `.gr` or `example.org lang:el`. */
  readonly dset?: string | undefined;
  /** Prefix of URLs, with scheme and host. */
  readonly prefix?: string | undefined;
  /** Kinds, separated by commas. */
  readonly kind?: string | undefined;
  readonly limit: number;
}

type Since = number | "latest" | "earliest" | "now";

/** Throws a UsageError that names the invalid parameter. */
export function readChangeQuery({
  host: ofHost = "",
  dset = "",
  kind = "",
  limit,
  ...asked
}: ChangesAsked): ChangeQuery {
  const prefix = prefixOf(asked.prefix ?? "");
  const host = hostOf(ofHost);
  if (prefix !== null && host !== null && prefix.host !== host)
    throw new UsageError(
      `prefix: "${short(asked.prefix ?? "")}" is not of the host ${host}; nothing matches both`,
    );
  return {
    filter: {
      kinds: kindsOf(kind),
      host: host ?? prefix?.host ?? null,
      prefix: prefix?.url ?? null,
      domains: domainsOf(dset),
    },
    limit,
  };
}

/** An empty text selects the latest changes. Throws a UsageError when the text is invalid. */
export function readSince(text = ""): Since {
  const since = text.trim();
  if (since === "") return "latest";
  if (since === "earliest" || since === "now") return since;
  if (!/^\d{1,16}$/.test(since) || !Number.isSafeInteger(Number(since)))
    throw new UsageError(
      `since: "${short(text)}" is not a cursor; it must be a whole number from the feed, earliest, or now`,
    );
  return Number(since);
}

async function readChanges(feed: ChangeFeed, since: Since, query: ChangeQuery): Promise<ChangesRead> {
  if (since === "latest") return await feed.latest(query);
  return await feed.after(await startOf(since, feed), query);
}

/** Returns the cursor to start from. */
async function startOf(since: Since, feed: ChangeFeed): Promise<number> {
  if (typeof since === "number") return since;
  const { last, removedThrough } = await feed.state();
  return since === "earliest" ? removedThrough : last;
}

/** Returns the cursor to continue from when the given one cannot be read from. */
export function goOnFrom(fault: CursorFault): number {
  switch (fault.type) {
    case "too-old":
      return fault.removedThrough;
    case "lost":
      return fault.goOnFrom;
    case "unknown":
      return fault.last;
  }
}

/** Explains why a cursor cannot be read from. */
function cursorWords(since: number, fault: CursorFault): string {
  switch (fault.type) {
    case "too-old":
      return (
        `The cursor ${since} is too old: changes through number ${fault.removedThrough} are no longer kept ` +
        "(policy changes.keepDays), so some were missed. Check what you follow again, and continue with " +
        "since=earliest, or with since=now for new changes only."
      );
    case "lost":
      return (
        `The cursor ${since} is of lost changes: on ${fault.wentBackAt.toISOString()} the database went back to an ` +
        `earlier state, which does not have what you read after number ${fault.goOnFrom}. Those pages are fetched ` +
        `again; check what you follow again, and continue with since=${fault.goOnFrom}.`
      );
    case "unknown":
      return (
        `since: there is no change with number ${since} yet; the latest is ${fault.last}. ` +
        "Use cursors that this feed returned."
      );
  }
}

function kindsOf(text: string): ChangeKind[] {
  const names = text.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
  const unknown = names.find((name) => !isKind(name));
  if (unknown !== undefined)
    throw new UsageError(`kind: "${short(unknown)}" is none of ${changeKinds.join(", ")}`);
  return [...new Set(names.filter(isKind))];
}

const isKind = (name: string): name is ChangeKind => (changeKinds as readonly string[]).includes(name);

function hostOf(text: string): string | null {
  if (text === "") return null;
  const key = urlKeyOf(`http://${text.includes(":") && !text.startsWith("[") ? `[${text}]` : text}/`);
  if (typeof key === "string" || /[/?#@\s]/.test(text))
    throw new UsageError(`host: "${short(text)}" is not a host name, such as www.example.org`);
  return key.host;
}

function prefixOf(text: string): { readonly url: string; readonly host: string } | null {
  if (text === "") return null;
  const key = urlKeyOf(text);
  if (typeof key === "string")
    throw new UsageError(
      `prefix: "${short(text)}" is not a URL prefix, such as https://www.example.org/docs/`,
    );
  return key;
}

function domainsOf(text: string): ChangeQuery["filter"]["domains"] {
  if (text === "") return null;
  const set = parseDomainSet(text);
  if (typeof set === "string") throw new UsageError(`dset: ${set}`);
  return (page) => domainSetHolds(set, page);
}

const short = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
