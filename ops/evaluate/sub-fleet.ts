/** A world with only some of its crawlers: how a measured instance of twelve becomes fleets of four. */

import type { World } from "../world/model.ts";
import { SeededRandom } from "../world/seeded-random.ts";

/** `count` crawlers drawn by the seed, in their order; all of them where the world has no more. */
export function subFleet(world: World, count: number, seed: number): World {
  if (count >= world.crawlers.length) return world;
  const random = new SeededRandom(seed);
  const left = world.crawlers.map((_, index) => index);
  while (left.length > count) left.splice(random.integer(0, left.length - 1), 1);
  return {
    ...world,
    crawlers: left.map((index) => world.crawlers[index]!),
    rttMs: (crawler, address) => world.rttMs(left[crawler] ?? -1, address),
    rttRow: (site, into) => {
      const row = new Float64Array(world.crawlers.length);
      world.rttRow(site, row);
      left.forEach((index, position) => {
        into[position] = row[index]!;
      });
    },
    crawlerRttMs: (a, b) => world.crawlerRttMs(left[a]!, left[b]!),
  };
}
