/** The subnets beside a subnet, against a slow look through all of them. */
import { beforeAll, expect, it } from "vitest";
import { neighboursOf } from "#coordinator/tell/who/subnet-reads";
import { seededRandom } from "#core/random";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedWorld } from "../support/seed-world.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => await seedWorld(database.pool));

const ranges = (lines: readonly { range: string }[]) => lines.map(({ range }) => range);

it("finds those below the same subnet, with who crawls them, and not what is inside them", async () => {
  // 1.2.9.0 - 1.2.9.9: before it 1.2.3.0/24 (with 1.2.3.4 inside), after it nothing.
  const found = await neighboursOf(database.pool, 5, 2);

  expect(ranges(found!.before)).toEqual(["1.2.3.0/24"]);
  expect(found!.before[0]).toMatchObject({ crawler: "athens", inherited: true });
  expect(found).toMatchObject({ after: [], moreBefore: false, moreAfter: false });
});

it("keeps families of addresses apart at the top, and leaves out what was removed", async () => {
  expect(ranges((await neighboursOf(database.pool, 1, 2))!.after)).toEqual(["5.6.0.0/16"]);
  expect(await neighboursOf(database.pool, 7, 2)).toMatchObject({ before: [], after: [] });
  expect(await neighboursOf(database.pool, 8, 2)).toBeNull();
});

it("finds what a look through all of them finds, in random trees", async () => {
  const seed = 20_261_122;
  const random = seededRandom(seed);
  const below = (most: number) => Math.floor(random() * most);
  const address = (number: number) => `9.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
  interface Node {
    readonly id: number;
    readonly parent: number | null;
    readonly first: number;
    readonly last: number;
  }
  const nodes: Node[] = [];
  const grow = (parent: number | null, first: number, last: number, depth: number) => {
    for (let at = first + below(4); at < last; at += 1 + below(60)) {
      const end = Math.min(last, at + below(1 << (14 - 3 * depth)));
      // No child is the whole of its parent, and one address has none.
      if (parent !== null && at === first && end === last) continue;
      const id = 1000 + nodes.length;
      nodes.push({ id, parent, first: at, last: end });
      if (depth < 3 && end > at) grow(id, at, end, depth + 1);
      at = end;
    }
  };
  grow(null, 0, 40_000, 0);
  const column = (pick: (node: Node) => unknown) => nodes.map(pick);
  await database.pool.query(
    `insert into subnet (subnet_id, parent_id, first_address, last_address, registry, added_in)
     overriding system value
     select id, parent, first, last, 'arin', 1
     from unnest($1::int[], $2::int[], $3::inet[], $4::inet[]) given (id, parent, first, last)`,
    [
      column(({ id }) => id),
      column(({ parent }) => parent),
      column(({ first }) => address(first)),
      column(({ last }) => address(last)),
    ],
  );

  for (let tried = 0; tried < 60; tried++) {
    const node = nodes[below(nodes.length)]!;
    const siblings = nodes.filter(({ parent, id }) => parent === node.parent && id !== node.id);
    const before = siblings.filter(({ last }) => last < node.first).sort((a, b) => b.first - a.first);
    const after = siblings.filter(({ first }) => first > node.last).sort((a, b) => a.first - b.first);
    const found = await neighboursOf(database.pool, node.id, 2);

    const ids = (lines: readonly { subnetId: number }[]) =>
      lines.map(({ subnetId }) => subnetId).filter((id) => id >= 1000);
    const wanted = (list: readonly Node[]) => list.slice(0, 2).map(({ id }) => id);
    expect({ seed, node, before: ids(found!.before), after: ids(found!.after) }).toEqual({
      seed,
      node,
      before: wanted(before),
      after: wanted(after),
    });
  }
});
