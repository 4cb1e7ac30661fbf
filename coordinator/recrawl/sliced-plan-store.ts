/**
 * Recrawl plans over slices. The fleet has one capacity, and so there is one plan: what it is made from is gathered of all
 * slices, plans themselves are shared, and each slice has what its own pages are fetched by. While a slice does not answer, no
 * plan is made: the others' pages would be given what its own are to have.
 */
import { DatabaseError } from "#core/errors";
import type { HostHash } from "#core/ids";
import { OverSlices, summed } from "../database/over-slices.ts";
import { bySlice, type OpenSlice, partialWords, type Slices } from "../database/slices.ts";
import type { RecrawlGroups, RecrawlPlan, RecrawlPlanStore, SampledPages } from "./make-plan.ts";
import {
  type ChannelRate,
  type GroupedChannels,
  measuredIn,
  type PlacedChannels,
  recrawlSlice,
  shareOf,
} from "./plan-store.ts";
import type { GroupRecord } from "./priority-groups.ts";

type RecrawlSlice = ReturnType<typeof recrawlSlice>;

/** With one slice, its store's answers. */
export function recrawlPlansOver(slices: Slices): RecrawlPlanStore {
  const over = new OverSlices(slices, ({ pool }) => recrawlSlice(pool));
  const all = async <T>(
    ask: (store: RecrawlSlice, slice: OpenSlice) => Promise<T>,
  ): Promise<readonly T[]> => {
    const { answers, partial } = await over.ask(ask);
    if (partial.length > 0)
      throw new DatabaseError(`pages' turns cannot be planned: ${partialWords(partial)}`);
    return answers;
  };
  return {
    latest: async () => await over.shared.latest(),
    history: async (limit) => await over.shared.history(limit),
    allowedPerDay: async () => await over.shared.allowedPerDay(),
    alone: async (work) => await over.shared.alone(work),
    save: async (plan, hostMultipliers) => {
      if (over.isOne) return await over.shared.save(plan, hostMultipliers);
      const own = multipliersBySlice(slices, hostMultipliers);
      // The plan comes last: who reads it finds the hosts' own multipliers.
      await all(async (slice, { number }) => {
        if (number !== 0) await slice.setMultipliers(own(number));
      });
      await over.shared.save(plan, own(0));
    },
    knownShare: async () => {
      const counted = await all(async (slice) => await slice.countKnown());
      return shareOf(summed(counted, ["known", "pages"]));
    },
    refreshChannels: async (since) => {
      await all(async (slice) => await slice.refreshChannels(since));
    },
    groupChannels: async (groups) => {
      if (over.isOne) return await over.shared.groupChannels(groups);
      const rates = await all(async (slice, { number }) => ({ number, rates: await slice.channelRates() }));
      const ends = groupEnds(
        rates.map((one) => one.rates),
        groups,
      );
      const endsOf = new Map(rates.map(({ number }, index) => [number, ends[index]!]));
      return groupsOf(await all(async (slice, { number }) => await slice.groupByEnds(endsOf.get(number)!)));
    },
    groupRecords: async (plan, now) => {
      const answers = await all(
        async (slice, { number }) => await slice.groupRecords(planIn(plan, number), now),
      );
      return over.isOne ? answers[0]! : recordsOf(answers);
    },
    keepRecords: async (plan, now) => {
      await all(async (slice, { number }) => await slice.keepRecords(planIn(plan, number), now));
    },
    pages: async (mostPages) => {
      if (over.isOne) return await over.shared.pages(mostPages);
      const fetched = await all(async (slice) => await slice.fetchedPages());
      const share = mostPages / Math.max(1, sumOf(fetched));
      return pagesOf(await all(async (slice) => await slice.pagesOfOwn(share)));
    },
    rankedPages: async () => sumOf(await all(async (slice) => await slice.rankedPages())),
    measured: async (window) =>
      measuredIn(await all(async (slice) => await slice.measuredPart(window)), window),
    lastLeases: async () => {
      if (over.isOne) return await over.shared.lastLeases();
      const last = await all(
        async (slice, { number }) => [String(number), await slice.lastLeaseId()] as const,
      );
      return { lastLeaseId: last[0]![1], lastLeaseIdOf: Object.fromEntries(last.slice(1)) };
    },
  };
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

const noMultipliers: ReadonlyMap<HostHash, number> = new Map();

function multipliersBySlice(slices: Slices, multipliers: ReadonlyMap<HostHash, number>) {
  const groups = bySlice(multipliers, ([hostHash]) => slices.ofHost(hostHash));
  const own = new Map(groups.map(({ slice, values }) => [slice.number, new Map(values)]));
  return (number: number) => own.get(number) ?? noMultipliers;
}

/** As the slice knows it: leases have numbers of its own. Of one that came since, all leases are later. */
const planIn = (plan: RecrawlPlan, number: number): RecrawlPlan =>
  number === 0 ? plan : { ...plan, lastLeaseId: plan.lastLeaseIdOf?.[number] ?? "0" };

/**
 * Groups of equal size over all slices: for each slice, the number of its channels up to the last one of each group. Of those
 * that change as often, the first slices' come first.
 */
export function groupEnds(slices: readonly (readonly ChannelRate[])[], groups: number): number[][] {
  const all = slices
    .flatMap((rates, slice) => rates.map((one) => ({ ...one, slice })))
    .sort((a, b) => b.rate - a.rate || a.slice - b.slice);
  const total = sumOf(all.map(({ channels }) => channels));
  const reached = slices.map(() => 0);
  const ends: number[][] = slices.map(() => []);
  let [before, at] = [0, 0];
  let left = all[0]?.channels ?? 0;
  for (let group = 0; group < groups; group++) {
    // As ntile has it: the first groups have one more where they do not come out even.
    let wanted = Math.floor(total / groups) + (group < total % groups ? 1 : 0);
    while (wanted > 0) {
      const taken = Math.min(wanted, left);
      reached[all[at]!.slice]! += taken;
      wanted -= taken;
      left -= taken;
      before += taken;
      if (left === 0 && before < total) left = all[++at]!.channels;
    }
    for (const [slice, count] of reached.entries()) ends[slice]!.push(count);
  }
  return ends;
}

function groupsOf(answers: readonly (readonly PlacedChannels[])[]): GroupedChannels[] {
  const groups: GroupedChannels[] = [];
  for (const { place, channels, pages, changesPerDay } of answers.flat()) {
    const known = groups[place] ?? { channels: 0, pages: 0, changesPerDay: 0 };
    groups[place] = {
      channels: known.channels + channels,
      pages: known.pages + pages,
      changesPerDay: meanOf([
        [known.changesPerDay, known.channels],
        [changesPerDay, channels],
      ])!,
    };
  }
  return groups;
}

/** Of values with their weights; null where nothing weighs anything. */
function meanOf(values: readonly (readonly [value: number | null, weight: number])[]): number | null {
  const known = values.filter(([value, weight]) => value !== null && weight > 0);
  const weight = sumOf(known.map(([, own]) => own));
  return weight === 0 ? null : sumOf(known.map(([value, own]) => value! * own)) / weight;
}

const recordSums = ["channels", "submitted", "updates", "downloadSeconds", "busyThreads"] as const;

function recordsOf(answers: readonly RecrawlGroups[]): RecrawlGroups {
  return {
    records: answers[0]!.records.map((_, group): GroupRecord => {
      const own = answers.map(({ records }) => records[group]!);
      return {
        ...summed(own, recordSums),
        hIntervalSeconds: meanOf(own.map(({ hIntervalSeconds, channels }) => [hIntervalSeconds, channels])),
      };
    }),
    withEnoughUpdates: answers[0]!.withEnoughUpdates.map((_, group) =>
      sumOf(answers.map(({ withEnoughUpdates }) => withEnoughUpdates[group]!)),
    ),
  };
}

/** Each slice gave about the same share of its pages. */
function pagesOf(samples: readonly SampledPages[]): SampledPages {
  const column = (of: "changesPerDay" | "backLinks" | "pageRank") =>
    Float64Array.from(samples.flatMap((sample) => [...sample[of]]));
  const before = samples.map((_, index) => sumOf(samples.slice(0, index).map(({ hosts }) => hosts.length)));
  const counts = samples.map(({ changesPerDay }) => changesPerDay.length);
  const all = sumOf(samples.map(({ share }, index) => counts[index]! / share));
  return {
    changesPerDay: column("changesPerDay"),
    backLinks: column("backLinks"),
    pageRank: column("pageRank"),
    hostOf: Uint32Array.from(
      samples.flatMap(({ hostOf }, index) => [...hostOf].map((host) => host + before[index]!)),
    ),
    hosts: samples.flatMap(({ hosts }) => hosts),
    share: all === 0 ? 1 : sumOf(counts) / all,
  };
}
