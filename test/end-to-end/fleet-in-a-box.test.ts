/** The fleet in a box (test/lab/fleet.bench.ts), small: what it measures is a fleet that works. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { FleetBox } from "../lab/fleet/box.ts";
import { FigureList } from "../lab/fleet/figures.ts";
import { Histogram } from "../lab/fleet/histogram.ts";
import { steps } from "../lab/fleet/steps.ts";
import { addressText, crawlerBlock, folderOf, placeOf, rttMs, targetBlock } from "../lab/fleet/world.ts";
import { builtDoors } from "../support/built-command.ts";

const crawlers = 20;
const settings = {
  ...{ stormSeconds: 110, stormOverSeconds: 0, restSeconds: 0, idleSeconds: 1, workSeconds: 60 },
  ...{ busyShare: 0.2, workHosts: 30, urlsPerHost: 2, roundsSeconds: 60 },
};
/** A coordinator's start takes seconds, and a busy machine ten times as long. */
const mostMs = 300_000;
let box: FleetBox;

beforeAll(async () => {
  await builtDoors();
  box = await FleetBox.open({
    built: true,
    ...{ crawlers, subnetsPerCrawler: 2, freeSubnets: 4, concurrentHosts: 8, fetchMs: 1 },
    coordinator: { delegation: { settleSeconds: 0 } },
    say: () => {},
  });
}, mostMs);
afterAll(async () => await box?.close());

async function after(name: keyof typeof steps): Promise<(figure: string) => number | null | undefined> {
  const list = new FigureList();
  await steps[name](box, settings, list);
  return (figure) => list.figures.find((one) => one.name === figure)?.value;
}

async function numberOf(sql: string): Promise<number> {
  const { rows } = await box.pool.query<{ number: number }>(sql);
  return rows[0]!.number;
}

it("lets all crawlers in, each with its identity and a subnet of its own", async () => {
  const figure = await after("storm");

  expect(figure("up at the end")).toBe(crawlers);
  expect(figure("100 % up after")).toBeGreaterThan(0);
  expect(figure("sessions lost")).toBe(0);
  expect(await numberOf("select count(*)::int as number from delegation where cause = 'own-subnet'")).toBe(
    crawlers,
  );
});

it("stores a page for each due URL, and none is asked for twice", async () => {
  const figure = await after("work");

  expect(figure("sessions lost")).toBe(0);
  expect(await numberOf("select count(*)::int as number from page")).toBe(60);
  expect(box.tally.counts.results).toBe(60);
});

it("decides by probes whose the free subnets are, and measures what the world says", async () => {
  const figure = await after("rounds");

  expect(figure("decided")).toBe(1);
  const { rows } = await box.pool.query<{ address: string; name: string; rtt: number }>(
    `select host(target_address) as address, name, rtt_ms as rtt
     from probe_round
     join probe p using (round_id)
     join crawler c on c.crawler_id = p.crawler_id`,
  );
  expect(rows.length).toBeGreaterThanOrEqual(4);
  for (const { address, name, rtt } of rows) {
    const expectedMs = rttMs(folderOf(Number(name.split("-")[1])).place, placeOf(address));
    expect(rtt).toBeGreaterThan(expectedMs - 0.1);
    expect(rtt).toBeLessThan(expectedMs + 0.7);
  }
});

it(
  "comes back when every connection breaks at once, and when the coordinator is killed",
  async () => {
    const { lost } = box.tally.counts;
    box.tellSessions({ type: "drop" });
    const isBack = () => box.tally.counts.lost === lost + crawlers && box.tally.counts.up === crawlers;
    expect(await box.until(isBack, 110, () => "")).toBe(true);

    const figure = await after("restart");

    expect(figure("up at the end")).toBe(crawlers);
    expect(figure("gave up for good")).toBe(0);
  },
  mostMs,
);

it("gives every crawler and target a place of its own", () => {
  expect(addressText(crawlerBlock(16) + 1)).toBe("20.1.0.1");
  expect(addressText(targetBlock(1))).toBe("30.0.16.0");
  expect(placeOf("30.0.16.9")).toEqual(placeOf("30.0.31.254"));
  expect(placeOf("30.0.16.9")).not.toEqual(placeOf("30.0.32.9"));
  expect(rttMs({ latitude: 0, longitude: 0 }, { latitude: 0, longitude: 180 })).toBeCloseTo(322, 0);
});

it("adds up times of several processes within 5 %", () => {
  const [here, there] = [new Histogram(), new Histogram()];
  for (let ms = 1; ms <= 100; ms += 1) (ms % 2 ? here : there).add(ms);
  here.merge(there.take());

  expect(here.total).toBe(100);
  expect(here.at(0.5)).toBeGreaterThan(47);
  expect(here.at(0.5)).toBeLessThan(53);
  expect(here.at(1)).toBe(100);
  expect(there.at(0.5)).toBeNull();
});
