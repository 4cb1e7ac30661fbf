/**
 * What of an answer concerns delegations finer than a subnet: a host that is delegated by itself because its
 * name resolves differently by place, and a leaf that is split below its registered range. Shapes and words.
 */

import { note, type Standing, stop } from "#core/explanation";
import { instantWords } from "#core/format";
import { formatAddress, type IpAddress, parseAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress, parseRange, rangeHolds } from "#core/ip/range";
import type { FinerReport } from "../../place/delegation/rounds-api.ts";
import { domainSetHolds } from "../../place/domain-sets/domain-set.ts";
import {
  type Layer,
  layerTexts,
  type Partition,
  partitionHolds,
  partitionOf,
} from "../../place/domain-sets/partition.ts";
import type { ChainSubnet, EffectiveDelegation } from "../../place/subnets/subnets-api.ts";

/** The part that holds an address, or null where the leaf is not split there. */
export function partAt(parts: readonly FinerReport[], text: string): FinerReport | null {
  const address = parseAddress(text);
  if (address === null) return null;
  return parts.find((part) => holds(part.range === null ? null : parseRange(part.range), address)) ?? null;
}

function holds(range: IpRange | null, address: IpAddress): boolean {
  return range !== null && rangeHolds(range, address);
}

/** As the delegation in force. */
export function effectiveFiner(finer: FinerReport, leaf: ChainSubnet): EffectiveDelegation {
  const { crawler, measured, rttMs, runnerUp, runnerUpRttMs, cause, since, roundId } = finer;
  const own = { crawler, measured, rttMs, runnerUp, runnerUpRttMs, cause, since, roundId };
  const range = finer.range ?? leaf.range;
  return { ...own, subnetId: leaf.subnetId, range, inherited: false, finer: finer.type };
}

export interface FinerFacts {
  /** What is in force for what was asked. */
  readonly finer: FinerReport | null;
  /** Of the leaf. */
  readonly parts: readonly FinerReport[];
  readonly leaf: ChainSubnet | null;
}

export function finerLines({ finer, parts, leaf }: FinerFacts): Standing[] {
  // A host may have a crawler of its own by domain sets alone (who-domain-sets).
  const lines = finer?.type === "host" && finer.cause !== "domain-set" ? [hostLine(finer)] : [];
  if (leaf === null || parts.length === 0) return lines;
  const head = `${leaf.range} is split below its registered range: `;
  const words = head + parts.slice(0, 4).map(partWords(leaf)).join("; ");
  const more = parts.length > 4 ? `; and ${parts.length - 4} more parts` : "";
  return [...lines, { code: "leaf-split", stops: false, words: `${words}${more}.` }];
}

const addressesPerVantage = 3;
const vantagesSpoken = 6;

function hostLine({ crawler, since, seen }: FinerReport): Standing {
  const told = seen
    .slice(0, vantagesSpoken)
    .map(
      (one) =>
        `${one.crawler ?? "the coordinator"} ${one.addresses.slice(0, addressesPerVantage).join(", ")}`,
    )
    .join("; ");
  const words = `This host answers differently by place: delegated by host, to ${crawler.name}, since ${instantWords(since)}.`;
  return { code: "differs-by-place", stops: false, words: told === "" ? words : `${words} Seen by ${told}.` };
}

/** "addresses 10.1.2.0–10.1.2.127 measure 80 ms from the rest and go to tokyo (12.0 ms)". */
const partWords = (leaf: ChainSubnet) => (part: FinerReport) => {
  const restMs = leaf.delegation?.rttMs ?? null;
  const apart =
    part.subnetRttMs === null || restMs === null
      ? "measure apart from the rest"
      : `measure ${Math.round(Math.abs(part.subnetRttMs - restMs))} ms from the rest`;
  const at = part.rttMs === null ? "not measured" : `${part.rttMs.toFixed(1)} ms`;
  return `addresses ${spanOf(part.range ?? "")} ${apart} and go to ${part.crawler.name} (${at})`;
};

/** First and last address: who looks for an address need not work out a prefix. */
function spanOf(text: string): string {
  const range = parseRange(text);
  if (range === null) return text;
  return `${formatAddress(firstAddress(range))}–${formatAddress(lastAddress(range))}`;
}

// What of an answer concerns domain sets: by which one a host's crawler may have it, or why nobody may.

/** The fleet's sets, as text; no crawlers: nobody has any. */
export interface FleetSets {
  /** Of the host; null: not known yet. */
  readonly language: string | null;
  readonly crawlers: readonly {
    readonly crawlerId: number;
    readonly name: string;
    readonly operator: readonly string[];
    readonly partner: readonly string[];
  }[];
}

export interface DomainSetFacts {
  readonly host: string;
  readonly fleet: FleetSets;
  /** The coordinator's own. */
  readonly own: readonly string[];
}

const namesSpoken = 4;

export function domainSetLines(
  facts: DomainSetFacts | null | undefined,
  crawler: { readonly crawlerId: number; readonly name: string } | null,
): Standing[] {
  if (!facts) return [];
  const asked = { host: facts.host, language: facts.fleet.language };
  const own = partitionOf(facts.own);
  if (!partitionHolds(own, asked)) {
    const words = `${hostWords(facts)} is in none of the domain sets of this coordinator (${setsOf(own)}): it is not crawled from here.`;
    return [stop("no-domain-set", words)];
  }
  if (facts.fleet.crawlers.length === 0) return [];
  const able = facts.fleet.crawlers.filter((one) =>
    partitionHolds(partitionOf(one.operator, one.partner), asked),
  );
  const having = facts.fleet.crawlers.find(({ crawlerId }) => crawlerId === crawler?.crawlerId);
  if (able.length === 0) {
    const theirs = having && ` (${having.name} has ${setsOf(partitionOf(having.operator, having.partner))})`;
    const words = `${hostWords(facts)} is in no crawler's domain sets${theirs ?? ""}: it waits until one is given it.`;
    return [stop("no-domain-set", words)];
  }
  if (having === undefined) return [];
  const partition = partitionOf(having.operator, having.partner);
  if (able.includes(having))
    return partition.length === 0 ? [] : [note("domain-set", heldWords(having.name, partition, facts))];
  const names = able.slice(0, namesSpoken).map(({ name }) => name);
  const more = able.length > namesSpoken ? ` and ${able.length - namesSpoken} more` : "";
  const words =
    `${hostWords(facts)} is in none of ${having.name}'s domain sets (${setsOf(partition)}): ` +
    `it goes to the nearest of ${names.join(", ")}${more}, whose sets hold it.`;
  return [stop("other-domain-set", words)];
}

/** `north may have it by its domain set .gr.` */
function heldWords(
  name: string,
  partition: Partition,
  { host, fleet: { language } }: DomainSetFacts,
): string {
  const deciding = partition.map((layer) => layerTexts([firstHolding(layer, { host, language })]).join());
  const sets = [...new Set(deciding)];
  return `${name} may have it by its domain ${sets.length === 1 ? "set" : "sets"} ${sets.join(" and ")}${askedLanguage(language, sets)}.`;
}

function firstHolding(layer: Layer, asked: { readonly host: string; readonly language: string | null }) {
  return layer.find((set) => domainSetHolds(set, asked)) ?? layer[0]!;
}

/** Only where a language was asked for. */
function askedLanguage(language: string | null, sets: readonly string[]): string {
  if (!sets.some((set) => set.includes("lang:"))) return "";
  return language === null
    ? "; the language of its pages is not known yet, so that any may hold it"
    : `; its pages are in ${language}`;
}

function hostWords({ host, fleet: { language } }: DomainSetFacts): string {
  return language === null ? host : `${host} (in ${language})`;
}

const setsOf = (partition: Partition): string =>
  partition.map((layer) => layerTexts(layer).join(" or ")).join(", and ");
