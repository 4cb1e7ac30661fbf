/** /changes: what changed on the pages that are crawled: the latest with filters, or since a cursor. */
import { z } from "zod";
import { UsageError } from "#core/errors";
import { column, filters, lead, onward, picture, snakeCase, table } from "../../ask/document.ts";
import { type Document, Fault, operationsOf, type Seen } from "../../ask/operation.ts";
import { askAbout } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import { answersText } from "../batch/stated-uses.ts";
import type { ChangeFeed } from "./change-feed-reads.ts";
import { changeKinds, changes } from "./changes-api.ts";
import { foldedDifference } from "./difference-page.ts";
import { type ChangeKind, changeWords, kindWords, type PageChange, toldChange } from "./page-change.ts";
import { cursorWords, goOnFrom, readChangeQuery, readChanges, readSince } from "./read-changes.ts";
import { differenceText } from "./text-difference.ts";

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
  /** In number order. */
  readonly changes: readonly ReturnType<typeof toldChange>[];
  readonly next: number;
  readonly more: boolean;
}

function changesDocument(
  { changes: found, next, more }: ChangesTold,
  { input: asked }: Seen<z.infer<typeof input>>,
): Document {
  const isFeed = asked.since !== undefined;
  // Only a filter by kind, prefix or domain set may match something before the scanned part.
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
      // Nothing follows the latest changes.
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

/** Every detail of each change, in number order. */
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
