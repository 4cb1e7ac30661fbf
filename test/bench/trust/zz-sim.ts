import { simulateFleet } from "./simulated-fleet.ts";

const n = 40;
for (const [lie, steady] of [
  ["mixed", true],
  ["spam", false],
] as const) {
  const at: number[] = [];
  let inn = 0,
    extra = 0;
  for (let s = 0; s < n; s++) {
    const o = simulateFleet({
      seed: 400 + s,
      crawlers: 12,
      pagesEach: 2000,
      hostsEach: 120,
      liars: [{ crawler: 3, lie, share: 0.05, steady, fromPage: 0 }],
    });
    const a = o.accused.find((x) => x.crawler === 3);
    at.push(a?.atPage ?? Infinity);
    inn += o.accused.filter((x) => x.crawler !== 3).length;
    extra += o.extraShare / n;
  }
  at.sort((a, b) => a - b);
  console.log(lie, steady, at.filter((x) => x <= 2000).length / n, at[n >> 1], inn, extra);
}
