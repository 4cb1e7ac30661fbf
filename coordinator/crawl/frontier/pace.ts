/**
 * Pace of work (WEB-SAILOR section 4.3): a crawler with less due work than one threshold is told to slow down, and one with
 * more than another to hurry up, by changing its number of parallel connections. Between them it has one connection per unit
 * of work. Work is counted in host slices due or leased, because a connection works on one at a time (the paper counts seed
 * URLs). Unlike the paper, it uses hysteresis: a pace ends only well past its threshold, so that it does not oscillate.
 */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { PaceStore, ToldPace, WorkPace } from "./due-work-store.ts";

interface PaceRule {
  readonly slowDownUnder: number;
  /** Must exceed `slowDownUnder`. */
  readonly hurryUpOver: number;
}

/** A pace ends at its threshold multiplied or divided by this. */
const hysteresis = 2;

export function nextPace(pace: WorkPace, due: number, rule: PaceRule): WorkPace {
  const { slowDownUnder, hurryUpOver } = rule;
  if (due < slowDownUnder) return "slow-down";
  if (due > hurryUpOver) return "hurry-up";
  if (pace === "slow-down" && due < Math.min(hurryUpOver, slowDownUnder * hysteresis)) return "slow-down";
  if (pace === "hurry-up" && due > Math.max(slowDownUnder, hurryUpOver / hysteresis)) return "hurry-up";
  return "steady";
}

/** Counting more slices than this changes nothing. */
export function countedSlices({ hurryUpOver }: PaceRule): number {
  return Math.ceil(hurryUpOver) + 1;
}

export function paceReason(pace: WorkPace, due: number, rule: PaceRule): string {
  const slices = `${due} host ${due === 1 ? "slice" : "slices"} due or in hand`;
  if (pace === "slow-down") return `${slices}, under ${rule.slowDownUnder}: no more connections than that`;
  if (pace === "hurry-up")
    return `${slices}, over ${rule.hurryUpOver / hysteresis}: as many connections as are allowed`;
  return `${slices}: a connection for each, where the limits allow`;
}

// Sends crawlers their pace (frontier/pace) when it changes, when their work exceeds the connections assigned for it,
// or when it needs at most half of them.

export interface PacePorts {
  readonly paces: PaceStore;
  readonly online: () => readonly CrawlerId[];
  /** True if the crawler was told that nothing is due (idle-crawlers), so it needs no check. */
  readonly isIdle: (crawlerId: CrawlerId) => boolean;
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  readonly rule: () => PaceRule;
  readonly now: () => Date;
}

/** Crawlers per pass. The others follow in the next one. */
const mostPerPass = 200;

/** Crawlers of the previous release double their connections at each `hurry-up`. This many repeats reach any limit. */
const mostRepeats = 14;

interface Paced {
  readonly pace: WorkPace;
  /** Number of slices as sent. For `steady` and `slow-down` it is the crawler's number of connections. */
  readonly due: number;
  readonly messages: number;
}

export class PaceOfFleet {
  readonly #ports: PacePorts;
  readonly #paced = new Map<CrawlerId, Paced>();
  /** Crawlers without due or leased work at the last check. */
  readonly #withoutWork = new Set<CrawlerId>();
  #last: CrawlerId | null = null;

  constructor(ports: PacePorts) {
    this.#ports = ports;
  }

  /** Begins a new session. The crawler uses its host's limits until it is sent a pace. */
  forget(crawlerId: CrawlerId): void {
    this.#paced.delete(crawlerId);
    this.#withoutWork.delete(crawlerId);
  }

  async pass(): Promise<number> {
    const isSettled = (crawlerId: CrawlerId) =>
      this.#withoutWork.has(crawlerId) && this.#ports.isIdle(crawlerId);
    const online = this.#inTurn().filter((crawlerId) => !isSettled(crawlerId));
    const now = this.#ports.now();
    const looked = online.slice(0, mostPerPass);
    if (looked.length === 0) return 0;
    this.#last = looked.at(-1)!;
    const due = await this.#ports.paces.dueSlices(looked, countedSlices(this.#ports.rule()), now);
    const told = looked.flatMap((crawlerId) => this.#tell(crawlerId, due.get(crawlerId) ?? 0, now));
    if (told.length > 0) await this.#ports.paces.told(told);
    return told.length;
  }

  #inTurn(): CrawlerId[] {
    const online = [...this.#ports.online()].sort((a, b) => a - b);
    const next = online.findIndex((crawlerId) => this.#last !== null && crawlerId > this.#last);
    return next <= 0 ? online : [...online.slice(next), ...online.slice(0, next)];
  }

  /** Empty if nothing changed or the message cannot be sent. */
  #tell(crawlerId: CrawlerId, due: number, at: Date): ToldPace[] {
    if (due === 0) this.#withoutWork.add(crawlerId);
    else this.#withoutWork.delete(crawlerId);
    const rule = this.#ports.rule();
    const before = this.#paced.get(crawlerId) ?? null;
    const pace = nextPace(before?.pace ?? "steady", due, rule);
    if (!isNews(pace, due, before)) return [];
    const reason = paceReason(pace, due, rule);
    if (!this.#ports.send(crawlerId, { type: "coordinator:work-pace", pace, due, reason })) return [];
    const messages = pace === before?.pace ? before.messages + 1 : 1;
    this.#paced.set(crawlerId, { pace, due, messages });
    return [{ crawlerId, pace, due, at }];
  }
}

function isNews(pace: WorkPace, due: number, before: Paced | null): boolean {
  // Without a message, a crawler is "steady" within its host's limits.
  if (before === null) return pace !== "steady";
  if (pace !== before.pace) return true;
  if (pace === "hurry-up") return before.messages < mostRepeats;
  return due > before.due || (due >= 1 && due * 2 <= before.due);
}
