/**
 * Very large worlds: a registry's /8s are filled by chance, and one may be asked to hold more than it can. Then
 * all that the registry gave out is spread anew, the largest first, each into the emptiest of its /8s.
 */
import { type PlannedBlock, type PlannedSubnet, sizeOf } from "./lay-out.ts";

/** Addresses planned in a /8 at most: alignment needs room of its own. */
const mostInBlock = 2 ** 23;

/** Addresses of a national registry's part at most; beyond that it gets several parts. */
const mostInPart = 2 ** 21;

/** Changes nothing where every block has room. */
export function relieveBlocks(blocks: readonly PlannedBlock[]): void {
  const registries = new Set(blocks.map(({ subnet }) => subnet.registry));
  for (const registry of registries) {
    const own = blocks.filter(({ subnet }) => subnet.registry === registry).map(({ subnet }) => subnet);
    if (own.some(({ children }) => filledBy(children) > mostInBlock)) spreadAnew(own);
  }
}

function spreadAnew(blocks: readonly PlannedSubnet[]): void {
  const parts = blocks.flatMap((block) => block.children.splice(0)).flatMap(splitNational);
  const sized = parts.map((part) => ({ part, size: sizeOf(part) })).sort((a, b) => b.size - a.size);
  const filled = blocks.map((block) => ({ block, size: 0 }));
  for (const { part, size } of sized) {
    const emptiest = filled.reduce((best, one) => (one.size < best.size ? one : best));
    emptiest.block.children.push(part);
    emptiest.size += size;
  }
}

function splitNational(subnet: PlannedSubnet): PlannedSubnet[] {
  if (subnet.kind !== "national" || subnet.children.length < 2 || sizeOf(subnet) <= mostInPart)
    return [subnet];
  const half = Math.ceil(subnet.children.length / 2);
  const [first, second] = [subnet.children.slice(0, half), subnet.children.slice(half)];
  return [
    ...splitNational({ ...subnet, children: first }),
    ...splitNational({ ...subnet, name: `${subnet.name}-${half}`, children: second }),
  ];
}

function filledBy(children: readonly PlannedSubnet[]): number {
  return children.reduce((sum, child) => sum + sizeOf(child), 0);
}
