/**
 * What an import does to delegations. A delegation is kept when its subnet stays. When its subnet goes, the
 * addresses fall to the next less specific subnet: inherited, when that one or one above it is delegated;
 * lost, when nobody above has them, and the next URL there starts a probe round.
 */
import type { PoolClient } from "pg";
import { compareSpecificity, rangeAt } from "#coordinator/subnets/range-columns";
import { formatRange, type IpRange } from "#core/ip/range";
import { HoldingRanges } from "../holding-ranges.ts";
import { changeKinds, type FamilyDifference, type TreeDifference } from "./tree-difference.ts";

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
  readonly inherited: number;
  readonly lost: number;
  readonly inheritedSamples: readonly DelegationSample[];
  readonly lostSamples: readonly DelegationSample[];
}

export async function compareDelegations(
  client: PoolClient,
  difference: TreeDifference,
  limit: number,
): Promise<DelegationChanges> {
  const crawlers = await readDelegations(client);
  const families = [difference.ipv4, difference.ipv6].map((family) => ownersIn(family, crawlers));
  const moves = families.flatMap(({ moves }) => moves);
  const inherited = moves.filter(({ to }) => to !== null);
  const lost = moves.filter(({ to }) => to === null);
  return {
    kept: families.reduce((sum, { kept }) => sum + kept, 0),
    returned: families.reduce((sum, { returned }) => sum + returned, 0),
    inherited: inherited.length,
    lost: lost.length,
    inheritedSamples: inherited.slice(0, limit),
    lostSamples: lost.slice(0, limit),
  };
}

/** Name of the crawler by the subnet's id. */
async function readDelegations(client: PoolClient): Promise<ReadonlyMap<number, string>> {
  const { rows } = await client.query<{ subnet_id: number; crawler: string }>(
    "select d.subnet_id, k.name as crawler from delegation d join crawler k using (crawler_id)",
  );
  return new Map(rows.map(({ subnet_id, crawler }) => [subnet_id, crawler]));
}

function ownersIn(family: FamilyDifference, crawlers: ReadonlyMap<number, string>) {
  const owners = new Map<number, string>();
  let returned = 0;
  family.ids.forEach((id, place) => {
    const crawler = family.rows[place] === -1 ? undefined : crawlers.get(id);
    if (crawler === undefined) return;
    owners.set(place, crawler);
    if (changeKinds[family.kinds[place] as number] === "returned") returned += 1;
  });
  return { kept: owners.size - returned, returned, moves: movesOf(family, owners, crawlers) };
}

/** Who has the addresses of the removed subnets that were delegated. */
function movesOf(
  family: FamilyDifference,
  owners: ReadonlyMap<number, string>,
  crawlers: ReadonlyMap<number, string>,
): readonly DelegationSample[] {
  const { current, removed } = family;
  const delegated = removed.filter((row) => crawlers.has(current.ids[row] as number));
  if (delegated.length === 0) return [];
  const holding = new HoldingRanges(family.wanted.columns);
  return Array.from(delegated, (row) => {
    const range = rangeAt(current.columns, row);
    const heir = heirOf(family, holding, range, owners);
    return {
      range: formatRange(range),
      from: crawlers.get(current.ids[row] as number) as string,
      to: heir === null ? null : (owners.get(heir) as string),
      through: heir === null ? null : formatRange(rangeAt(family.wanted.columns, heir)),
    };
  });
}

/** The most specific subnet above the range that is delegated. */
function heirOf(
  { wanted }: FamilyDifference,
  holding: HoldingRanges,
  range: IpRange,
  owners: ReadonlyMap<number, string>,
): number | null {
  const [nearest] = holding.holdersOf(range).sort((a, b) => compareSpecificity(wanted.columns, a, b));
  for (let place = nearest ?? -1; place >= 0; place = wanted.parents[place] as number) {
    if (owners.has(place)) return place;
  }
  return null;
}
