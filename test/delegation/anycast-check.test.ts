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
} from "#coordinator/place/delegation/anycast-check";
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

const fast = from(athens, 3);

it.each<[string, Partial<AnycastView>, number | null]>([
  ["asks nobody where a range is registered in the country that answers fast", { country: "GR" }, null],
  ["asks nobody where the country is not known", {}, null],
  ["asks far away, in the country of the registration if somebody stands there", { country: "US" }, boston],
  ["asks the farthest, who tells most, where nobody stands in that country", { country: "BR" }, seoul],
  ["is made wherever much waits: it matters then who has the load", { country: "GR", isLarge: true }, seoul],
  [
    "asks nobody when the answer is as slow as one from another place",
    { country: "US", answers: [from(athens, 20)] },
    null,
  ],
  ["is made at once for a holder whose other ranges are anycast", { country: "GR", holder: true }, seoul],
  ["is never made for a holder that was clear", { country: "US", holder: false }, null],
  [
    "is not needed where somebody far away was asked already",
    { country: "US", answers: [fast, from(tokyo, 250)] },
    null,
  ],
  [
    "of a holder that has others asks the one with the most room of those far away",
    { holder: true, loadOf: (crawlerId) => (crawlerId === tokyo ? 0.1 : 0.5) },
    tokyo,
  ],
])("a check %s", (_, differences, asked) => {
  const { answers = [fast] } = differences;

  expect(checkingCrawler(view({ ...differences, answers }), answers[0]!)).toBe(asked);
});

describe("a contradiction", () => {
  const pair = [from(athens, 3), from(tokyo, 4)];

  it("is confirmed by somebody far from both, whose fast answer nobody alone can be at fault for", () => {
    expect(provenAnycast(view({ answers: pair }))).toBeNull();
    expect(confirmingCrawler(view({ answers: pair }))).toBe(boston);
    const proven = provenAnycast(view({ answers: [...pair, from(boston, 8)] }));

    expect(proven).toMatchObject({
      confirmed: { crawlerId: boston, rttMs: 8 },
      evidence: { by: "peer-rtt" },
    });
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

  it.each([
    ["among answers that one machine can give", [from(athens, 3), from(tokyo, 268)]],
    ["when everybody was asked", [...pair, from(rome, 300), from(seoul, 300), from(boston, 300)]],
  ])("is looked for in vain %s", (_, answers) => {
    expect(confirmingCrawler(view({ answers }))).toBeNull();
  });
});

describe("an anycast range", () => {
  it("goes to the crawler with the most room among those that answered fast", () => {
    const loadOf = (crawlerId: number) => [0.4, 1, 0.1, 0.2, 0][crawlerId - 1]!;
    const answers = [from(athens, 3), from(tokyo, 4), from(seoul, 12), from(boston, 20)];

    const proven = provenAnycast(view({ answers, loadOf }));

    expect(proven?.byLoad.map(({ crawlerId }) => crawlerId)).toEqual([seoul, tokyo, athens]);
  });
});
