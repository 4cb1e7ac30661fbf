/**
 * What an import does to delegations. A delegation is kept when its subnet stays. When its subnet goes, the
 * addresses fall to the next less specific subnet: moved, when that one or one above it is delegated; lost,
 * when nobody above has them, and the next URL there starts a probe round.
 */
import type { PoolClient } from "pg";
import { formatRange, type IpRange } from "#core/ip/range";
import { nest } from "#core/subnet/nest";
import { emptyColumns, rangeAt, writeRange } from "#core/subnet/range-columns";
import type { FamilyState, RegistryState } from "../tree/registry-state.ts";
import { rangeFrom } from "./range-text.ts";

export interface DelegationSample {
  readonly range: string;
  readonly from: string;
  /** The crawler that has the addresses afterwards, and through which subnet; null when lost. */
  readonly to: string | null;
  readonly through: string | null;
}

export interface DelegationChanges {
  readonly kept: number;
  /** Delegations that come back into force with a returned subnet. */
  readonly returned: number;
  readonly moved: number;
  readonly lost: number;
  readonly movedSamples: readonly DelegationSample[];
  readonly lostSamples: readonly DelegationSample[];
}

export async function compareDelegations(
  client: PoolClient,
  state: RegistryState,
  limit: number,
): Promise<DelegationChanges> {
  const owners = await readOwners(client);
  const removed = await readRemoved(client);
  const samples = [
    ...placeRemoved({ family: 4, state: state.ipv4, offset: 0, owners, removed }),
    ...placeRemoved({ family: 6, state: state.ipv6, offset: state.ipv4.columns.count, owners, removed }),
  ];
  const moved = samples.filter(({ to }) => to !== null);
  const lost = samples.filter(({ to }) => to === null);
  const returned = [...owners.values()].filter(({ isReturned }) => isReturned).length;
  return {
    kept: owners.size - returned,
    returned,
    moved: moved.length,
    lost: lost.length,
    movedSamples: moved.slice(0, limit),
    lostSamples: lost.slice(0, limit),
  };
}

interface Owner {
  readonly crawler: string;
  readonly isReturned: boolean;
}

/** Delegated subnets that are in the wanted state, by ordinal. */
async function readOwners(client: PoolClient): Promise<ReadonlyMap<number, Owner>> {
  const { rows } = await client.query<{ ordinal: number; crawler: string; is_returned: boolean }>(`
    select m.ordinal, k.name as crawler, m.is_returned
    from delegation d
    join staged_match m using (subnet_id)
    join crawler k using (crawler_id)`);
  return new Map(rows.map((row) => [row.ordinal, { crawler: row.crawler, isReturned: row.is_returned }]));
}

interface RemovedDelegation {
  readonly range: IpRange;
  readonly crawler: string;
}

async function readRemoved(client: PoolClient): Promise<readonly RemovedDelegation[]> {
  const { rows } = await client.query<{ first: string; last: string; crawler: string }>(`
    select host(r.first_address) as first, host(r.last_address) as last, k.name as crawler
    from delegation d
    join staged_removed r using (subnet_id)
    join crawler k using (crawler_id)
    order by r.first_address, r.last_address desc`);
  return rows.map((row) => ({ range: rangeFrom(row.first, row.last), crawler: row.crawler }));
}

interface FamilyWork {
  readonly family: 4 | 6;
  readonly state: FamilyState;
  /** Ordinal of the family's first subnet. */
  readonly offset: number;
  readonly owners: ReadonlyMap<number, Owner>;
  readonly removed: readonly RemovedDelegation[];
}

/** The removed ranges are nested together with the wanted ones: their wanted ancestors say who has them now. */
function placeRemoved(work: FamilyWork): readonly DelegationSample[] {
  const removed = work.removed.filter(({ range }) => range.family === work.family);
  if (removed.length === 0) return [];
  const { columns } = work.state;
  const both = emptyColumns(work.family, columns.count + removed.length);
  both.first.set(columns.first);
  both.last.set(columns.last);
  removed.forEach(({ range }, index) => {
    writeRange(both, columns.count + index, range);
  });
  const { parents } = nest(both);
  return removed.map(({ range, crawler }, index) => {
    const heir = heirOf(work, parents, columns.count + index);
    return {
      range: formatRange(range),
      from: crawler,
      to: heir?.crawler ?? null,
      through: heir?.through ?? null,
    };
  });
}

function heirOf(
  work: FamilyWork,
  parents: Int32Array,
  start: number,
): { crawler: string; through: string } | null {
  const { columns } = work.state;
  for (let at = parents[start] as number; at >= 0; at = parents[at] as number) {
    const owner = at < columns.count ? work.owners.get(work.offset + at) : undefined;
    if (owner) return { crawler: owner.crawler, through: formatRange(rangeAt(columns, at)) };
  }
  return null;
}
