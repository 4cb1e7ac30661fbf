/**
 * Decides what follows when two crawlers disagree on a page. Others are asked, one after the other, until it is clear
 * whether one crawler stands alone, or the page differs by place or by visit, which is nobody's fault.
 *
 *   first ── second: agree ───────────────────────────────────────────────► agree
 *       └─── second differs ── near the first: with the second ── first again ─┬─ as the others ──► once
 *                          │                                                 └─ else: one more ──► alone | by place
 *                          ├── near the first: with the first ── near the second: with it ───────► by place
 *                          │                                   └─ not ── second again ───────────► alone | once
 *                          └── near the first: nobody stands out ───────────────────────────────► by visit
 *
 * `alone` and `once` describe what was seen and accuse nobody: a page may have changed in between, or differ for one
 * network only. Only many of them allow conclusions (evidence.ts).
 */
import type { CrawlerId } from "#core/ids";
import {
  asErrorPage,
  differenceOf,
  differenceWords,
  isWithin,
  type PageDifference,
  type PageSketch,
  still,
  trapsExplain,
  type Volatility,
  widest,
} from "./page-sketch.ts";

export interface Opinion {
  readonly crawlerId: CrawlerId;
  readonly sketch: PageSketch;
  /** The software version as stated by the crawler. Another version may read the same bytes differently. */
  readonly version: string;
  /** False if we never offered this version, so that it explains nothing. */
  readonly isOffered?: boolean;
}

/** `near` asks a crawler that was not asked yet, as near to that one as possible. `again` asks that one itself. */
export type Asked =
  | { readonly type: "anybody" }
  | { readonly type: "near"; readonly to: CrawlerId }
  | { readonly type: "again"; readonly crawlerId: CrawlerId };

export type Verdict =
  | { readonly type: "agree" }
  /** All of this crawler's fetches differ from all of the others', which agree. */
  | { readonly type: "alone"; readonly suspect: CrawlerId; readonly words: string }
  /** This crawler's first fetch differed, but not its second. */
  | { readonly type: "once"; readonly suspect: CrawlerId; readonly words: string }
  | { readonly type: "by-place"; readonly words: string }
  | { readonly type: "by-visit"; readonly volatility: Volatility; readonly words: string }
  | { readonly type: "cannot-tell"; readonly words: string };

type ArbitrationStep =
  | { readonly type: "ask"; readonly asked: Asked }
  | { readonly type: "verdict"; readonly verdict: Verdict };

interface Arbitration {
  /** In the order in which they arrived. */
  readonly opinions: readonly Opinion[];
  /** How much pages of the host vary. */
  readonly volatility: Volatility;
  /** How many more crawlers could be asked. */
  readonly others: number;
  /** Whether a page that one of them took for the site's error page matches other pages of the host. */
  readonly isErrorPage?: boolean;
}

export function nextStep(given: Arbitration): ArbitrationStep {
  const opinions = given.isErrorPage === true ? asErrorPage(given.opinions) : given.opinions;
  const arbitration = { ...given, opinions };
  const { volatility, others } = arbitration;
  const silent = opinions.find(({ sketch }) => sketch.kind === "none");
  // A gate is nobody's fault, but a crawler that meets many is considered unproven (evidence.ts).
  if (silent?.sketch.isGate) return untold("a bot gate answered one of the fetches");
  if (silent !== undefined)
    return silentAgain(opinions, silent) ?? untold("one of the fetches says nothing of it");
  const [first, second, third] = opinions;
  if (first === undefined || second === undefined) return ask({ type: "anybody" });
  const difference = between(first, second);
  if (difference === null) return untold("one of the fetches says nothing of it");
  if (isWithin(difference, volatility)) return verdict({ type: "agree" });
  if (versionsExplain(first, second, difference))
    return untold(
      "they run different versions of the software, which may read a page as differently as that",
    );
  if (trapsExplain(first.sketch, second.sketch, difference))
    return untold("they differ in links that one of them left out as a trap, by what it knows of the site");
  if (third === undefined) {
    if (others === 0)
      return untold(`with two crawlers nobody can say which is right: ${differenceWords(difference)}`);
    return ask({ type: "near", to: first.crawlerId });
  }
  const suspect = standsAlone([first, second, third], volatility);
  if (suspect === first) return suspectFirst(arbitration, first);
  if (suspect === second) return suspectSecond(arbitration, second);
  return byVisit(suspect === third ? [first, second] : opinions);
}

/** Returns the one of three that differs from both others by more than they differ from each other. */
function standsAlone(three: readonly [Opinion, Opinion, Opinion], volatility: Volatility): Opinion | null {
  return (
    three.find((one) => {
      const [a, b] = three.filter((other) => other !== one);
      return isApart(one, [a!, b!], volatility);
    }) ?? null
  );
}

function suspectFirst({ opinions, volatility, others }: Arbitration, first: Opinion): ArbitrationStep {
  const [, second, third, again, more] = opinions;
  const rest = [second!, third!];
  if (again === undefined) return ask({ type: "again", crawlerId: first.crawlerId });
  if (!isApart(again, rest, volatility)) return accuse("once", first, second!);
  if (more === undefined) return others > 0 ? ask({ type: "anybody" }) : accuse("alone", first, second!);
  const holds = isApart(first, [...rest, more], volatility) && isApart(again, [...rest, more], volatility);
  if (holds) return accuse("alone", first, second!);
  return isApart(more, rest, volatility) ? byPlace() : byVisit(opinions);
}

function suspectSecond({ opinions, volatility, others }: Arbitration, second: Opinion): ArbitrationStep {
  const [first, , third, fourth, fifth] = opinions;
  const rest = [first!, third!];
  if (fourth === undefined) {
    return ask(
      others > 0 ? { type: "near", to: second.crawlerId } : { type: "again", crawlerId: second.crawlerId },
    );
  }
  const isAgain = fourth.crawlerId === second.crawlerId;
  if (!isAgain && isApart(fourth, rest, volatility)) return byPlace();
  const again = isAgain ? fourth : fifth;
  if (again === undefined) return ask({ type: "again", crawlerId: second.crawlerId });
  const all = isAgain ? rest : [...rest, fourth];
  if (!isApart(second, all, volatility)) return byVisit(opinions);
  return accuse(isApart(again, all, volatility) ? "alone" : "once", second, first!);
}

/**
 * A crawler that is asked again and has no answer keeps its first statement, as if this fetch agreed with the others.
 * Otherwise silence would protect forgers. Null if the crawler was not asked before.
 */
function silentAgain(opinions: readonly Opinion[], silent: Opinion): ArbitrationStep | null {
  const { crawlerId } = silent;
  const before = opinions.find((one) => one !== silent && one.crawlerId === crawlerId);
  const other = opinions.find((one) => one.crawlerId !== crawlerId);
  return before === undefined || other === undefined ? null : accuse("once", before, other);
}

/** Whether `one` differs from each of the others by more than they differ among themselves and than the host's pages vary. */
function isApart(one: Opinion, rest: readonly Opinion[], volatility: Volatility): boolean {
  const own = rest.flatMap((a, index) => rest.slice(index + 1).map((b) => between(a, b)));
  if (own.some((difference) => difference === null || difference.kind)) return false;
  const most = own.reduce<Volatility>((widestYet, difference) => widest(widestYet, difference!), volatility);
  return rest.every((other) => {
    const difference = between(one, other);
    if (difference === null || isWithin(difference, most)) return false;
    return !versionsExplain(one, other, difference) && !trapsExplain(one.sketch, other.sketch, difference);
  });
}

/** Equal bytes are the same page if our own versions read them, even where they parse it somewhat differently. */
function between(a: Opinion, b: Opinion): PageDifference | null {
  const difference = differenceOf(a.sketch, b.sketch);
  if (difference === null || !versionsExplain(a, b, difference)) return difference;
  const isSame = a.sketch.digest !== null && a.sketch.digest === b.sketch.digest;
  return isSame ? { kind: false, ...still } : difference;
}

/**
 * Two of our releases may read a page slightly differently (an extra heading, navigation omitted). A stated version
 * does not explain whether there is a page, a different text, or dozens of links. An unknown version explains
 * nothing, because forgers could invent one.
 */
function versionsExplain(a: Opinion, b: Opinion, difference: PageDifference): boolean {
  if (a.version === b.version || a.isOffered === false || b.isOffered === false || difference.kind)
    return false;
  const links = Math.max(versionLinks, versionLinkShare * Math.max(a.sketch.linkCount, b.sketch.linkCount));
  return difference.bits <= versionBits && difference.links <= links;
}

/** Maximum differing bits, of 64, that another version explains. Unrelated texts differ by some 32. */
const versionBits = 16;
const versionLinks = 12;
const versionLinkShare = 0.4;

function accuse(type: "alone" | "once", suspect: Opinion, other: Opinion): ArbitrationStep {
  const words = differenceWords(between(suspect, other)!);
  return verdict({ type, suspect: suspect.crawlerId, words });
}

const byPlace = () =>
  verdict({ type: "by-place", words: "crawlers near each other see the same, others something else" });

function byVisit(opinions: readonly Opinion[]): ArbitrationStep {
  const differences = opinions.flatMap((a, index) =>
    opinions.slice(index + 1).flatMap((b) => {
      const difference = between(a, b);
      return difference === null || versionsExplain(a, b, difference) ? [] : [difference];
    }),
  );
  // A page that is only sometimes there says nothing about how much its text varies.
  const volatility = differences
    .filter(({ kind }) => !kind)
    .map(({ bits, links, title }) => ({ bits, links, title }))
    .reduce<Volatility>(widest, still);
  return verdict({ type: "by-visit", volatility, words: "it differs from visit to visit" });
}

const untold = (words: string) => verdict({ type: "cannot-tell", words });
const ask = (asked: Asked): ArbitrationStep => ({ type: "ask", asked });
const verdict = (given: Verdict): ArbitrationStep => ({ type: "verdict", verdict: given });
