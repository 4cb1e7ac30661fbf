/**
 * Tells crawlers their pace (frontier/pace), crawler by crawler: when it changes, and when their work has
 * outgrown the places that they have for it, or needs half of them at most. Crawlers of older releases are not told,
 * and go on as they are.
 */

import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { countedSlices, nextPace, type PaceRule, paceReason, type WorkPace } from "./pace.ts";

export interface ToldPace {
  readonly pace: WorkPace;
  /** Host slices, due or in hand; of many, no more than it takes to tell. */
  readonly due: number;
  readonly at: Date;
}

export interface PaceStore {
  /** Host slices that are due for the crawler or in its hands, counted up to `most`. */
  dueSlices(crawlerId: CrawlerId, most: number, now: Date): Promise<number>;
  /** What was told last, for whoever asks. */
  told(crawlerId: CrawlerId, told: ToldPace): Promise<void>;
}

export interface PacePorts {
  readonly paces: PaceStore;
  readonly online: () => readonly CrawlerId[];
  /** False: it is gone, or too old to know. */
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
  #last: CrawlerId | null = null;

  constructor(ports: PacePorts) {
    this.#ports = ports;
  }

  /** Its session is new: it does what its host allows until it is told. */
  forget(crawlerId: CrawlerId): void {
    this.#paced.delete(crawlerId);
  }

  /** One pass; returns how many were told. */
  async pass(): Promise<number> {
    const online = this.#inTurn();
    let told = 0;
    for (const crawlerId of online.slice(0, mostPerPass)) {
      this.#last = crawlerId;
      if (await this.#look(crawlerId)) told += 1;
    }
    return told;
  }

  #inTurn(): CrawlerId[] {
    const online = [...this.#ports.online()].sort((a, b) => a - b);
    const next = online.findIndex((crawlerId) => this.#last !== null && crawlerId > this.#last);
    return next <= 0 ? online : [...online.slice(next), ...online.slice(0, next)];
  }

  async #look(crawlerId: CrawlerId): Promise<boolean> {
    const { paces, send } = this.#ports;
    const rule = this.#ports.rule();
    const now = this.#ports.now();
    const due = await paces.dueSlices(crawlerId, countedSlices(rule), now);
    const before = this.#paced.get(crawlerId) ?? null;
    const pace = nextPace(before?.pace ?? "steady", due, rule);
    if (!isNews(pace, due, before)) return false;
    const reason = paceReason(pace, due, rule);
    if (!send(crawlerId, { type: "coordinator:work-pace", pace, due, reason })) return false;
    const messages = pace === before?.pace ? before.messages + 1 : 1;
    this.#paced.set(crawlerId, { pace, due, messages });
    await paces.told(crawlerId, { pace, due, at: now });
    return true;
  }
}

function isNews(pace: WorkPace, due: number, before: Paced | null): boolean {
  // What nobody was told is "steady" with all places of its host's limits.
  if (before === null) return pace !== "steady";
  if (pace !== before.pace) return true;
  if (pace === "hurry-up") return before.messages < mostRepeats;
  return due > before.due || (due >= 1 && due * 2 <= before.due);
}
