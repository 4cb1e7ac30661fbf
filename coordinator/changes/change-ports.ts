/** The change feed as its readers know it: a cursor is the number of the last change that was read. */
import type { ChangeFilter, PageChange } from "./page-change.ts";

export interface FeedState {
  /** The number of the latest change; 0: there is none yet. */
  readonly last: number;
  /** Changes through this number are not kept any more. */
  readonly removedThrough: number;
}

export interface ChangeQuery {
  readonly filter: ChangeFilter;
  /** Changes at most. */
  readonly limit: number;
}

export type ChangesRead =
  | {
      readonly type: "read";
      /** In the order of their numbers. */
      readonly changes: readonly PageChange[];
      /** Where to go on: nothing that fits is between the last of the changes and this. */
      readonly next: number;
      /** There may be more behind `next` already. */
      readonly more: boolean;
    }
  /** Some of what came after the cursor is not kept any more. */
  | { readonly type: "too-old"; readonly removedThrough: number }
  /** There is no change of that number yet. */
  | { readonly type: "unknown"; readonly last: number };

export interface ChangeFeed {
  state(): Promise<FeedState>;
  /** What came after the change of that number. Looks at a bounded part of the feed: `more` says whether it went on. */
  after(since: number, query: ChangeQuery): Promise<ChangesRead>;
  /** The latest ones that fit, of a bounded part of the feed; `next` is the end of the feed. */
  latest(query: ChangeQuery): Promise<Extract<ChangesRead, { type: "read" }>>;
}
