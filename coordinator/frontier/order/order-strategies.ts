/** The strategies that an operator can choose from (policy `frontier.order`), the default first. */
import { anansi } from "./anansi.ts";
import { backLinks } from "./back-links.ts";
import { breadthFirst } from "./breadth-first.ts";
import { freshness } from "./freshness.ts";
import { pageRank } from "./page-rank.ts";
import type { OrderStrategy } from "./strategies.ts";

export const orderNames = ["breadth-first", "back-links", "anansi", "pagerank", "freshness"] as const;

export type OrderName = (typeof orderNames)[number];

const strategies: Readonly<Record<OrderName, OrderStrategy>> = {
  "breadth-first": breadthFirst,
  "back-links": backLinks,
  anansi,
  pagerank: pageRank,
  freshness,
};

/** What is in force (policies `frontier.order` and `frontier.newShare`). */
export interface FrontierOrder {
  readonly name: OrderName;
  /** Of a lease the share for new URLs (Anansi's α, equation 5.1), where the strategy mixes new and old. */
  readonly newShare: number;
  /** Of the hosts that a crawler is handed the share that goes by their best due URL (host-turns); 0 when left out. */
  readonly worthShare?: number;
}

/** Of the policies of section frontier what the order is. */
export function frontierOrder(policies: {
  readonly order: OrderName;
  readonly newShare: number;
  readonly worthShare: number;
}): FrontierOrder {
  const { order: name, newShare, worthShare } = policies;
  return { name, newShare, worthShare };
}

export function orderStrategy(name: OrderName): OrderStrategy {
  return strategies[name];
}

/** 0 where a strategy goes by turns alone. */
export function worthShareOf(order: FrontierOrder | undefined): number {
  if (order === undefined || !orderStrategy(order.name).mixesNewAndOld) return 0;
  return order.worthShare ?? 0;
}
