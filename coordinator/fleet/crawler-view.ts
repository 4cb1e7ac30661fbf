/** One crawler in full: what everybody may see of it, and what only operators and its partner do. */
import { type Actor, mayDo } from "#core/actor";
import { howMany } from "#core/format";
import type { IncidentEntry, IncidentStore } from "#core/incidents";
import type { Absence, IssuedKey } from "../crawlers/crawler.ts";
import type { MoveLine } from "../crawlers/move-store.ts";
import { type CrawlerDetail, type OverviewReads, showCrawler } from "../overview/overview.ts";
import type { TrustReport } from "../trust/judge-crawler.ts";
import type { CrawlerWork, FleetEntry } from "./fleet-list-reads.ts";
import type { CrawlerActivity, CrawlerLogPage, FailureShares, FleetReads, OfferEntry } from "./fleet-view.ts";

export interface CrawlerView extends CrawlerDetail {
  readonly operation: Operation;
  /** Null: not for this viewer. */
  readonly inside: Inside | null;
}

export type Operation = Pick<
  FleetEntry,
  | "pagesToday"
  | "bytesToday"
  | "bodyBytesToday"
  | "shippedBytesToday"
  | "pagesPerDay"
  | "bytesPerDay"
  | "granted"
  | "partnerAllows"
  | "draining"
  | "joiningSince"
  | "trust"
  | "release"
> & {
  readonly standing: StateWords;
  readonly incidentsInSevenDays: number;
  readonly activity: CrawlerActivity;
  readonly work: CrawlerWork;
  /** Of the last 24 hours; null: it fetched nothing. */
  readonly failures: FailureShares["byCrawler"][number] | null;
  /** The latest first. */
  readonly absences: readonly Absence[];
};

export interface Inside {
  readonly identity: FleetEntry["identity"];
  readonly keys: readonly IssuedKey[];
  readonly offers: readonly OfferEntry[];
  readonly trust: TrustReport | null;
  /** Of the last week, the latest first. */
  readonly incidents: readonly IncidentEntry[];
  readonly moves: readonly MoveLine[];
  readonly log: CrawlerLogPage;
}

export interface CrawlerViewPorts {
  readonly reads: FleetReads;
  readonly overview: OverviewReads;
  readonly incidents: Pick<IncidentStore, "list">;
}

const incidentMs = 7 * 86_400_000;
const incidentsShown = 20;

/** Null: there is no crawler of that name. `logPage` from 1. */
export async function crawlerView(
  asked: { readonly name: string; readonly logPage: number; readonly actor: Actor; readonly now: Date },
  ports: CrawlerViewPorts,
): Promise<CrawlerView | null> {
  const { name, actor, now } = asked;
  const [detail, entry] = await Promise.all([
    showCrawler(ports.overview, name),
    ports.reads.crawler(name, now),
  ]);
  if (detail === null || entry === null) return null;
  const [activity, work, absences, shares] = await Promise.all([
    ports.reads.activityOf(entry.crawlerId),
    ports.reads.workOf(name),
    ports.reads.absencesOf(name),
    ports.reads.failureShares(24),
  ]);
  const failures = shares.byCrawler.find(({ crawler }) => crawler === name) ?? null;
  const operation = { ...publicPart(entry), activity, work, absences, failures };
  const isPartner = actor.role === "partner" && actor.crawlers.includes(name);
  if (!isPartner && !mayDo(actor, "fleet-read")) return { ...detail, operation, inside: null };
  const inside = await insideOf(entry, asked, ports);
  if (!isPartner) return { ...detail, operation, inside };
  return asPartnerSees({ ...detail, operation, inside }, actor, await ports.reads.fleet(now));
}

function publicPart(entry: FleetEntry): Omit<Operation, "activity" | "work" | "absences" | "failures"> {
  return {
    standing: stateWords(entry),
    pagesToday: entry.pagesToday,
    bytesToday: entry.bytesToday,
    bodyBytesToday: entry.bodyBytesToday,
    shippedBytesToday: entry.shippedBytesToday,
    pagesPerDay: entry.pagesPerDay,
    bytesPerDay: entry.bytesPerDay,
    granted: entry.granted,
    partnerAllows: entry.partnerAllows,
    draining: entry.draining,
    joiningSince: entry.joiningSince,
    trust: entry.trust,
    release: entry.release,
    incidentsInSevenDays: entry.incidents,
  };
}

async function insideOf(
  { name, crawlerId, identity }: FleetEntry,
  { logPage, now }: { readonly logPage: number; readonly now: Date },
  { reads, incidents }: CrawlerViewPorts,
): Promise<Inside> {
  const since = new Date(now.getTime() - incidentMs);
  const [keys, offers, trust, noted, moves, log] = await Promise.all([
    reads.keysOf(name),
    reads.offersOf(crawlerId),
    reads.trustOf(name),
    incidents.list({ name, since, most: incidentsShown }),
    reads.moves(name),
    reads.logOf(name, logPage),
  ]);
  return { identity, keys, offers, trust, incidents: noted, moves, log };
}

const another = "another crawler";

/** Without the names of crawlers that are not its own and in no public list, and of the people who run the fleet. */
function asPartnerSees(view: CrawlerView, actor: Actor, fleet: readonly FleetEntry[]): CrawlerView {
  const known = new Set([
    ...fleet.filter(({ identity }) => identity.isListed).map(({ name }) => name),
    ...actor.crawlers,
  ]);
  const shown = (name: string) => (known.has(name) ? name : another);
  const { inside } = view;
  return {
    ...view,
    peers: view.peers.map((peer) => ({ ...peer, name: shown(peer.name) })),
    inside: inside && {
      ...inside,
      moves: inside.moves.map((move) => ({
        ...move,
        name: shown(move.name),
        otherName: shown(move.otherName),
      })),
      trust: inside.trust && {
        ...inside.trust,
        evidence: inside.trust.evidence.map((one) => ({
          ...one,
          opinions: one.opinions.map((opinion) => ({ ...opinion, crawler: shown(opinion.crawler) })),
        })),
      },
      log: { ...inside.log, lines: inside.log.lines.flatMap((line) => partnersLine(line, actor)) },
    },
  };
}

type LogLine = CrawlerLogPage["lines"][number];

/** Moves are told above without others' names; who of the operators did what stays with them. */
function partnersLine(line: LogLine, actor: Actor): LogLine[] {
  if (line.kind === "move") return [{ ...line, words: "took part in a move to another host" }];
  const isOthers = (line.kind === "change" || line.kind === "invitation") && line.by !== actor.name;
  return [isOthers ? { ...line, by: "an operator" } : line];
}

// How a crawler stands, in plain words: since when, why, and what there is to do about it.

interface StateWords {
  /** One word for a badge: online, offline, draining, revoked, never. */
  readonly state: "online" | "offline" | "draining" | "revoked" | "never";
  readonly since: string | null;
  /** A sentence without its end; null: nothing has to be said. */
  readonly why: string | null;
  /** What there is to do, in sentences; null: nothing. */
  readonly advice: string | null;
}

type Standing = Pick<
  FleetEntry,
  | "state"
  | "revoked"
  | "lastSeenAt"
  | "connectedAt"
  | "offlineReason"
  | "draining"
  | "subnets"
  | "openLeases"
  | "joiningSince"
> & { readonly identity: Pick<FleetEntry["identity"], "copiedAt"> };

export function stateWords(entry: Standing): StateWords {
  if (entry.revoked) {
    return {
      state: "revoked",
      since: iso(entry.lastSeenAt),
      why: "it is shut out: no key of it opens anything",
      advice: "Give it a new identity to take it back.",
    };
  }
  if (entry.lastSeenAt === null && entry.state === "offline") {
    return {
      state: "never",
      since: null,
      why: "it has never connected",
      advice: "Its partner runs the line of the invitation. If the line was lost, invite it anew.",
    };
  }
  if (entry.state === "offline") return offlineWords(entry);
  if (entry.draining !== null) return drainingWords(entry, entry.draining);
  const joins = entry.joiningSince === null ? null : "it joins, and is given what is nearest to it";
  return { state: "online", since: iso(entry.connectedAt), why: joins, advice: null };
}

function offlineWords(entry: Standing): StateWords {
  const why = entry.offlineReason ?? "no reason was noted";
  const copied =
    entry.identity.copiedAt === null
      ? null
      : "Its folder was seen on two machines: have one of them stopped, or give it a new identity.";
  const advice = copied ?? adviceOn(why);
  return { state: "offline", since: iso(entry.lastSeenAt), why, advice };
}

/** How the reason begins that a dock leaves behind where nothing runs (migrating-crawler/supervisor/supervisor.ts). */
export const waitingGoodbye = "goodbye: it waits for ";

/** The first that fits; reasons are ours or the crawler's own (gateway/connection, the crawler's goodbye). */
const advices: readonly (readonly [RegExp, string])[] = [
  [
    /^goodbye: it waits for a release: /,
    "Offer one to all: nearcrawl release list, then nearcrawl release stage VERSION --to all. It takes it within a minute.",
  ],
  [
    /^goodbye: it waits for (a release key|a release signed)/,
    "Make a new identity for it (nearcrawl fleet reinvite): the invitation pins the keys that count now. Its partner joins with it and --again.",
  ],
  [
    /^goodbye: it waits for this machine's administrator/,
    "Its partner decides which releases run there. Ask for it to be accepted.",
  ],
  [/^goodbye: it waits for /, "It says itself what has to be done; its dock looks again by itself."],
  [
    /^goodbye: it has joined/,
    "Its partner starts it: the last line that join printed (nearcrawl-crawler.mjs run). Whatever it waits for then, it says here.",
  ],
  [
    /copied|another machine/i,
    "Two machines hold its folder: have one of them stopped, or give it a new identity.",
  ],
  [/coordinator/i, "It connects again by itself within a minute or so."],
  [
    /stopped|SIGTERM|SIGINT|asked to|moves|leave|for good|paused/i,
    "It is back when its host starts it again.",
  ],
  [
    /vanished|heartbeat|ECONN|EPIPE|ETIMEDOUT|closed|link|does not read|power/i,
    "Its machine, its process or its network is gone. It connects again by itself; if it stays away for an hour, ask its partner.",
  ],
];

function adviceOn(reason: string): string {
  const known = advices.find(([pattern]) => pattern.test(reason))?.[1];
  return (
    known ??
    "It connects again by itself. If it stays away, ask its partner to look at nearcrawl crawler status."
  );
}

const askers = {
  operator: "an operator",
  crawler: "its host, for good",
  trust: "the comparison of its pages with others'",
  partner: "its partner",
} as const;

function drainingWords(
  { subnets, openLeases }: Standing,
  { since, askedBy, subnets: had }: NonNullable<Standing["draining"]>,
): StateWords {
  const handed = Math.max(0, had - subnets);
  const isDone = subnets === 0 && openLeases === 0;
  const how = isDone
    ? `all of its ${howMany(had, "subnet")} went to others`
    : `${handed.toLocaleString("en-GB")} of ${howMany(had, "subnet")} went to others, ${howMany(openLeases, "lease")} open`;
  return {
    state: "draining",
    since: since.toISOString(),
    why: `it hands over, as ${askers[askedBy]} asked: ${how}`,
    advice: askedBy === "trust" ? "Look at the evidence, then believe it again or shut it out." : null,
  };
}

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;
