/** What the models of this folder have in common: hosts, a round trip between any two, and an instance made of both. */
import type { SimulatedHost, SimulationInstance } from "#coordinator/delegation/simulation/simulation";

export interface InstanceSize {
  readonly crawlers: number;
  readonly sites: number;
  readonly seed: number;
}

export interface DrawnHost {
  /** What the last stretch to it takes, of a round trip. */
  readonly lastMileMs: number;
}

/** Symmetric, 0 from a crawler to itself; a target's row is made when it is read. */
export function instanceOf<Host extends SimulatedHost>(of: {
  readonly crawlers: readonly Host[];
  readonly targets: readonly Host[];
  readonly rttMs: (a: Host, b: Host) => number;
}): SimulationInstance {
  const { crawlers, targets, rttMs } = of;
  const crawlerRtt = crawlers.map(() => new Array<number>(crawlers.length).fill(0));
  crawlers.forEach((crawler, index) => {
    for (let other = 0; other < index; other++) {
      const ms = rttMs(crawlers[other]!, crawler);
      crawlerRtt[index]![other] = ms;
      crawlerRtt[other]![index] = ms;
    }
  });
  const host = ({ path, org, cc }: Host): SimulatedHost => ({ path, org, cc });
  return {
    crawlers: crawlers.map(host),
    crawlerRtt,
    targets: targets.map((target) => ({
      ...host(target),
      get rtt() {
        return Float64Array.from(crawlers, (crawler) => rttMs(crawler, target));
      },
    })),
  };
}
