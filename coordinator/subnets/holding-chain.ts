/**
 * From every subnet that holds an address or a range to the chain of them: the most specific one (nest.ts
 * says which that is where ranges cross) and those above it.
 */
import type { IpRange } from "#core/ip/range";
import { columnsOf, compareSpecificity } from "./range-columns.ts";

export interface HoldingSubnet {
  readonly subnetId: number;
  readonly parentId: number | null;
  readonly range: IpRange;
}

/** From the least to the most specific; what holds it too, but crosses one of these, is not among them. */
export function holdingChain<Subnet extends HoldingSubnet>(holding: readonly Subnet[]): readonly Subnet[] {
  const columns = columnsOf(holding.map(({ range }) => range));
  const byId = new Map(holding.map((subnet) => [subnet.subnetId, subnet]));
  const [nearest] = holding.map((_, index) => index).sort((a, b) => compareSpecificity(columns, a, b));
  const chain: Subnet[] = [];
  let next = nearest === undefined ? undefined : holding[nearest];
  while (next !== undefined) {
    chain.unshift(next);
    // Taken out, so that parents that a fault made circular end too.
    byId.delete(next.subnetId);
    next = next.parentId === null ? undefined : byId.get(next.parentId);
  }
  return chain;
}
