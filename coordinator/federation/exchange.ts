/** A child asks: its message is checked, taken and answered in one transaction, within what it may bring in a day. */
import { asCrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { ChildMessage, ParentAnswer } from "#protocol/exchange";
import type { NewHostBudget } from "../frontier/budgets.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import type {
  ChildExchangeStore,
  ParentClient,
  ParentExchangeStore,
  TakenUrls,
  TakingSettings,
} from "./exchange-ports.ts";
import { readGivenUrls } from "./settings.ts";

export interface AnswerChildPorts {
  readonly store: ChildExchangeStore;
  readonly scope: () => CrawlScope;
  /** Hosts that nobody knew, per child and day: as many as a crawler's results may name. */
  readonly newHosts: NewHostBudget;
  readonly onTaken: (taken: TakenUrls) => void;
}

export async function answerChild(
  childId: number,
  message: ChildMessage,
  ports: AnswerChildPorts,
  now: Date,
): Promise<{ readonly answer: ParentAnswer } | { readonly refused: string }> {
  const { urls, ...rest } = message;
  const given = readGivenUrls(urls);
  if (typeof given === "string") return { refused: given };
  // A budget of its own, in which children are numbered as crawlers are in theirs.
  const budgetId = asCrawlerId(childId);
  const mostNewHosts = Math.min(ports.newHosts.left(budgetId, now), 2 ** 31 - 1);
  const settings = { scope: ports.scope(), mostNewHosts, now };
  const answered = await ports.store.answer(childId, { ...rest, given }, settings);
  if ("refused" in answered) return answered;
  ports.newHosts.spend(budgetId, answered.newHosts, now);
  ports.onTaken(answered.taken);
  return { answer: answered.answer };
}

// A coordinator asks its parent: what belongs to others goes up, what is its own comes down, one exchange after the
// other while anything waits on either side. Without an answer it tries again later, each time later, and nothing is
// lost meanwhile: the same numbers are sent until they are acknowledged.

interface AskParentPorts {
  readonly store: ParentExchangeStore;
  readonly client: ParentClient;
  readonly taking: () => TakingSettings;
  /** 0 to 1. */
  readonly random: () => number;
  readonly onTaken: (taken: TakenUrls, told: number) => void;
  readonly log: Log;
}

interface AskParentSettings {
  /** How often the parent is asked while nothing waits. */
  readonly everyMs: number;
}

/** The longest pause of a child whose parent is away. */
const longestPauseMs = 300_000;

/** Exchanges in one turn: whoever stops the coordinator waits for one turn. */
const mostExchanges = 50;

export type TurnOutcome = "done" | "more" | "no-parent" | "failed";

export class AskParent {
  readonly #ports: AskParentPorts;
  readonly #settings: AskParentSettings;
  /** In a row. */
  #failures = 0;
  /** The parent has answered since this process started. */
  #hasAnswer = false;

  constructor(ports: AskParentPorts, settings: AskParentSettings) {
    this.#ports = ports;
    this.#settings = settings;
  }

  /** Until the next turn: doubled with each failure, and up to half as long again, so that children do not come in step. */
  nextMs(): number {
    const { everyMs } = this.#settings;
    if (this.#failures === 0) return everyMs;
    const pauseMs = Math.min(longestPauseMs, everyMs * 2 ** Math.min(this.#failures - 1, 20));
    return pauseMs * (1 + this.#ports.random() / 2);
  }

  async turn(): Promise<TurnOutcome> {
    for (let exchanges = 0; exchanges < mostExchanges; exchanges += 1) {
      const outcome = await this.#exchange();
      if (outcome !== "more") return outcome;
    }
    return "more";
  }

  async #exchange(): Promise<TurnOutcome> {
    const { store, client, taking, onTaken } = this.#ports;
    // A database that was restored from a copy knows its numbers, which the parent took for other URLs: it hears first.
    const message = await store.message(!this.#hasAnswer);
    if (message === null) return "no-parent";
    const reply = await client.exchange(message);
    if (reply.type === "unreachable") return await this.#fail(reply.words, "unreachable");
    if (reply.type === "refused") return await this.#fail(reply.words, "refused");
    const given = readGivenUrls(reply.answer.urls);
    if (typeof given === "string") return await this.#fail(`its answer makes no sense: ${given}`, "refused");
    const { urls: _, ...answer } = reply.answer;
    const result = await store.take({ ...answer, given }, taking());
    if ("refused" in result) return await this.#fail(result.refused, "refused");
    if (this.#failures > 0)
      this.#ports.log.info({ failures: this.#failures }, "the parent coordinator answers again");
    this.#failures = 0;
    this.#hasAnswer = true;
    onTaken(result.taken, result.told);
    return result.waiting ? "more" : "done";
  }

  async #fail(words: string, why: "unreachable" | "refused"): Promise<TurnOutcome> {
    const { store, log, taking } = this.#ports;
    this.#failures += 1;
    if (this.#failures === 1)
      log.warn({ why, words }, "the parent coordinator takes nothing; what is its waits");
    await store.fail(
      why === "refused" ? `it refuses: ${words}` : `it is not reached: ${words}`,
      taking().now,
    );
    return "failed";
  }
}
