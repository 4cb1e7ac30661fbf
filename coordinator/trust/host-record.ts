/**
 * What the comparisons of a host's pages teach of the host: how its pages differ by themselves, and whether anything
 * can be concluded from a difference on it.
 */
import type { CrawlerId } from "#core/ids";
import type { Opinion, Verdict } from "./arbitration.ts";
import { still, type Volatility, widest } from "./compare-sketches.ts";

export interface HostRecord {
  readonly agreed: number;
  readonly byVisit: number;
  readonly byPlace: number;
  /** Who has stood alone on it. */
  readonly suspects: readonly CrawlerId[];
  readonly volatility: Volatility;
}

export const newHost: HostRecord = { agreed: 0, byVisit: 0, byPlace: 0, suspects: [], volatility: still };

/** Beyond this, fetches of one page have so little in common that comparing them teaches nothing. */
const mostBits = 16;
const mostLinks = 40;
/** Who stands alone is remembered up to here; two are enough to silence a host. */
const mostSuspects = 4;

export function withVerdict(host: HostRecord, verdict: Verdict): HostRecord {
  switch (verdict.type) {
    case "agree":
      return { ...host, agreed: host.agreed + 1 };
    case "by-visit":
      return { ...host, byVisit: host.byVisit + 1, volatility: widest(host.volatility, verdict.volatility) };
    case "by-place":
      return { ...host, byPlace: host.byPlace + 1 };
    case "alone":
    case "once":
      return { ...host, suspects: [...new Set([...host.suspects, verdict.suspect])].slice(0, mostSuspects) };
    default:
      return host;
  }
}

/**
 * True: a difference on this host accuses nobody. It shows places something else, or each visit, or several crawlers
 * stood alone on it, who cannot all be liars.
 */
export function isSilent({ byPlace, suspects, volatility }: HostRecord): boolean {
  const { bits, links, title } = volatility;
  return byPlace > 0 || suspects.length > 1 || title || bits > mostBits || links > mostLinks;
}

/**
 * What a verdict says of the crawler that fetched the page first, in its own work. Who was asked for a comparison is
 * not judged by it: of a host that is not its own no other page of it could tell whether the host shows it something
 * else.
 */
export function outcomesOf(
  verdict: Verdict,
  opinions: readonly Opinion[],
): { readonly crawlerId: CrawlerId; readonly outcome: "agree" | "alone" | "once" }[] {
  const first = opinions[0]?.crawlerId;
  if (first === undefined) return [];
  if (verdict.type === "agree") return [{ crawlerId: first, outcome: "agree" }];
  const isFirst = (verdict.type === "alone" || verdict.type === "once") && verdict.suspect === first;
  return isFirst ? [{ crawlerId: first, outcome: verdict.type }] : [];
}
