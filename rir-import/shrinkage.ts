/** Finds suspicious losses in an import, usually caused by an incomplete file. */
import { registries } from "#coordinator/place/subnets/subnet";
import { LosesFacts } from "#core/errors";
import type { PublishedPlan } from "./database/published-lists.ts";
import { changeKinds, type FamilyDifference, type TreeDifference } from "./database/tree-difference.ts";
import type { Loss, RegistryChange, Shrinkage } from "./read/status-api.ts";

/** Honest changes within a quarter stay below a few percent (test/rir-import/afrinic-years). */
export const suspiciousShare = 0.1;
const fewestSubnets = 20;

export function shrunkRegistries(
  registries: readonly RegistryChange[],
  moreThanShare: number = suspiciousShare,
): readonly Shrinkage[] {
  return registries
    .filter(({ before }) => before !== null && before.subnets >= fewestSubnets)
    .map(shrinkageOf)
    .filter(
      ({ lostSubnetsShare, lostIpv4Share, lostIpv6Share }) =>
        Math.max(lostSubnetsShare, lostIpv4Share, lostIpv6Share) > moreThanShare,
    );
}

function shrinkageOf({ registry, before, after, removed }: RegistryChange): Shrinkage {
  const lost = (was = 0, is = 0) => (was > 0 ? Math.max(0, was - is) / was : 0);
  return {
    registry,
    lostSubnetsShare: before ? removed / before.subnets : 0,
    lostIpv4Share: lost(before?.ipv4Addresses, after?.ipv4Addresses),
    lostIpv6Share: lost(before?.ipv6Slash48s, after?.ipv6Slash48s),
  };
}

// Finds what remaining subnets would lose: a missing file of organisations removes holders but no subnet.

/** Unlike registries, clouds may withdraw the ranges of whole regions at once. */
const suspiciousPublishedShare = 0.5;

export function suspiciousLosses(
  { ipv4, ipv6, holders }: Pick<TreeDifference, "ipv4" | "ipv6" | "holders">,
  { sources, geofeeds }: Pick<PublishedPlan, "sources" | "geofeeds">,
): readonly Loss[] {
  const what = "published places";
  const lists = sources.filter(({ isNamedByObjects, isHeldBack }) => !isNamedByObjects && !isHeldBack);
  const ofLists = [
    ...lists.map(({ source, rangesBefore, removed }) => ({
      of: source,
      before: rangesBefore,
      lost: removed,
    })),
    { of: "the geofeeds that registry objects name", before: geofeeds.rangesBefore, lost: geofeeds.removed },
  ].map((loss): Loss => ({ what, ...loss }));
  const isSuspicious =
    (share: number) =>
    ({ before, lost }: Loss) =>
      before >= fewestSubnets && lost > share * before;
  return [
    ...lossesOfTree([ipv4, ipv6], new Set(holders.renamed)).filter(isSuspicious(suspiciousShare)),
    ...ofLists.filter(isSuspicious(suspiciousPublishedShare)),
  ];
}

/** A holder of which only the handle remains counts as renamed. `renamed` contains indexes of the wanted state. */
function lossesOfTree(families: readonly FamilyDifference[], renamed: ReadonlySet<number>): readonly Loss[] {
  const sums = registries.map(() => ({
    before: new Set<number>(),
    after: new Set<number>(),
    countries: 0,
    lost: 0,
  }));
  for (const { kinds, rows, current, wanted } of families)
    rows.forEach((row, place) => {
      if (row < 0 || changeKinds[kinds[place] as number] === "returned") return;
      const sum = sums[current.registries[row] as number]!;
      const holder = current.holderIds[row] as number;
      const holderNow = wanted.holders[place] as number;
      if (holder > 0) sum.before.add(holder);
      if (holder > 0 && holderNow >= 0 && !renamed.has(holderNow)) sum.after.add(holderNow);
      const country = current.countries[row] as number;
      if (country === 0) return;
      sum.countries += 1;
      if (wanted.countries[place] !== country) sum.lost += 1;
    });
  return sums.flatMap(({ before, after, countries, lost }, index): Loss[] => {
    const of = registries[index]!;
    return [
      { what: "holders", of, before: before.size, lost: Math.max(0, before.size - after.size) },
      { what: "countries", of, before: countries, lost },
    ];
  });
}

export const lostSum = (losses: readonly Loss[]): number => losses.reduce((sum, { lost }) => sum + lost, 0);

const lossWords: Readonly<Record<Loss["what"], string>> = {
  holders: "holders (or their names) whose subnets stay",
  countries: "countries of subnets that stay (lost, or another)",
  "published places": "published ranges",
};

/** Example: "13,425 of the 16,378 holders (or their names) whose subnets stay of apnic". */
export function lossText({ what, of, before, lost }: Loss): string {
  const count = (value: number) => value.toLocaleString("en-GB");
  return `${count(lost)} of the ${count(before)} ${lossWords[what]} of ${of}`;
}

export function requireLossesMeant(losses: readonly Loss[], meant: number | null): void {
  const sum = lostSum(losses);
  if (losses.length === 0 || meant === sum) return;
  const named = meant === null ? "" : ` (and not ${meant})`;
  throw new LosesFacts(
    `this loses ${losses.map(lossText).join(", ")}${named}: are the files complete? Nothing was changed; if that is meant, say --yes-lose ${sum}`,
  );
}
