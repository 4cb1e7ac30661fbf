/**
 * Whose turn it is among a crawler's subnets, as this coordinator remembers it: of which the latest hosts were, and how
 * far its subnets have been gone through. Lost with the process, which costs a subnet one turn at most.
 */
import type { PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import { prepared } from "../database/transaction.ts";
import { shareOf } from "./order/mix.ts";
import { hostsInARow } from "./subnet-share.ts";

/** Subnets that are looked into at a time. */
const subnetsAtATime = 64;

export class SubnetTurns {
  readonly #recent = new Map<CrawlerId, readonly string[]>();
  readonly #reached = new Map<CrawlerId, number>();
  readonly #carried = new Map<CrawlerId, number>();

  /** The subnets of the latest hosts, the latest last. */
  recentOf(crawlerId: CrawlerId): readonly string[] {
    return this.#recent.get(crawlerId) ?? [];
  }

  note(crawlerId: CrawlerId, subnets: readonly string[]): void {
    this.#recent.set(crawlerId, [...this.recentOf(crawlerId), ...subnets].slice(-hostsInARow));
  }

  /** The next of the crawler's subnets in turn, after the one reached; from the start again at the end. */
  async next(client: PoolClient, crawlerId: CrawlerId): Promise<number[]> {
    const reached = this.#reached.get(crawlerId) ?? 0;
    const { rows } = await prepared<{ subnet_id: number }>(
      client,
      `(select subnet_id from delegation where crawler_id = $1 and subnet_id > $2 order by subnet_id limit ${subnetsAtATime})
       union all
       (select subnet_id from delegation where crawler_id = $1 and subnet_id <= $2 order by subnet_id limit ${subnetsAtATime})`,
      [crawlerId, reached],
    );
    const ids = rows.map((row) => row.subnet_id).sort((a, b) => a - b);
    const [later, earlier] = [ids.filter((id) => id > reached), ids.filter((id) => id <= reached)];
    return [...later, ...earlier].slice(0, subnetsAtATime);
  }

  /** Of so many hosts those that go by their worth; what falls between two whole numbers is carried on. */
  byWorth(crawlerId: CrawlerId, hosts: number, share: number): number {
    const { slots, carry } = shareOf(hosts, share, this.#carried.get(crawlerId) ?? 0);
    this.#carried.set(crawlerId, carry);
    return slots;
  }

  reach(crawlerId: CrawlerId, subnetId: number): void {
    this.#reached.set(crawlerId, subnetId);
  }
}
