/**
 * Every read of the pages, the API and `who` and `search`, over all slices of the web: what is shared is asked of slice 0,
 * what is of a host, of its slice, and what is of all hosts, of all slices side by side (slices/overview-reads, slices/search-reads). With
 * one slice, nothing is merged.
 */
import { KeptAnswer } from "../database/cached-read.ts";
import { OverSlices } from "../database/over-slices.ts";
import type { OpenSlice, Slices } from "../database/slices.ts";
import { createFindReads } from "../find/find-reads.ts";
import { KeptAnswers } from "../search/candidate-reads.ts";
import type { SearchIndex } from "../search/memory/index-answer.ts";
import type { WhoReads } from "../who/place.ts";
import { type Reports, type SliceReports, sliceReports, type WholeOfSlices } from "../who/reads.ts";
import { waitingReport } from "../who/url-reads.ts";
import { overviewOverSlices, wholeOverSlices } from "./overview-reads.ts";
import { searchOverSlices } from "./search-reads.ts";

/** `nowMs` is a clock that never goes back, for how long costly answers are kept; `index`: the one in memory of a slice. */
export function createReports(
  slices: Slices,
  nowMs: () => number,
  index?: (slice: OpenSlice) => SearchIndex | undefined,
): Reports {
  const over: OverSlices<SliceReports> = new OverSlices(slices, (slice) =>
    sliceReports({ pool: slice.pool, nowMs, index: index?.(slice) }, whole),
  );
  const configurations = new KeptAnswer(async () => {
    const { answers } = await over.ask(async (slice) => await slice.configurations());
    return [...new Set(answers.flat())];
  }, nowMs);
  const found = createFindReads(slices);
  const whole: WholeOfSlices = {
    ...wholeOverSlices(over),
    hostsLike: async (text, limit) => {
      const hosts = await found.hosts(text.toLowerCase(), limit);
      return (hosts?.rows ?? []).map(({ host }) => ({
        ...({ type: "host", name: host, handle: null } as const),
        similarity: Math.min(1, text.length / host.length),
      }));
    },
    configurations: async () =>
      over.isOne ? await over.shared.configurations() : await configurations.get(),
    hostsElsewhere: async (space, now) => {
      if (over.isOne) return [];
      const { answers } = await over.ask(async (slice, { number }) =>
        number === 0 ? [] : await slice.hostsIn(space, now),
      );
      return answers.flat();
    },
    linkedDepth: async (key) => {
      const { answers } = await over.ask(async (slice) => await slice.linkedDepth(key));
      const depths = answers.filter((depth) => depth !== null);
      return depths.length === 0 ? null : Math.min(...depths);
    },
  };
  const answers = new KeptAnswers(nowMs);
  return {
    ...over.shared,
    ...whoOverSlices(over),
    ...overviewOverSlices(over),
    ...searchOverSlices(over, (question, make) => answers.of(question, make), index !== undefined),
    partial: () => over.partial(),
  };
}

type MergedWho = Pick<
  WhoReads,
  "finerOfHost" | "fleetSets" | "ownerOf" | "urlReport" | "urlPlace" | "hostReport" | "waitingIn"
>;

function whoOverSlices(over: OverSlices<SliceReports>): MergedWho {
  return {
    finerOfHost: async (hostHash) =>
      await over.ofHost(hostHash, async (slice) => await slice.finerOfHost(hostHash), null),
    fleetSets: async (hostHash) =>
      await over.ofHost(hostHash, async (slice) => await slice.fleetSets(hostHash), {
        language: null,
        crawlers: [],
      }),
    ownerOf: async (asked) =>
      await over.ofHost(asked.hostHash, async (slice) => await slice.ownerOf(asked), null),
    urlReport: async (key, now) =>
      await over.ofHost(key.hostHash, async (slice) => await slice.urlReport(key, now), null),
    urlPlace: async (key, as) =>
      await over.ofHost(key.hostHash, async (slice) => await slice.urlPlace(key, as), null),
    hostReport: async (hostHash, now) =>
      await over.ofHost(hostHash, async (slice) => await slice.hostReport(hostHash, now), null),
    waitingIn: async (subnetId) => {
      const { answers } = await over.ask(async (slice) => await slice.waitingHosts(subnetId));
      return waitingReport(subnetId, answers);
    },
  };
}
