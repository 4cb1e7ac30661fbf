/** One crawler in full, with the parts that only operators and its partner see. */

import { type Actor, mayDo } from "#core/actor";
import type { IncidentStore } from "#core/incidents";
import {
  type CrawlerDetail,
  type CrawlerLogPage,
  type Inside,
  type Operation,
  shownOfEntry,
} from "./crawler-api.ts";
import { type FleetEntry, stateWords } from "./fleet-api.ts";
import type { FleetReads } from "./fleet-reads.ts";
import type { FleetPorts } from "./fleet-store.ts";

export interface CrawlerView extends CrawlerDetail {
  readonly operation: Operation;
  /** Null if the viewer may not see it. */
  readonly inside: Inside | null;
}

interface CrawlerViewPorts {
  readonly reads: FleetReads;
  readonly lines: FleetPorts["lines"];
  readonly incidents: Pick<IncidentStore, "list">;
}

const incidentMs = 7 * 86_400_000;
const incidentsShown = 20;

/** Returns null if there is no such crawler. `logPage` counts from 1. */
export async function crawlerView(
  asked: { readonly name: string; readonly logPage: number; readonly actor: Actor; readonly now: Date },
  ports: CrawlerViewPorts,
): Promise<CrawlerView | null> {
  const { name, actor, now } = asked;
  const [fleet, entry] = await Promise.all([ports.lines.fleet(), ports.reads.crawler(name, now)]);
  const crawler = fleet.find((line) => line.name === name);
  if (crawler === undefined || entry === null) return null;
  const detail = { crawler, ...(await ports.lines.crawlerDetail(crawler.crawlerId)) };
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
  return asPartnerSees({ ...detail, operation, inside }, actor, await ports.reads.fleet());
}

function publicPart(entry: FleetEntry) {
  const shown = Object.entries(entry).filter(([name]) => name in shownOfEntry);
  const part = Object.fromEntries(shown) as Pick<FleetEntry, keyof typeof shownOfEntry>;
  return { ...part, standing: stateWords(entry), incidentsInSevenDays: entry.incidents };
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

/** Removes the names of unlisted crawlers that are not the partner's, and of the people who run the fleet. */
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

/** Hides moves, which are shown above without others' names, and which operator acted. */
function partnersLine(line: LogLine, actor: Actor): LogLine[] {
  if (line.kind === "move") return [{ ...line, words: "took part in a move to another host" }];
  const isOthers = (line.kind === "change" || line.kind === "invitation") && line.by !== actor.name;
  return [isOthers ? { ...line, by: "an operator" } : line];
}
