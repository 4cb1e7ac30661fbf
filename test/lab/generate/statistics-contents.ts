/**
 * The extended statistics of one registry: its allocations, a few ranges that its database lacks, and lines
 * that are not networks (autonomous systems, space that is reserved or available). The summary comes first, so
 * the allocations are walked twice.
 */
import {
  type DelegationFields,
  delegationLine,
  ipv4Text,
  summaryLine,
  versionLine,
} from "#ops/world/registry-text";
import { ipv6Text } from "./address-text.ts";
import { compactDay, compactDayOf, datesOf, fileDay } from "./dates.ts";
import { faultyStatistics } from "./faulty-records.ts";
import { opaqueId } from "./handles.ts";
import type { ContentWork } from "./network-contents.ts";
import { below, draw, fraction } from "./path-random.ts";
import { countryOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot, Span } from "./slot.ts";
import { walkBlock } from "./walk-block.ts";

export function* statisticsFile(work: ContentWork): Generator<string> {
  const { plan, tree, file } = work;
  const { registry } = plan;
  const counts = countLines(plan);
  const day = compactDay(fileDay(plan.settings.generation));
  yield versionLine({ registry, day, records: counts.asn + counts.ipv4 + counts.ipv6 });
  yield summaryLine(registry, "asn", counts.asn);
  yield summaryLine(registry, "ipv4", counts.ipv4);
  yield summaryLine(registry, "ipv6", counts.ipv6);
  for (let number = 0; number < asnCount(plan); number++) {
    file.ignore("asn", "autonomous system number");
    yield asnLine(plan, number);
  }
  for (const { slot, span, isSpare } of delegations(plan)) {
    const { family } = slot.block;
    file.keep(`ipv${family}`);
    if (isSpare) tree.spareRange(registry, family, slot.organisation);
    else tree.duplicate();
    yield lineOf(plan, slot, span);
  }
  for (let number = 0; number < idleCount(plan); number++) {
    const status = number % 2 === 0 ? "available" : "reserved";
    file.ignore("ipv4", `status ${status}`);
    yield idleLine(plan, number, status);
  }
  if (!plan.settings.faults) return;
  for (const { kind, text } of faultyStatistics(registry)) {
    file.malformed(kind);
    yield text;
  }
}

interface Delegation {
  readonly slot: Slot;
  readonly span: Span;
  /** Not in the registry's database. */
  readonly isSpare: boolean;
}

/** One allocation in twenty is missing from the statistics. */
const missingShare = 0.05;

function* delegations(plan: RegistryPlan): Generator<Delegation> {
  for (const blockPlan of [...plan.ipv4, ...plan.ipv6]) {
    for (const slot of walkBlock({ plan, blockPlan, onlyAllocations: true })) {
      if (slot.kind !== "allocation") continue;
      if (slot.spareSpan !== null) yield { slot, span: slot.spareSpan, isSpare: true };
      if (fraction(slot.path, 190) < missingShare) continue;
      yield { slot, span: slot.span, isSpare: false };
      if (slot.secondSpan !== null) yield { slot, span: slot.secondSpan, isSpare: false };
    }
  }
}

function countLines(plan: RegistryPlan): { asn: number; ipv4: number; ipv6: number } {
  const faults = plan.settings.faults ? faultyStatistics(plan.registry) : [];
  const faultsOf = (kind: string) => faults.filter((fault) => fault.isCounted && fault.kind === kind).length;
  const counts = {
    asn: asnCount(plan),
    ipv4: idleCount(plan) + faultsOf("ipv4"),
    ipv6: faultsOf("ipv6"),
  };
  for (const { slot } of delegations(plan)) counts[slot.block.family === 4 ? "ipv4" : "ipv6"]++;
  return counts;
}

const asnCount = (plan: RegistryPlan) => 1 + Math.floor(plan.organisations / 8);
const idleCount = (plan: RegistryPlan) => plan.placeholders;

function lineOf(plan: RegistryPlan, slot: Slot, span: Span): string {
  const { registry } = plan;
  const { path, block, organisation, country } = slot;
  const isIpv4 = block.family === 4;
  return delegationLine({
    registry,
    country: countryOf(registry, country),
    type: isIpv4 ? "ipv4" : "ipv6",
    start: isIpv4 ? ipv4Text(span.first) : ipv6Text(block, span.first),
    value: isIpv4 ? span.last - span.first + 1 : 64 - span.bits,
    day: compactDayOf(datesOf(path, 0).registered),
    status: fraction(path, 191) < 0.8 ? "allocated" : "assigned",
    opaqueId: opaqueId(registry, organisation),
  });
}

function asnLine(plan: RegistryPlan, number: number): string {
  const { registry, path } = plan;
  return delegationLine({
    registry,
    country: countryOf(registry, draw(path ^ number, 192)),
    type: "asn",
    start: String(1000 + number),
    value: 1,
    day: "20100504",
    status: "allocated",
    opaqueId: opaqueId(registry, below(path ^ number, 193, plan.organisations)),
  });
}

function idleLine(
  { registry, path }: RegistryPlan,
  number: number,
  status: DelegationFields["status"],
): string {
  const start = ipv4Text(41 * 2 ** 24 + below(path ^ number, 194, 65_536) * 256);
  return delegationLine({
    registry,
    country: "",
    type: "ipv4",
    start,
    value: 256,
    day: "",
    status,
    opaqueId: "",
  });
}
