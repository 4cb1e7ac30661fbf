/** A crawler's past, for operators and its partner: keys, releases, trust, incidents, moves, absences, and the whole log. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import { bytesText, howMany, spanWords } from "#core/format";
import {
  column,
  empty,
  facts,
  folded,
  lead,
  note,
  pager,
  present,
  section,
  table,
  warning,
} from "../../ask/document.ts";
import { type Fact, type Node, operationsOf } from "../../ask/operation.ts";
import type { Absence, MoveStep } from "../../place/crawlers/crawler.ts";
import type { MoveLine } from "../../place/crawlers/move-store.ts";
import { record } from "../../web/api-operation.ts";
import { crawlerFor, crawlerPath, small } from "../../web/components.ts";
import { ago, instant } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import type { PageViewer } from "../../web/page-frame.ts";
import { absence, type CrawlerLogPage, type Inside, logPage, type Operation } from "./crawler-api.ts";
import { crawlerNamed, noCrawler, noCrawlerWords } from "./crawler-deeds-ask.ts";
import { crawlerView } from "./crawler-view.ts";
import { incidentTable } from "./failures-ask.ts";
import { move } from "./fleet-api.ts";
import type { FleetPorts } from "./fleet-store.ts";
import { trustSection } from "./trust-ask.ts";

const { get } = operationsOf<FleetPorts>();

/** The page of the log; each has fifty lines. */
export const pageOfLog = z.int().min(1).max(200).optional().describe("Of the log, 50 lines each, from 1.");

const crawlerLog = get({
  ...{ path: "/api/fleet/crawlers/{name}/log", page: "/crawlers/:name/log", needs: "fleet-read" },
  crawlerIn: "name",
  summary: "Everything recorded about one crawler, the latest first, with its absences",
  input: z.object({ name: crawlerNamed, page: pageOfLog }),
  output: logPage.extend({ name: z.string(), absences: z.array(absence) }).meta({ id: "CrawlerLog" }),
  faults: { 404: noCrawlerWords },
  command: { name: "fleet log" },
  run: async ({ input: { name, page = 1 }, ports, actor, now }) => {
    const view = await crawlerView({ name, logPage: page, actor, now }, ports);
    if (view === null || view.inside === null) throw noCrawler(name);
    return { name, ...view.inside.log, absences: view.operation.absences };
  },
  view: ({ name, absences, ...log }, { now }) => ({
    title: `Log of ${name}`,
    above: [[name, crawlerPath(name)]],
    nodes: present([
      logTable(log, now, html`<a href="${crawlerPath(name)}">Back to ${name}</a>`),
      pager(log.page, log.more),
      absenceSection(absences),
    ]),
  }),
});

const moves = get({
  ...{ path: "/api/fleet/moves", needs: "fleet-read" },
  navigation: { group: "Fleet", order: 41, entry: "Versions", tab: "Moves" },
  summary: "Moves of crawlers to other hosts, the latest first",
  input: z.object({
    crawler: z.string().max(63).optional().describe("That this crawler took part in."),
  }),
  output: record("Moves", { moves: z.array(move) }),
  command: { name: "fleet moves" },
  run: async ({ input: { crawler = null }, ports }) => ({ moves: await ports.reads.moves(crawler) }),
  view: ({ moves: all }, { viewer }) => ({
    title: "Moves",
    nodes: [
      lead(html`A move takes a crawler to another host of its partner, with its name, subnets and waiting results. Start one on the
crawler's page, or with <code>nearcrawl fleet move NAME --to OTHER</code>.`),
      moveTable(all, viewer),
    ],
  }),
});

export const crawlerPastOperations = { crawlerLog, moves };

const stepWords: Readonly<Record<MoveStep, string>> = {
  asked: "waiting for the coordinator",
  emptying: "the other host finishes and ships its own work",
  packing: "the crawler finishes its requests and ships its results",
  sending: "its data is being sent",
  moved: "moved; waiting for it to connect from the new host",
  running: "done: it runs on the other host",
  failed: "not moved: both continue as before",
};

const moveTable = (rows: readonly MoveLine[], viewer: PageViewer) =>
  table<MoveLine>({
    ...{ label: "Moves", rows, empty: ["No moves yet.", ""] },
    columns: [
      column("asked_at", "Asked for", ({ askedAt }) => askedAt),
      column("crawler", "Crawler", ({ name }) => crawlerFor(viewer, name)),
      column("other", "To the host of", ({ otherName }) => crawlerFor(viewer, otherName)),
      column(
        "state",
        "State",
        ({ step, sentBytes, bytes, words }) =>
          html`${stepWords[step]}${step === "sending" && small(`${bytesText(sentBytes)} of ${bytesText(bytes)}`)}${words && small(words)}`,
        { kind: "why", value: ({ step }) => step },
      ),
      column("since", "Since", ({ changedAt }) => changedAt),
    ],
  });

type LogLine = CrawlerLogPage["lines"][number];

const logTable = (
  { lines }: Pick<CrawlerLogPage, "lines">,
  now: Date,
  otherwise: ReturnType<typeof html> | string,
) =>
  table<LogLine>({
    ...{ label: "Log", kind: "log", rows: lines, empty: ["No more entries.", otherwise] },
    columns: [
      column("at", "When", ({ at }) => at, { more: ({ at }) => ago(at, now.toISOString()) }),
      column("kind", "Kind", ({ kind }) => kind),
      column("words", "What", ({ words }) => words, { kind: "break" }),
      column("by", "By, or from", ({ by }) => by),
    ],
  });

const absencesShown = 10;

/** Everybody sees when and why. The crawler's last words are for operators and its partner. */
export function absenceSection(all: Operation["absences"]): Node | null {
  if (all.length === 0) return null;
  const older = all.slice(absencesShown);
  return section(
    "Absences",
    [
      absenceTable(all.slice(0, absencesShown), "Absences"),
      older.length > 0 &&
        folded(`${howMany(older.length, "absence")} before that`, [
          absenceTable(older, "Absences before that"),
        ]),
    ],
    { id: "absences" },
  );
}

const absenceTable = (rows: readonly Absence[], label: string) =>
  table<Absence>({
    ...{ label, rows, empty: ["None.", ""] },
    columns: [
      column("", "From", ({ since }) => since),
      column("", "To", ({ until }) => until),
      column("", "For", ({ since, until }) => spanWords((until.getTime() - since.getTime()) / 1000), {
        kind: "number",
      }),
      column("", "Why", ({ reason }) => reason, {
        ...{ kind: "why", more: ({ lastWords }) => lastWords !== null && `last words: ${lastWords}` },
      }),
    ],
  });

const logLinesShown = 15;

export function insideNodes(
  name: string,
  inside: Inside,
  { viewer, now }: { viewer: PageViewer; now: Date },
) {
  const { identity, keys, offers, trust, incidents, moves: ofIt, log } = inside;
  const ofIncidents = html`<a href="${pathWith("/fleet/incidents", { crawler: name })}">All kept</a>`;
  const inFull = html`<a href="${pathWith("/audit", { target: name })}">Changes in full, with before and after</a>`;
  return present([
    section("Identity", [
      identity.copiedAt !== null &&
        warning(html`Its folder was copied: two machines showed it, last at ${instant(identity.copiedAt)}. Have one of them
stopped, or reissue its credentials.`),
      facts(...identityFacts(identity)),
    ]),
    keys.length > 0 &&
      section("Keys", [note("Kept as hashes; each is replaced by itself after 90 days."), keyTable(keys)]),
    offers.length > 0 && section("Releases that it was offered", [offerTable(offers)]),
    trust && trustSection(trust, viewer),
    section(
      "Incidents of the last week",
      [
        incidents.length === 0
          ? empty("None.", "Nothing that it sent was refused.")
          : incidentTable(incidents, ["None.", ""]),
        incidents.length > 0 && mayDo(viewer.actor, "fleet-read") && note(ofIncidents),
      ],
      { id: "incidents" },
    ),
    ofIt.length > 0 && section("Moves", [moveTable(ofIt, viewer)]),
    log.lines.length > 0 &&
      section(
        "Log",
        [
          logTable({ lines: log.lines.slice(0, logLinesShown) }, now, ""),
          (log.more || log.lines.length > logLinesShown) &&
            note(html`<a href="${crawlerPath(name, "/log")}">The whole log</a>`),
        ],
        { id: "log" },
      ),
    mayDo(viewer.actor, "audit-read") && note(inFull),
  ]);
}

function identityFacts(identity: Inside["identity"]): readonly Fact[] {
  const { publicKey, signingKey, seenAddress, addressBefore, addressChangedAt, lastEnd, contact } = identity;
  const moved =
    addressBefore !== null &&
    addressChangedAt !== null &&
    html` ${small(html`${addressBefore} until ${instant(addressChangedAt)}`)}`;
  return [
    [
      "Public key (Ed25519)",
      publicKey ? html`<code class="break">${publicKey}</code>` : "none: it shows only its key",
    ],
    signingKey && [
      "Signs requests with",
      html`<code class="break">${signingKey.publicKey}</code> <span class="small">since ${instant(signingKey.since)},
until ${instant(signingKey.until)} at the latest; keyid ${signingKey.keyId}</span>`,
    ],
    ["Connects from", seenAddress === null ? "never seen" : html`${seenAddress}${moved}`],
    [
      "Its address is",
      identity.isListed ? "in the public list of the fleet" : "in no public list, as its partner wishes",
    ],
    ["Contact of its partner", contact ?? "not told"],
    lastEnd && ["Last words of its process", html`${lastEnd.reason} ${small(instant(lastEnd.at))}`],
  ];
}

type Key = Inside["keys"][number];

const keyTable = (rows: readonly Key[]) =>
  table<Key>({
    ...{ label: "Keys", rows, empty: ["None.", ""] },
    columns: [
      column("", "Key", ({ keyId }) => keyId, { kind: "number" }),
      column("", "Issued", ({ issuedAt }) => issuedAt),
      column("", "Arrived", ({ keptAt }) => keptAt, { none: "not yet known" }),
      column("", "Last used", ({ lastUsedAt }) => lastUsedAt, { none: "never" }),
      column(
        "",
        "Ends",
        ({ revokedAt, expiresAt }) => (revokedAt === null ? expiresAt : html`revoked ${instant(revokedAt)}`),
        { none: "when it is replaced" },
      ),
      column("", "For", ({ scopes }) => (scopes.includes("crawl") ? "crawling" : "measuring only")),
    ],
  });

type Offer = Inside["offers"][number];

const offerTable = (rows: readonly Offer[]) =>
  table<Offer>({
    ...{ label: "Releases", rows, empty: ["None.", ""] },
    columns: [
      column("", "Release", ({ version }) => version),
      column("", "Offered", ({ offeredAt }) => offeredAt),
      column(
        "",
        "What came of it",
        ({ state, reportedAt, reason }) =>
          html`${state ?? "no report yet"}${reportedAt && html` ${small(instant(reportedAt))}`}${reason && small(reason)}`,
      ),
    ],
  });
