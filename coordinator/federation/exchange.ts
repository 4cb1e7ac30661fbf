/** A child asks: its message is checked, taken and answered in one transaction, within what it may bring in a day. */
import { asCrawlerId } from "#core/ids";
import type { ChildMessage, ParentAnswer } from "#protocol/exchange";
import type { NewHostBudget } from "../frontier/budgets.ts";
import type { CrawlScope } from "../frontier/ports.ts";
import type { ChildExchangeStore, TakenUrls } from "./exchange-ports.ts";
import { readGivenUrls } from "./given-urls.ts";

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
