/** A million published ranges, as many as are kept: what they take of memory, and a look-up of time. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type PublishedRanges, PublishedRangesBuilder } from "#coordinator/subnets/published-ranges";
import { seededRandom } from "#core/random";
import { figure } from "./figure.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const random = seededRandom(84);
const whole = (below: number) => Math.floor(random() * below);
const lookUps = 200_000;

function tell(name: string, value: number, unit: string): void {
  figure(name, value, unit);
  process.stdout.write(`${name}: ${value.toFixed(1)} ${unit}\n`);
}

const usedMegabytes = () => {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1e6;
};

/** Five clouds and three thousand geofeeds; four of five ranges are IPv4, /16 to /28. */
function build(ranges: number): PublishedRanges {
  const builder = new PublishedRangesBuilder();
  const lists = Array.from({ length: 3005 }, (_, at) =>
    builder.addList({
      ...{ source: `source ${at}`, kind: at < 5 ? ("aws" as const) : ("geofeed" as const) },
      ...{ isNamedByObjects: at >= 5, listDate: "2026-03-01", version: null },
    }),
  );
  for (let at = 0; at < ranges; at += 1) {
    const list = lists[whole(random() < 0.3 ? 5 : 3005)] as number;
    const said = { place: `DE city ${whole(20_000)}`, within: `45.${whole(256)}.0.0/16` };
    if (random() < 0.8) {
      const size = 2 ** (4 + whole(13));
      const first = Math.floor((2 ** 24 * (1 + whole(200)) + whole(2 ** 24)) / size) * size;
      builder.add(list, { family: 4, first, last: first + size - 1 }, said);
    } else {
      const first = (0x2a00n << 112n) | (BigInt(whole(2 ** 32)) << 80n);
      builder.add(list, { family: 6, first, last: first + (1n << 80n) - 1n }, said);
    }
  }
  return builder.build();
}

const before = usedMegabytes();
const startedAt = process.cpuUsage();
const published = build(1_000_000);
const { user, system } = process.cpuUsage(startedAt);
tell("published ranges, build a million", (user + system) / 1e6, "s");
tell("published ranges, memory of a million", usedMegabytes() - before, "MB");

for (const [name, size] of [
  ["a /24", 256],
  ["a /16", 65_536],
] as const) {
  const asked = Array.from(
    { length: lookUps },
    () => Math.floor((2 ** 24 * (1 + whole(200)) + whole(2 ** 24)) / size) * size,
  );
  let found = 0;
  const from = process.cpuUsage();
  for (const first of asked) found += published.of({ family: 4, first, last: first + size - 1 }).length;
  const took = process.cpuUsage(from);
  tell(`published ranges, look up ${name}`, (took.user + took.system) / lookUps, "µs");
  process.stdout.write(`${name}: ${(found / lookUps).toFixed(2)} sources speak\n`);
}
