/** Reads the latest decided probe rounds with all answers, and where their subnets and the crawlers are in the tree. */
import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { Placement } from "../../../place/delegation/placement.ts";
import { decidedByMeasuring } from "../../../place/delegation/round-store.ts";
import type { SampledRounds } from "../change.ts";

/** Maximum depth of the tree; no registry nests deeper. */
const mostSteps = 100;

export async function sampledRounds(pool: Pool, most: number): Promise<SampledRounds> {
  const [{ rows: rounds }, { rows: crawlers }] = await Promise.all([
    pool.query<RoundRow>(latestRounds, [most]),
    pool.query<CrawlerRow>(candidates),
  ]);
  const subnetIds = [...rounds, ...crawlers].flatMap(({ subnetId }) => subnetId ?? []);
  const placements = await placementsOf(pool, subnetIds);
  return {
    crawlers: crawlers.map(({ crawlerId, subnetId }) => ({
      crawlerId,
      placement: placements.get(subnetId ?? 0) ?? apart(crawlerId),
    })),
    rounds: rounds.flatMap((row) => {
      const { subnetId, crawlerId, paidProbes } = row;
      const placement = placements.get(subnetId);
      return placement === undefined ? [] : [{ placement, crawlerId, paidProbes, rttsMs: answersOf(row) }];
    }),
  };
}

/** SQL: the latest round of each subnet, without anycast, which was assigned by load that no replay knows. */
const latestRounds = `
  with latest as (
    select distinct on (subnet_id) round_id, subnet_id, crawler_id, method
    from (
      select round_id, subnet_id, crawler_id, method
      from probe_round
      where ${decidedByMeasuring}
      order by round_id desc
      limit $1
    ) l
    order by subnet_id, round_id desc
  )
  select l.subnet_id as "subnetId", l.crawler_id as "crawlerId",
    count(*) filter (where p.how = 'probe')::int as "paidProbes",
    array_agg(p.crawler_id order by p.ordinal) as "crawlerIds",
    array_agg(case when p.method = l.method then p.rtt_ms end order by p.ordinal) as "rttsMs"
  from latest l
  join probe p on p.round_id = l.round_id
  group by l.round_id, l.subnet_id, l.crawler_id
  order by l.round_id`;

/** SQL: the crawlers that a round would probe now, and those that were probed recently. */
const candidates = `
  select crawler_id as "crawlerId", subnet_id as "subnetId"
  from crawler
  where revoked_at is null and state <> 'draining'
  order by crawler_id`;

interface RoundRow extends CrawlerRow {
  readonly subnetId: number;
  readonly paidProbes: number;
  readonly crawlerIds: readonly CrawlerId[];
  readonly rttsMs: readonly (number | null)[];
}

interface CrawlerRow {
  readonly crawlerId: CrawlerId;
  readonly subnetId: number | null;
}

/** If a crawler was probed twice, its lower RTT counts. */
function answersOf({ crawlerIds, rttsMs }: RoundRow): Map<CrawlerId, number | null> {
  const answers = new Map<CrawlerId, number | null>();
  crawlerIds.forEach((crawlerId, at) => {
    const rttMs = rttsMs[at] ?? null;
    const before = answers.get(crawlerId) ?? null;
    answers.set(crawlerId, before === null || rttMs === null ? (rttMs ?? before) : Math.min(before, rttMs));
  });
  return answers;
}

/** A crawler whose address is in no subnet shares nothing with any subnet. */
function apart(crawlerId: number): Placement {
  const subnetKey = `crawler ${crawlerId}`;
  return { subnetKey, holderKey: null, ancestorKeys: [], widerKeys: [], country: null, slash8Key: subnetKey };
}

interface PlaceRow {
  leaf: number;
  ids: number[];
  wide: boolean[];
  holder_id: number | null;
  country: string | null;
  slash8: number;
}

/** Reads them from the tree in the same way as delegation/placement.ts. */
async function placementsOf(pool: Pool, subnetIds: readonly number[]): Promise<Map<number, Placement>> {
  const { rows } = await pool.query<PlaceRow>(climb, [subnetIds]);
  return new Map(
    rows.map(({ leaf, ids, wide, holder_id, country, slash8 }) => {
      const above = ids.slice(1);
      return [
        leaf,
        {
          subnetKey: leaf,
          holderKey: holder_id,
          ancestorKeys: above.filter((_, at) => !wide[at + 1]),
          widerKeys: above.filter((_, at) => wide[at + 1]),
          country,
          slash8Key: slash8,
        },
      ];
    }),
  );
}

const climb = `
  with recursive up as (
    select subnet_id as leaf, subnet_id, parent_id, holder_id, country, first_address, last_address, 0 as step
    from subnet
    where subnet_id = any($1::int[])
    union all
    select up.leaf, s.subnet_id, s.parent_id, s.holder_id, s.country, s.first_address, s.last_address, up.step + 1
    from up
    join subnet s on s.subnet_id = up.parent_id
    where up.step < ${mostSteps}
  )
  select leaf,
    array_agg(subnet_id order by step) as ids,
    array_agg(case family(first_address)
        when 4 then last_address - first_address >= 16777215
        else masklen(inet_merge(first_address, last_address)) <= 16
      end order by step) as wide,
    (array_agg(holder_id order by step))[1] as holder_id,
    (array_agg(country order by step))[1] as country,
    (array_agg(case family(first_address)
        when 4 then split_part(host(first_address), '.', 1)::int
        else 256 + ('x' || lpad(split_part(host(first_address), ':', 1), 4, '0'))::bit(16)::int
      end order by step))[1] as slash8
  from up
  group by leaf`;
