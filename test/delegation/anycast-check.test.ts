/**
 * Five crawlers: two in Europe, two in East Asia, one in America. An anycast range has a machine beside each
 * group; a range of one machine is beside one of them.
 */
import { describe, expect, it } from "vitest";
import {
  type AnycastView,
  checkingCrawler,
  confirmingCrawler,
  provenAnycast,
} from "#coordinator/delegation/anycast-check";
import { id, peerTable } from "./rounds.ts";

const [athens, rome, seoul, tokyo, boston] = [1, 2, 3, 4, 5].map(id) as [
  ReturnType<typeof id>,
  ReturnType<typeof id>,
  ReturnType<typeof id>,
  ReturnType<typeof id>,
  ReturnType<typeof id>,
];
const countries = ["GR", "IT", "KR", "JP", "US"];
const peerRtts = peerTable([
  [0, 25, 280, 270, 120],
  [25, 0, 270, 260, 100],
  [280, 270, 0, 30, 180],
  [270, 260, 30, 0, 160],
  [120, 100, 180, 160, 0],
]);

const view = (differences: Partial<AnycastView> = {}): AnycastView => {
  const { answers = [] } = differences;
  return {
    crawlers: new Map(
      countries.map((country, index) => [id(index + 1), { crawlerId: id(index + 1), place: null, country }]),
    ),
    loadOf: () => 0,
    fleet: { candidates: [athens, rome, seoul, tokyo, boston], peerRtts },
    answers,
    asked: new Set(answers.map(({ crawlerId }) => crawlerId)),
    country: null,
    holder: null,
    isLarge: false,
    listed: null,
    ...differences,
  };
};
const from = (crawlerId: ReturnType<typeof id>, rttMs: number) => ({ crawlerId, rttMs });

describe("a check", () => {
  const fast = from(athens, 3);

  it("asks nobody where a range is registered in the country that answers fast", () => {
    expect(checkingCrawler(view({ answers: [fast], country: "GR" }), fast)).toBeNull();
  });

  it("asks nobody where the country is not known", () => {
    expect(checkingCrawler(view({ answers: [fast] }), fast)).toBeNull();
  });

  it("asks far away, in the country of the registration if somebody stands there", () => {
    expect(checkingCrawler(view({ answers: [fast], country: "US" }), fast)).toBe(boston);
    // Nobody stands in Brazil: the farthest tells most.
    expect(checkingCrawler(view({ answers: [fast], country: "BR" }), fast)).toBe(seoul);
  });

  it("is made wherever much waits, since it matters then who has the load", () => {
    expect(checkingCrawler(view({ answers: [fast], country: "GR", isLarge: true }), fast)).toBe(seoul);
  });

  it("asks nobody when the answer is as slow as one from another place", () => {
    const slow = from(athens, 20);

    expect(checkingCrawler(view({ answers: [slow], country: "US" }), slow)).toBeNull();
  });

  it("is made at once for a holder whose other ranges are anycast, and never for one that was clear", () => {
    expect(checkingCrawler(view({ answers: [fast], country: "GR", holder: true }), fast)).not.toBeNull();
    expect(checkingCrawler(view({ answers: [fast], country: "US", holder: false }), fast)).toBeNull();
  });

  it("is not needed where somebody far away was asked already", () => {
    const answers = [fast, from(tokyo, 250)];

    expect(checkingCrawler(view({ answers, country: "US" }), fast)).toBeNull();
  });

  it("of a holder that has others asks the one with the most room of those far away", () => {
    const loadOf = (crawlerId: number) => (crawlerId === tokyo ? 0.1 : 0.5);

    expect(checkingCrawler(view({ answers: [fast], holder: true, loadOf }), fast)).toBe(tokyo);
  });
});

describe("a contradiction", () => {
  const pair = [from(athens, 3), from(tokyo, 4)];

  it("is confirmed by somebody far from both, whose fast answer nobody alone can be at fault for", () => {
    expect(confirmingCrawler(view({ answers: pair }))).toBe(boston);
    const proven = provenAnycast(view({ answers: [...pair, from(boston, 8)] }));

    expect(proven).toMatchObject({
      confirmed: { crawlerId: boston, rttMs: 8 },
      evidence: { by: "peer-rtt" },
    });
  });

  it("proves nothing by itself", () => {
    expect(provenAnycast(view({ answers: pair }))).toBeNull();
  });

  it("is confirmed by neighbours of the two where nobody is far from both", () => {
    const { fleet } = view();
    const candidates = [athens, rome, seoul, tokyo];
    const twoRegions = {
      fleet: { ...fleet, candidates },
      crawlers: new Map([...view().crawlers].slice(0, 4)),
    };

    const first = confirmingCrawler(view({ ...twoRegions, answers: pair }));
    expect([rome, seoul]).toContain(first);
    const three = [...pair, from(seoul, 33)];
    expect(provenAnycast(view({ ...twoRegions, answers: three }))).toBeNull();
    expect(confirmingCrawler(view({ ...twoRegions, answers: three }))).toBe(rome);

    expect(provenAnycast(view({ ...twoRegions, answers: [...three, from(rome, 27)] }))).not.toBeNull();
  });

  it("is not confirmed where all contradictions have one crawler in common", () => {
    // Something beside tokyo answers for everybody; the target is in Athens.
    const answers = [...pair, from(rome, 27), from(seoul, 275), from(boston, 121)];

    expect(provenAnycast(view({ answers }))).toBeNull();
    expect(confirmingCrawler(view({ answers }))).toBeNull();
  });

  it("is looked for in vain among answers that one machine can give", () => {
    expect(confirmingCrawler(view({ answers: [from(athens, 3), from(tokyo, 268)] }))).toBeNull();
  });

  it("asks nobody when everybody was asked", () => {
    const answers = [...pair, from(rome, 300), from(seoul, 300), from(boston, 300)];

    expect(confirmingCrawler(view({ answers }))).toBeNull();
  });
});

describe("an anycast range", () => {
  it("goes to the crawler with the most room among those that answered fast", () => {
    const load = new Map([
      [athens, 0.4],
      [tokyo, 0.2],
      [seoul, 0.1],
      [boston, 0],
    ]);
    const loadOf = (crawlerId: (typeof answers)[number]["crawlerId"]) => load.get(crawlerId) ?? 1;
    const answers = [from(athens, 3), from(tokyo, 4), from(seoul, 12), from(boston, 20)];

    const proven = provenAnycast(view({ answers, loadOf }));

    expect(proven?.byLoad.map(({ crawlerId }) => crawlerId)).toEqual([seoul, tokyo, athens]);
  });
});
