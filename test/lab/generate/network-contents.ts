/**
 * The contents of the registries' databases, record by record, each counted as it is written: the hierarchy,
 * and spread among it what stands beside it (odd objects, other classes, faults).
 */

import { attribute, shortBlockText } from "#ops/world/registry-text";
import type { RegionalRegistry } from "./address-blocks.ts";
import { ipv6Text, prefixLengthOfSpan } from "./address-text.ts";
import { arinAsn, arinCustomer, arinNet, arinOrganisation, arinPoc } from "./arin-elements.ts";
import { compactDayOf, datesOf } from "./dates.ts";
import {
  type FaultyRecord,
  faultyArinElements,
  faultyNetworks,
  faultyOrganisations,
} from "./faulty-records.ts";
import type { FileTally } from "./file-tally.ts";
import { organisationHandle, rpslSources } from "./handles.ts";
import { anonymousNames, companyName, type HolderChoice, sharedNames } from "./holder-choice.ts";
import { firstSharedOf, oddObjects, sharedHolder } from "./odd-objects.ts";
import { draw } from "./path-random.ts";
import { townOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import { rpslNetwork, rpslOrganisation } from "./rpsl-networks.ts";
import type { Slot } from "./slot.ts";
import { editsOf } from "./slot-life.ts";
import { type SlotView, viewOf } from "./slot-view.ts";
import type { TreeTally } from "./tree-tally.ts";
import { walkBlock } from "./walk-block.ts";

export interface ContentWork {
  readonly plans: readonly RegistryPlan[];
  readonly plan: RegistryPlan;
  readonly tree: TreeTally;
  readonly file: FileTally;
}

export type Content = (work: ContentWork) => Generator<string>;

/** RIPE's and APNIC's split files. */
export function networkFile(family: 4 | 6): Content {
  return function* (work) {
    yield databaseHead(work.plan);
    const odd = oddTexts(work, [family], rpslKind);
    const faults = faultTexts(work, faultyNetworks(family));
    yield* spread(networkTexts(work, family, rpslKind, rpslNetwork), [odd, faults]);
  };
}

export function* organisationFile(work: ContentWork): Generator<string> {
  yield databaseHead(work.plan);
  yield* organisationTexts(work);
  yield* faultTexts(work, faultyOrganisations);
}

/** AFRINIC: everything in one file. */
export function* wholeDatabase(work: ContentWork): Generator<string> {
  const { plan } = work;
  yield databaseHead(plan);
  const odd = oddTexts(work, [4, 6], rpslKind);
  const faults = faultTexts(work, [...faultyNetworks(4), ...faultyNetworks(6), ...faultyOrganisations]);
  const others = otherTexts(work, (at) => otherObject(plan.registry, at));
  yield* organisationTexts(work);
  yield* spread(networkTexts(work, 4, rpslKind, rpslNetwork), [odd, faults, others]);
  yield* networkTexts(work, 6, rpslKind, rpslNetwork);
}

export function* lacnicDatabase(work: ContentWork): Generator<string> {
  const kind = () => "inetnum";
  const odd = oddTexts(work, [4, 6], kind);
  const others = otherTexts(work, (at) => ({ kind: "aut-num", text: lacnicAutNum(at) }));
  const faults = faultTexts(work, faultyNetworks(4));
  yield* spread(networkTexts(work, 4, kind, lacnicNetwork), [odd, others, faults]);
  yield* networkTexts(work, 6, kind, lacnicNetwork);
}

export function* arinBulkData(work: ContentWork): Generator<string> {
  const { plan, file } = work;
  const kind = () => "net";
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<bulkwhois xmlns="http://www.arin.net/bulkwhois/core/v1">\n';
  for (let number = 0; number < plan.organisations; number++) {
    yield* keptTexts(file, "org", arinOrganisation(plan, number));
  }
  for (let number = 0; number < plan.customers; number++) {
    yield* keptTexts(file, "customer", arinCustomer(plan, number));
  }
  const odd = oddTexts(work, [4, 6], kind);
  const asns = elementTexts(work, "asn", arinAsn);
  const pocs = elementTexts(work, "poc", arinPoc);
  const faults = faultTexts(work, faultyArinElements);
  yield* spread(networkTexts(work, 4, kind, arinNet), [odd, asns, pocs, faults]);
  yield* networkTexts(work, 6, kind, arinNet);
  yield "</bulkwhois>\n";
}

type NetworkText = (plan: RegistryPlan, slot: Slot, view: SlotView) => string;
type KindOf = (family: 4 | 6) => string;

const rpslKind: KindOf = (family) => (family === 4 ? "inetnum" : "inet6num");

function* networkTexts(
  { plan, tree, file }: ContentWork,
  family: 4 | 6,
  kindOf: KindOf,
  textOf: NetworkText,
): Generator<string> {
  const kind = kindOf(family);
  for (const blockPlan of family === 4 ? plan.ipv4 : plan.ipv6) {
    for (const slot of walkBlock({ plan, blockPlan })) {
      const view = viewOf(plan, slot);
      tree.slot(plan, slot, view);
      if (!slot.life.isLive) continue;
      file.keep(kind, slot.secondSpan === null ? 1 : 2);
      yield textOf(plan, slot, view);
    }
  }
}

function* organisationTexts({ plan, file }: ContentWork): Generator<string> {
  for (let number = 0; number < plan.organisations; number++) {
    yield* keptTexts(file, "organisation", rpslOrganisation(plan, number));
  }
}

function* keptTexts(file: FileTally, kind: string, text: string | null): Generator<string> {
  if (text === null) return;
  file.keep(kind);
  yield text;
}

/** The odd objects of these families; ranges that ARIN's database holds too are further records of those. */
function* oddTexts(work: ContentWork, families: readonly (4 | 6)[], kindOf: KindOf): Generator<string> {
  const { plans, plan, tree, file } = work;
  const firstShared = firstSharedOf(plans, plan.registry);
  let shared = 0;
  for (const { family, text, ignored } of oddObjects(plan, firstShared)) {
    if (!families.includes(family)) continue;
    if (ignored !== null) file.ignore(kindOf(family), ignored);
    else {
      file.keep(kindOf(family));
      if (plan.registry === "arin") tree.sharedRange("arin", sharedHolder(plan, shared++));
      else tree.duplicate();
    }
    yield text;
  }
}

function* faultTexts({ plan, file }: ContentWork, records: readonly FaultyRecord[]): Generator<string> {
  if (!plan.settings.faults) return;
  for (const { kind, text } of records) {
    file.malformed(kind);
    yield text;
  }
}

/** Objects of classes that the importer has no use for. */
function* otherTexts(
  { plan, file }: ContentWork,
  otherAt: (at: number) => { readonly kind: string; readonly text: string },
): Generator<string> {
  for (let at = 0; at < plan.placeholders * 4; at++) {
    const { kind, text } = otherAt(at);
    file.ignore(kind, `object class ${kind}`);
    yield text;
  }
}

function* elementTexts(
  { plan, file }: ContentWork,
  name: string,
  textOf: (number: number) => string,
): Generator<string> {
  for (let number = 1; number <= plan.placeholders * 2; number++) {
    file.ignore(name, `element <${name}>`);
    yield textOf(number);
  }
}

function databaseHead({ registry, settings }: RegistryPlan): string {
  return `#\n# ${registry} database, generated: ${settings.objects} objects, seed ${settings.seed}, generation ${settings.generation}\n# It describes nobody.\n#\n\n`;
}

/** Others between the main texts, one after every sixty; what is left of them at the end. */
function* spread(main: Iterable<string>, others: readonly Iterable<string>[]): Generator<string> {
  const rest = joined(others);
  let count = 0;
  for (const text of main) {
    yield text;
    if (++count % 60 !== 0) continue;
    const next = rest.next();
    if (!next.done) yield next.value;
  }
  yield* rest;
}

function* joined(parts: readonly Iterable<string>[]): Generator<string> {
  for (const part of parts) yield* part;
}

// Objects that whole-database files hold beside networks and organisations; the importer passes over them.

interface OtherObject {
  /** Its class. */
  readonly kind: string;
  readonly text: string;
}

const kinds = ["aut-num", "person", "mntner", "route", "as-block"] as const;

function otherObject(registry: RegionalRegistry, at: number): OtherObject {
  const kind = kinds[at % kinds.length] as (typeof kinds)[number];
  const source = `${attribute("source", rpslSources[registry])}\n`;
  return { kind, text: attribute(kind, keyOf(kind, at)) + restOf(kind, at) + source };
}

function keyOf(kind: (typeof kinds)[number], at: number): string {
  switch (kind) {
    case "aut-num":
      return `AS${37_000 + at}`;
    case "person":
      return `Generated Person ${at}`;
    case "mntner":
      return `GEN${at}-MNT`;
    case "route":
      return `41.${at % 256}.0.0/16`;
    case "as-block":
      return `AS${37_000 + at} - AS${37_001 + at}`;
  }
}

function restOf(kind: (typeof kinds)[number], at: number): string {
  const maintainer = attribute("mnt-by", "GEN-MNT");
  if (kind === "person") return attribute("address", townOf(at)) + maintainer;
  return (kind === "route" ? attribute("origin", `AS${37_000 + at}`) : "") + maintainer;
}

// LACNIC's dialect: IPv4 and IPv6 under `inetnum:`, blocks without their trailing zero octets, the owner's
// name and id in the object itself, `inetnum-up:` for what it lies in. Latin-1: one character, one byte.

const towns = ["S\u00e3o Jos\u00e9", "Bogot\u00e1", "Asunci\u00f3n", "Vi\u00f1a Nova", "Bel\u00e9m"];
const areas = ["Opera\u00e7\u00f5es", "Servi\u00e7os", "Telecomunica\u00e7\u00f5es", "Educaci\u00f3n"];

/** With the empty line behind it. */
function lacnicNetwork(plan: RegistryPlan, slot: Slot, { country, holder }: SlotView): string {
  const { path, kind, life } = slot;
  const { registered, changed } = datesOf(path, editsOf(life));
  const person = personLetters[draw(path, 131) % personLetters.length] as string;
  const isAssigned = kind === "assignment" || kind === "crossing";
  return (
    attribute("inetnum", blockText(slot)) +
    attribute("status", isAssigned ? "reallocated" : "allocated") +
    attribute("aut-num", "N/A") +
    ownerLines(plan, holder, path) +
    attribute("responsible", `${townOf(draw(path, 132))} NOC`) +
    attribute("address", `Rua ${townOf(draw(path, 133))}, ${1 + (draw(path, 134) % 900)}, `) +
    attribute(
      "address",
      `${10_000 + (draw(path, 135) % 80_000)} - ${towns[draw(path, 136) % towns.length]}`,
    ) +
    attribute("country", country) +
    attribute("phone", `+00 555 ${draw(path, 137) % 10_000_000} []`) +
    attribute("owner-c", person) +
    attribute("tech-c", person) +
    attribute("abuse-c", person) +
    (isAssigned ? attribute("inetnum-up", upText(slot)) : "") +
    attribute("created", compactDayOf(registered)) +
    attribute("changed", compactDayOf(changed)) +
    sourceLine
  );
}

const sourceLine = `${attribute("source", "LACNIC")}\n`;

const personLetters = Array.from({ length: 17_576 }, (_, at) =>
  String.fromCharCode(65 + Math.floor(at / 676), 65 + (Math.floor(at / 26) % 26), 65 + (at % 26)),
);

function ownerLines(plan: RegistryPlan, holder: HolderChoice, path: number): string {
  const { type, number } = holder;
  if (type !== "organisation") return attribute("owner", nameWithoutId(holder, path));
  const company = companyName(plan.companies + number, 0);
  const name = number % 3 === 0 ? `${areas[number % areas.length]} ${company}` : company;
  return `${attribute("owner", name)}${attribute("ownerid", organisationHandle("lacnic", number))}`;
}

function nameWithoutId({ type, number }: HolderChoice, path: number): string {
  if (type === "company") return companyName(number, path);
  if (type === "shared-name") return sharedNames[number] as string;
  return anonymousNames[number % anonymousNames.length] as string;
}

function blockText({ block, span, isHost }: Slot): string {
  if (block.family === 4) return shortBlockText(span.first, 32 - span.bits);
  return `${ipv6Text(block, span.first)}/${isHost ? 128 : prefixLengthOfSpan(6, span)}`;
}

/** The /16 or /32 around it: LACNIC names the block that was divided. */
function upText({ block, span }: Slot): string {
  if (block.family === 4) return shortBlockText(span.first - (span.first % 65_536), 16);
  return `${ipv6Text(block, span.first - (span.first % 2 ** 32))}/32`;
}

/** An autonomous system, which LACNIC keeps in the same file; `owner` stands there too. */
function lacnicAutNum(number: number): string {
  return (
    attribute("aut-num", `AS${260_000 + number}`) +
    attribute("owner", companyName(number, 0)) +
    attribute("country", "BR") +
    attribute("created", "20150304") +
    sourceLine
  );
}
