/** What the flows know of moves: crawlers that go to other hosts. */
import type { CrawlerId } from "#core/ids";
import type { MoveStep } from "./moves.ts";

export interface CrawlerMoveRecord {
  readonly moveId: number;
  readonly crawlerId: CrawlerId;
  /** Whose host it is to run on. */
  readonly otherCrawlerId: CrawlerId;
  readonly name: string;
  readonly otherName: string;
  readonly fromPublicKey: string;
  readonly toPublicKey: string;
  readonly step: MoveStep;
  /** Why it failed. */
  readonly words: string;
  readonly changedAt: Date;
  readonly bytes: number;
  readonly sentBytes: number;
}

export type MoveRefusal =
  | "same-crawler"
  | "no-such-crawler"
  | "no-such-host"
  | "offline"
  | "host-offline"
  | "no-identity"
  | "shut-out"
  | "distrusted"
  | "moving";

export interface MoveStore {
  /** Running coordinators are told. */
  ask(asked: { readonly name: string; readonly otherName: string }, now: Date): Promise<number | MoveRefusal>;
  find(moveId: number): Promise<CrawlerMoveRecord | null>;
  /** Those that can still fail, oldest first. */
  open(): Promise<CrawlerMoveRecord[]>;
  /** From one step to the next; false: it is not there (any more). */
  advance(
    moveId: number,
    change: {
      readonly from: MoveStep;
      readonly to: MoveStep;
      readonly packed?: { readonly bytes: number; readonly digest: string; readonly signature: string };
    },
    now: Date,
  ): Promise<boolean>;
  /** Something happened: so much was sent. */
  progressed(moveId: number, sentBytes: number, now: Date): Promise<void>;
  /**
   * The crawler's name is the other host's identity from now on, with that host's keys and ticket; the other
   * crawler's name opens nothing any more and hands its subnets over. False: the move is no longer at `sending`, or
   * one of the two has another identity by now, and nothing changed.
   */
  commit(moveId: number, now: Date): Promise<boolean>;
  /** False: it cannot fail any more. */
  fail(moveId: number, words: string, now: Date): Promise<boolean>;
  failOpen(words: string, now: Date): Promise<number>;
  /**
   * A crawler arrives, with this identity: open moves that it takes part in have failed, and one that it has made is
   * complete. `isOutdated`: the identity is not the crawler's any more. All in one transaction, so that an arrival and
   * a commit come one after the other.
   */
  arrives(
    arrival: { readonly crawlerId: CrawlerId; readonly publicKey: string | null },
    now: Date,
  ): Promise<{ readonly isOutdated: boolean; readonly failed: readonly CrawlerMoveRecord[] }>;
  /** The last move that this identity took part in under this name, if it was made. */
  madeBy(shown: { readonly publicKey: string; readonly name: string }): Promise<CrawlerMoveRecord | null>;
}
