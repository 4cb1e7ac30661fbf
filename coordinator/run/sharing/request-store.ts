/** Tables round_request and crawler_denies: what other coordinators leave for the leader. */
import type { Pool } from "pg";
import { arrivalLingerMs, Gathered } from "#core/coalesce";
import type { RoundCause } from "#core/explanation";
import { asCrawlerId, type CrawlerId, type SubnetId } from "#core/ids";
import type { CrawlerHello } from "#protocol/messages";

const mostRequests = 5000;

export async function leaveRequests(
  pool: Pool,
  subnetIds: readonly SubnetId[],
  cause: RoundCause,
): Promise<void> {
  await pool.query(
    `insert into round_request (subnet_id, cause)
     select subnet_id, $2
     from unnest($1::int[]) as given (subnet_id)
     order by subnet_id
     on conflict (subnet_id) do nothing`,
    [[...new Set(subnetIds)], cause],
  );
}

export async function takeRequests(pool: Pool): Promise<{ subnetId: SubnetId; cause: RoundCause }[]> {
  const { rows } = await pool.query<{ subnetId: SubnetId; cause: RoundCause }>(
    `delete from round_request
     where subnet_id in (select subnet_id from round_request order by asked_at limit ${mostRequests})
     returning subnet_id as "subnetId", cause`,
  );
  return rows;
}

type Denies = CrawlerHello["denies"];

interface DeniesOf {
  readonly crawlerId: CrawlerId;
  readonly denies: Denies;
}

const mostTogether = 200;

/** Stores the deny lists of hellos. If a crawler has no list, and had none, nothing is written. */
export class DenyLists {
  readonly #pool: Pool;
  /** Crawlers that have a row, as far as this coordinator knows. */
  readonly #kept = new Set<CrawlerId>();
  readonly #saving: Gathered<DeniesOf, null>;

  constructor(pool: Pool) {
    this.#pool = pool;
    this.#saving = new Gathered(
      async (given) => {
        await save(pool, given);
        return given.map(() => null);
      },
      mostTogether,
      arrivalLingerMs,
    );
  }

  async save(crawlerId: CrawlerId, denies: Denies): Promise<void> {
    const isEmpty = (denies?.networks.length ?? 0) + (denies?.domains.length ?? 0) === 0;
    if (isEmpty && !this.#kept.has(crawlerId)) return;
    await this.#saving.ask({ crawlerId, denies: isEmpty ? undefined : denies });
    if (isEmpty) this.#kept.delete(crawlerId);
    else this.#kept.add(crawlerId);
  }

  async read(crawlerIds: readonly CrawlerId[] | null): Promise<Map<CrawlerId, Denies>> {
    const { rows } = await this.#pool.query<{ crawler_id: number; denies: Denies }>(
      `select crawler_id, denies
       from crawler_denies
       ${crawlerIds === null ? "" : "where crawler_id = any($1)"}`,
      crawlerIds === null ? [] : [crawlerIds],
    );
    const lists = new Map(rows.map((row) => [asCrawlerId(row.crawler_id), row.denies]));
    for (const crawlerId of crawlerIds ?? []) this.#kept.delete(crawlerId);
    for (const crawlerId of lists.keys()) this.#kept.add(crawlerId);
    return lists;
  }
}

async function save(pool: Pool, given: readonly DeniesOf[]): Promise<void> {
  const latest = new Map(given.map((one) => [one.crawlerId, one.denies]));
  const listed = [...latest].filter(([, denies]) => denies !== undefined);
  await pool.query(
    `with gone as (
       delete from crawler_denies where crawler_id = any($1)
     )
     insert into crawler_denies as d (crawler_id, denies)
     select crawler_id, denies
     from jsonb_to_recordset($2) as given (crawler_id int, denies jsonb)
     where exists (select from crawler c where c.crawler_id = given.crawler_id)
     order by crawler_id
     on conflict (crawler_id) do update set denies = excluded.denies where d.denies <> excluded.denies`,
    [
      [...latest].filter(([, denies]) => denies === undefined).map(([crawlerId]) => crawlerId),
      JSON.stringify(listed.map(([crawlerId, denies]) => ({ crawler_id: crawlerId, denies }))),
    ],
  );
}
