/**
 * Whether it pays to know more of where a subnet lies than registries say: two labels that anybody can gather. Delegates generated worlds with and without, the same sites in the same order. Run: npm run bench --
 * place-labels; or with the number of seeds and of sites.
 *
 * The labels are modelled by what a policy would get of them:
 *
 * - cdn: what a CDN or a hosting network answers to the same questions from the same vantage points tells which prefixes
 *   it takes for one place ("cluster 17"). It names no city, and two neighbouring cities may be one cluster.
 * - reverse-names: airport codes in the names of routers and hosts ("ATH"). They name a city, and are missing or stale.
 *
 * Each says something of a share of the subnets (coverage), and something wrong of a share of those (error: another place,
 * drawn as likely as places have sites). A subnet has one label of each source, whatever sites it has.
 */
import type { PublishedPlace } from "#coordinator/delegation/placement";
import {
  type SimulatedTarget,
  type SimulationInstance,
  simulateDelegation,
} from "#coordinator/delegation/simulation/simulation";
import { formatTable } from "#ops/cli/output";
import { worldInstance } from "#ops/simulate/repeat-policies";
import { generateWorld } from "#ops/world/generate-world";
import type { World } from "#ops/world/model";
import { hashUnit } from "#ops/world/seeded-random";

const seeds = Number(process.argv[2] ?? 6);
const sites = Number(process.argv[3] ?? 1000);
const fleets = [12, 50, 200];

interface LabelModel {
  readonly source: "geofeed" | "cdn" | "reverse-names";
  readonly coverage: number;
  readonly error: number;
}

interface Variant {
  readonly name: string;
  readonly labels: readonly LabelModel[];
}

const both = (coverage: number, error: number): readonly LabelModel[] => [
  { source: "cdn", coverage, error },
  { source: "reverse-names", coverage: coverage / 2, error },
];

const variants: readonly Variant[] = [
  { name: "registry alone", labels: [] },
  ...[0, 0.1, 0.3].map((error) => ({
    name: `geofeed 60 %, ${100 * error} % wrong`,

    labels: [{ source: "geofeed", coverage: 0.6, error }] as const,
  })),
  ...(
    [
      [0.2, 0],
      [0.2, 0.3],
      [0.4, 0.15],
      [0.6, 0],
      [0.6, 0.15],
      [0.6, 0.3],
    ] as const
  ).map(([coverage, error]) => ({
    name: `cdn ${100 * coverage} %, ${100 * error} % wrong`,

    labels: [{ source: "cdn", coverage, error }] as const,
  })),
  {
    name: "reverse names 20 %, 15 % wrong",

    labels: [{ source: "reverse-names", coverage: 0.2, error: 0.15 }],
  },
  { name: "cdn 40 %, names 20 %, 15 % wrong", labels: both(0.4, 0.15) },
];

for (const crawlers of fleets) {
  const rows = variants.map(() => ({ within: 0, probes: 0, excess: 0, changes: [] as number[] }));
  for (let seed = 1; seed <= seeds; seed += 1) {
    const world = generateWorld({ seed, sites, crawlers });
    const bare = worldInstance(world);
    let first: number | null = null;
    for (const [index, variant] of variants.entries()) {
      const instance = labelled(bare, world, variant);
      const result = simulateDelegation(instance, { policy: "nearest", seed });
      const row = rows[index]!;
      first ??= result.within5msPct;
      row.within += result.within5msPct / seeds;
      row.probes += result.probesPerUrl / seeds;
      row.excess += result.meanExcessMs / seeds;
      row.changes.push(result.within5msPct - first);
    }
  }
  const [base] = rows;
  console.log(
    `\n${crawlers} crawlers, ${sites} sites, mean over ${seeds} worlds (seeds 1 to ${seeds}), policy nearest`,
  );
  console.log(
    formatTable(
      [
        { title: "known besides" },
        { title: "within 5 ms", align: "right" },
        { title: "points", align: "right" },
        { title: "worlds better / worse", align: "right" },
        { title: "mean excess ms", align: "right" },
        { title: "probes per URL", align: "right" },
        { title: "change", align: "right" },
      ],
      rows.map(({ within, probes, excess, changes }, index) => [
        variants[index]!.name,
        `${within.toFixed(2)} %`,
        (within - base!.within).toFixed(2),
        `${changes.filter((one) => one > 0).length} / ${changes.filter((one) => one < 0).length}`,
        excess.toFixed(2),
        probes.toFixed(3),
        `${((100 * (probes - base!.probes)) / base!.probes).toFixed(1)} %`,
      ]),
    ),
  );
}

function labelled(bare: SimulationInstance, world: World, { labels }: Variant): SimulationInstance {
  const targets = bare.targets.map((target, site): SimulatedTarget => {
    const published = labels.flatMap((model) => labelOf(world, site, model));
    const { path, org, cc } = target;
    return {
      path,
      org,
      cc,
      ...(published.length === 0 ? {} : { published }),
      get rtt() {
        return target.rtt;
      },
    };
  });
  return { ...bare, targets };
}

/** The same for all sites of a subnet. */
function labelOf(world: World, site: number, { source, coverage, error }: LabelModel): PublishedPlace[] {
  const { place, subnet } = world.sites[site]!;
  const salt = { cdn: 10, "reverse-names": 20, geofeed: 30 }[source];
  if (place === null || hashUnit(world.seed, subnet, salt) >= coverage) return [];
  const isWrong = hashUnit(world.seed, subnet, salt + 1) < error;
  const other = Math.floor(hashUnit(world.seed, subnet, salt + 2) * world.sites.length);
  const said = isWrong ? (world.sites[other]?.place ?? place) : place;
  return [{ source, place: source === "cdn" ? `cluster ${said}` : (world.places[said]?.name ?? "") }];
}
