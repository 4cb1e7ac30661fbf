/**
 * The pages /channels and /coverage: the rules for parts of hosts and the progress of crawling them. Operators add
 * and remove channels.
 */
import { z } from "zod";
import type { Change } from "#core/audit";
import { UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { hostNamed } from "#core/url-key";
import { column, filters, form, lead, note, recordColumns, snakeCase, table } from "../../ask/document.ts";
import { Fault, operationsOf } from "../../ask/operation.ts";
import { dateTime, openRecord } from "../../web/api-operation.ts";
import { small } from "../../web/components.ts";
import { askAbout, countText } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import { channelBounds, readChannel } from "../frontier/channel.ts";
import type { Channel } from "../frontier/channel-reads.ts";
import type { ChannelStore } from "./channel-store.ts";
import { type Coverage, coverage } from "./coverage.ts";
import type { CoverageList, CoverageQuery } from "./coverage-reads.ts";

export interface ChannelPorts {
  readonly store: ChannelStore;
  /** Returns null if there is no such channel, submission or host. `maxDepth` comes from the scope in force. */
  readonly coverage: (query: Omit<CoverageQuery, "maxDepth">) => Promise<CoverageList | null>;
}

const { get, post } = operationsOf<ChannelPorts>();

const texts = (each: number, most: number) => z.array(z.string().max(each)).max(most);

const channel = openRecord("Channel", {
  channelId: z.int(),
  host: z.string(),
  directories: texts(2048, 50).describe("Each begins and ends with /; / is the whole host."),
  seeds: texts(2048, 200).describe("Crawled regardless of include."),
  include: texts(300, 50).describe(
    "Patterns of path and query: * is anything, a final $ the end. Empty: everything.",
  ),
  exclude: texts(300, 50).describe("Skipped, included or not."),
  maxDepth: z.int().nullable().describe("Links from a seed; null: as the scope says."),
  createdAt: dateTime(),
  expectedPages: z.int().nullable().describe("Its pages in the index; null: not counted yet."),
  settled: z.boolean().describe("False: URLs that were already in the frontier are still being updated."),
});

interface ToldChannel extends Omit<Channel, "include" | "exclude"> {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

function told(one: Channel): ToldChannel {
  const textsOf = (patterns: Channel["include"]) => patterns.map(({ text }) => text);
  return { ...one, include: textsOf(one.include), exclude: textsOf(one.exclude) };
}

/** For example `a.example/docs/, /news/`. */
const placeWords = ({ host, directories }: Pick<Channel, "host" | "directories">) =>
  `${host}${directories.join(", ")}`;

/** For example `2 seeds, 3 links deep, with /*.html$, without /old/`. */
function ruleWords({ seeds, maxDepth, include, exclude }: ToldChannel): string {
  const parts = [
    seeds.length > 0 && howMany(seeds.length, "seed"),
    maxDepth !== null && `${howMany(maxDepth, "link")} deep`,
    include.length > 0 && `with ${include.join(" ")}`,
    exclude.length > 0 && `without ${exclude.join(" ")}`,
  ];
  return parts.filter(Boolean).join(", ") || "everything";
}

const rulesOf = ({ directories, seeds, include, exclude, maxDepth }: ToldChannel) => ({
  ...{ directories, seeds, include, exclude, maxDepth },
});

const removeChannel = post({
  ...{ path: "/api/channels/{number}/remove", needs: "policy-write" },
  summary: "Crawl it as the scope says",
  description: "What the channel had skipped is due again.",
  input: z.object({ number: z.int().meta({ description: "As listed.", example: 3 }) }),
  output: channel,
  example: {},
  faults: { 404: "There is no channel with this number" },
  command: { name: "channels remove" },
  run: async ({ input: { number }, ports, now }) => {
    const removed = await ports.store.remove(number, now);
    if (removed === null) throw new Fault(404, `There is no channel ${number}.`);
    return told(removed);
  },
  change: (removed: ToldChannel): Change => ({
    ...{ action: "channel-removed", target: placeWords(removed), before: rulesOf(removed) },
    words: `${placeWords(removed)} is crawled as the scope says (channel ${removed.channelId} was removed).`,
  }),
});

const url = z.string().min(1).max(2100).meta({ format: "uri-reference" });
const patterns = z.array(z.string().min(1).max(400)).max(channelBounds.patterns).default([]);

const addChannel = post({
  ...{ path: "/api/channels", needs: "policy-write" },
  label: "Add channel",
  summary: "Crawl of a host or some of its directories what seeds, filters and depth say",
  description: "URLs found before that the channel skips are not requested again until it is removed.",
  input: z.object({
    prefixes: z.array(url).min(1).max(channelBounds.directories).meta({
      title: "Host or directories of one host",
      description: "A host, or directories of one host, each ending with /.",
      example: "https://www.example.org/docs/",
    }),
    seeds: z.array(url).max(channelBounds.seeds).default([]).meta({
      title: "Seeds",
      description: "Where the crawl of the channel begins. They are crawled whatever the paths below say.",
      example: "https://www.example.org/docs/index.html",
    }),
    include: patterns.meta({
      title: "Crawl only paths that match",
      description: "Patterns of path and query: * is anything, a final $ the end. Empty: everything.",
      example: "/docs/*.html$",
    }),
    exclude: patterns.meta({
      title: "Skip paths that match",
      description: "Skipped even where a path above includes them.",
      example: "/docs/old/",
    }),
    maxDepth: z
      .int()
      .min(0)
      .max(channelBounds.depth)
      .nullable()
      .default(null)
      .meta({ title: "Links from a seed", description: "Empty: as the scope says." }),
  }),
  output: channel,
  example: {
    prefixes: ["https://www.example.org/docs/"],
    seeds: ["https://www.example.org/docs/"],
    include: ["/docs/*.html$"],
    exclude: ["/docs/old/"],
    maxDepth: 5,
  },
  answer: { status: 201 },
  faults: {
    422: "The settings contradict each other, or another channel of the host; each fault is named",
  },
  command: { name: "channels add", takes: "prefixes...", named: { seeds: "seed" } },
  run: async ({ input, ports, now }) => {
    const made = await ports.store.add(readChannel(input), now);
    if (!("channelId" in made)) throw new UsageError(made.join("\n"));
    return told(made);
  },
  change: (made: ToldChannel): Change => ({
    ...{ action: "channel-added", target: placeWords(made), after: rulesOf(made) },
    words: `Of ${placeWords(made)} is crawled: ${ruleWords(made)} (channel ${made.channelId}).`,
  }),
});

const channels = get({
  ...{ path: "/api/channels", needs: "read" },
  navigation: { group: "Sites", order: 40, entry: "Channels", tab: "Channels" },
  alsoFound: "feed news",
  summary: "Channels: what is crawled of parts of hosts",
  description:
    "Needs the scope read where the pages are not open to everybody. A host without a channel is crawled as the scope says. Also as CSV: format=csv.",
  input: z.object({}),
  output: z.object({ channels: z.array(channel) }).meta({ id: "Channels" }),
  command: {
    name: "channels list",
    group: {
      says: "what is crawled of a host, one of its directories or a set of them: list, add, remove",
      help: `

Filters are patterns of path and query: * is anything, a final $ the end; /docs/ is everything that starts with it.

Examples:
  nearcrawl channels add https://www.example.org/docs/ --seed https://www.example.org/docs/ --exclude '/docs/old/' --max-depth 5
  nearcrawl channels remove 3`,
    },
  },
  run: async ({ ports }) => ({ channels: (await ports.store.list()).map(told) }),
  view: ({ channels: rows }) => ({
    title: "Channels",
    nodes: [
      lead(html`A channel is a host, a directory of it or a set of directories, with its own seeds, filters and depth.
What is in no channel is crawled as the <a href="/policies">scope</a> says.`),
      table<ToldChannel>({
        ...{ label: "Channels", rows },
        empty: ["No channels.", "Every host is crawled within the general scope."],
        columns: [
          column("", "What", ({ host, directories }) => html`${askAbout(host)}${directories.join(", ")}`, {
            ...{
              kind: "break",
              more: ({ host }) =>
                html` <a class="small" href="${pathWith("/changes", { host })}">changes</a>`,
            },
          }),
          column("channel", "No.", ({ channelId }) => channelId, { kind: "number" }),
          column("host", null, ({ host }) => host),
          column("place", null, placeWords),
          ...(["directories", "seeds", "include", "exclude"] as const).map((name) =>
            column<ToldChannel>(name, null, (one) => one[name].join(" ")),
          ),
          column("", "What is crawled", ruleWords, {
            ...{ kind: "wide break", more: ({ settled }) => (settled ? null : " being applied") },
          }),
          column("max_depth", null, ({ maxDepth }) => maxDepth),
          column("expected_pages", "Pages expected", ({ expectedPages }) => expectedPages, { unit: "count" }),
          column("created_at", "Since", ({ createdAt }) => createdAt),
        ],
        actions: ({ channelId }) => [
          { operation: removeChannel, path: { number: channelId }, label: `Remove no. ${channelId}` },
        ],
      }),
      form({ operation: addChannel, title: "Add a channel" }),
    ],
  }),
});

const number = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);

const coverageOf = get({
  ...{ path: "/api/coverage", needs: "read" },
  navigation: { group: "Sites", order: 41, entry: "Channels", tab: "Channel coverage" },
  summary: "How far the crawl of channels and seeds has come, and what limited it",
  description:
    "For every channel, or for what one parameter names. As CSV, one line per seed: format=csv, up to 1,000 channels or hosts.",
  input: z.object({
    channel: number.optional().meta({ description: "Its number.", example: 3 }),
    submission: number.optional().meta({
      description: "The channels and hosts of the URLs submitted with it.",
      example: 7,
    }),
    host: z.string().max(2100).optional().meta({
      title: "Host",
      description: "The whole host.",
      example: "www.example.org",
    }),
    format: z.enum(["csv"]).optional().meta({ description: "csv: as a table.", example: "csv" }),
  }),
  output: z
    .strictObject({ coverage: z.array(coverage), more: z.boolean().describe("There are more.") })
    .meta({ id: "CoverageList" }),
  faults: {
    400: "The parameter is not as described",
    404: "There is no such channel, submission or host",
  },
  command: {
    ...{
      name: "coverage",
      says: "how far channels and seeds have come: complete, in progress, cut by budget or by depth",
    },
    help: "\n\nExamples:\n  nearcrawl coverage --submission 7 --csv > seeds.csv\n  nearcrawl coverage --host www.example.org",
  },
  run: async ({ input, ports, isCsv }) => {
    const { channel: of = null, submission = null } = input;
    const host = input.host === undefined ? null : hostNamed(input.host);
    if (host === null && input.host !== undefined)
      throw new UsageError("host: must be a host's name, such as www.example.org");
    if ([of, submission, host].filter((one) => one !== null).length > 1)
      throw new UsageError("channel, submission, host: name one of them");
    return await ports.coverage({ channel: of, submission, host, most: isCsv ? 1000 : 100 });
  },
  view: ({ coverage: rows, more }) => ({
    title: "Channel coverage",
    nodes: [
      lead("How much of each channel was found and fetched, and what limited the rest."),
      note(html`For URLs submitted together, see their <a href="/submit">receipt</a>. For one host:`),
      filters({ names: ["host"], label: "Coverage of a host" }),
      table<Coverage>({
        ...{ label: "Channel coverage", rows },
        empty: ["No channels.", html`<a href="/channels">Add a channel</a>, or give a host.`],
        columns: [
          column("", "What", placeOf, { kind: "break" }),
          column("", "State", ({ words }) => words, { kind: "wide" }),
          ...numbers.map(([title, name]) =>
            column<Coverage>("", title, (one) => `${countText(one[name])}${one.more ? "+" : ""}`, {
              kind: "number",
            }),
          ),
          column("", "Seeds", seedCounts),
        ],
      }),
      ...(more ? [note("The first are shown; the CSV has up to 1,000.")] : []),
    ],
    csv: { columns: seedColumns, rows: rows.flatMap(seedLines) },
  }),
});

const numbers = [
  ["Fetched", "fetched"],
  ["To go", "waiting"],
  ["Held back", "held"],
  ["Too deep", "tooDeep"],
  ["By robots.txt", "refusedByRobots"],
] as const;

function placeOf({ host, channelId, directories }: Coverage) {
  if (channelId === null) return askAbout(host);
  const path = pathWith("/coverage", { channel: String(channelId) });
  return html`${askAbout(host)}${directories.join(", ")} ${small(html`<a href="${path}">channel ${channelId}</a>`)}`;
}

function seedCounts({ seeds }: Coverage): string {
  const failed = seeds.filter(
    ({ lastOutcome, fetches }) => fetches > 0 && lastOutcome !== "fetched" && lastOutcome !== "unchanged",
  );
  return `${countText(seeds.length)}${failed.length === 0 ? "" : `, ${countText(failed.length)} not fetched`}`;
}

/** Writes a line per seed, so that a second stage can begin with the seeds that were cut, or one line if there is no seed. */
const seedLines = (of: Coverage) =>
  (of.seeds.length === 0 ? [null] : of.seeds).map((seed) => ({
    ...{ ...of, channel: of.channelId, place: placeWords(of), seed: seed?.url, more: String(of.more) },
    ...{ seedOutcome: seed?.lastOutcome, seedStatus: seed?.lastStatus, cutBy: of.cutBy.join(" ") },
  }));

const seedColumns = recordColumns<ReturnType<typeof seedLines>[number]>(
  [
    ...(["channel", "host", "place", "seed", "seedOutcome", "seedStatus", "state", "cutBy"] as const),
    ...(["fetched", "waiting", "gone", "refusedByRobots", "held", "leftOut", "tooDeep"] as const),
    ...(["deepest", "maxDepth", "more"] as const),
  ],
  snakeCase,
);

export const channelOperations = { coverage: coverageOf, channels, addChannel, removeChannel };
