/** What the exchange between a coordinator and its parent or children is made with. */

import type { UrlKey } from "#core/url-key";
import type { ChildMessage, ExchangedUrl, ParentAnswer } from "#protocol/exchange";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { ToldOf } from "../web/api-operation.ts";
import type { coordinators, relatedCoordinator } from "./federation-api.ts";

/** A URL that somebody else sent, with its key made here. */
export interface GivenUrl extends Omit<ExchangedUrl, "url"> {
  readonly key: UrlKey;
}

export interface GivenUrls {
  readonly urls: readonly GivenUrl[];
  /** The highest number of the message, with those that have no key. */
  readonly highest: number;
  /** Without a key: dropped and counted. */
  readonly faulty: number;
}

export interface TakenUrls {
  /** New to the frontier here. */
  readonly admitted: number;
  /** Passed on to others. */
  readonly passedOn: number;
  /** Taken before: they count once. */
  readonly repeated: number;
}

export interface TakingSettings {
  readonly scope: CrawlScope;
  /** Hosts that the frontier does not hold and that may come in with this message. */
  readonly mostNewHosts: number;
  readonly now: Date;
}

/** The parent's side. Each method is one transaction. */
export interface ChildExchangeStore {
  /**
   * Takes what a child sends, lets go of what it has, and gives what waits for it. A text: it is refused, nothing was
   * changed but that it is remembered why.
   */
  answer(
    childId: number,
    message: Omit<ChildMessage, "urls"> & { readonly given: GivenUrls },
    settings: TakingSettings,
  ): Promise<
    | { readonly answer: ParentAnswer; readonly taken: TakenUrls; readonly newHosts: number }
    | { readonly refused: string }
  >;
}

/** The child's side. Each method is one transaction. */
export interface ParentExchangeStore {
  /**
   * What to send now: the same as before until it is acknowledged. `onlyUnderWay`: nothing gets a number yet. Null:
   * there is no parent.
   */
  message(onlyUnderWay: boolean): Promise<ChildMessage | null>;
  /** Lets go of what the parent has, and takes what it gives. A text: it cannot be the parent. */
  take(
    answer: Omit<ParentAnswer, "urls"> & { readonly given: GivenUrls },
    settings: TakingSettings,
  ): Promise<
    | { readonly taken: TakenUrls; readonly told: number; readonly waiting: boolean }
    | { readonly refused: string }
  >;
  /** It was not reached, or refuses. */
  fail(words: string, now: Date): Promise<void>;
}

export type ParentReply =
  | { readonly type: "answer"; readonly answer: ParentAnswer }
  | { readonly type: "refused"; readonly words: string }
  | { readonly type: "unreachable"; readonly words: string };

export interface ParentClient {
  exchange(message: ChildMessage): Promise<ParentReply>;
}

/** A related coordinator as the pages and the command show it; dates ISO 8601. */
export type RelatedCoordinator = ToldOf<typeof relatedCoordinator>;

export type Coordinators = ToldOf<typeof coordinators>;

export interface CoordinatorStore {
  list(now: Date): Promise<Coordinators>;
  /** False: the name is taken. */
  invite(child: {
    readonly name: string;
    readonly keyHash: string;
    readonly createdBy: string;
    readonly now: Date;
  }): Promise<boolean>;
  /** False: there is none of that name. What waits for it goes where it belongs then. */
  remove(name: string): Promise<boolean>;
  /** The child that shows this key. */
  childOf(keyHash: string): Promise<{ readonly childId: number; readonly name: string } | null>;
}
