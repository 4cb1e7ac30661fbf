/**
 * Pace of work (WEB-SAILOR section 4.3): a crawler with less due work than a threshold is to slow down, one with more
 * than another is to hurry up, and changes its number of parallel connections; between the two it has one for each
 * piece of work. Due work is counted in host slices, due
 * or in hand, which is what a connection works on at a time (the paper counts seed URLs). With hysteresis, which the
 * paper leaves out: a pace ends only once the work is well past its threshold, so that it does not come and go.
 */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { PaceStore, ToldPace, WorkPace } from "./pace-store.ts";

interface PaceRule {
  /** Host slices. */
  readonly slowDownUnder: number;
  /** More than `slowDownUnder`. */
  readonly hurryUpOver: number;
}

/** A pace ends at so many times, or parts, of its threshold. */
const hysteresis = 2;

export function nextPace(pace: WorkPace, due: number, rule: PaceRule): WorkPace {
  const { slowDownUnder, hurryUpOver } = rule;
  if (due < slowDownUnder) return "slow-down";
  if (due > hurryUpOver) return "hurry-up";
  if (pace === "slow-down" && due < Math.min(hurryUpOver, slowDownUnder * hysteresis)) return "slow-down";
  if (pace === "hurry-up" && due > Math.max(slowDownUnder, hurryUpOver / hysteresis)) return "hurry-up";
  return "steady";
}

/** As many slices as have to be counted to tell a pace: more change nothing. */
export function countedSlices({ hurryUpOver }: PaceRule): number {
  return Math.ceil(hurryUpOver) + 1;
}

/** In words, for the crawler's host: why. */
export function paceReason(pace: WorkPace, due: number, rule: PaceRule): string {
  const slices = `${due} host ${due === 1 ? "slice" : "slices"} due or in hand`;
  if (pace === "slow-down") return `${slices}, under ${rule.slowDownUnder}: no more connections than that`;
  if (pace === "hurry-up")
    return `${slices}, over ${rule.hurryUpOver / hysteresis}: as many connections as are allowed`;
  return `${slices}: a connection for each, where the limits allow`;
}

// Tells crawlers their pace (frontier/pace), crawler by crawler: when it changes, and when their work has
// outgrown the places that they have for it, or needs half of them at most.

export interface PacePorts {
  readonly paces: PaceStore;
  readonly online: () => readonly CrawlerId[];
  /** Nothing is due for it (idle-crawlers): who was told so needs no look. */
  readonly isIdle: (crawlerId: CrawlerId) => boolean;
  /** False: it is gone. */
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  readonly rule: () => PaceRule;
  readonly now: () => Date;
}

/** Crawlers in one pass; of more, the others have their turn with the next. */
const mostPerPass = 200;

/** Crawlers of the release before double their places with each `hurry-up`: after so many, any limit is reached. */
const mostRepeats = 14;

interface Paced {
  readonly pace: WorkPace;
  /** As it was told: on `steady` and `slow-down`, the places that the crawler has. */
  readonly due: number;
  /** Messages of this pace. */
  readonly messages: number;
}

export class PaceOfFleet {
  readonly #ports: PacePorts;
  readonly #paced = new Map<CrawlerId, Paced>();
  /** Nothing was due for them, or in their hands, when they were looked at. */
  readonly #withoutWork = new Set<CrawlerId>();
  #last: CrawlerId | null = null;

  constructor(ports: PacePorts) {
    this.#ports = ports;
  }

  /** Its session is new: it does what its host allows until it is told. */
  forget(crawlerId: CrawlerId): void {
    this.#paced.delete(crawlerId);
    this.#withoutWork.delete(crawlerId);
  }

  /** One pass; returns how many were told. */
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

  /** Empty: there is nothing new to tell, or it cannot be told. */
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
  // What nobody was told is "steady" with all places of its host's limits.
  if (before === null) return pace !== "steady";
  if (pace !== before.pace) return true;
  if (pace === "hurry-up") return before.messages < mostRepeats;
  return due > before.due || (due >= 1 && due * 2 <= before.due);
}
