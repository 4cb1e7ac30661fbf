/**
 * Makes the plan by which pages are fetched again, when it is time: IIR and ICR when half the most urgent channels had more
 * than five updates (SARSS section 3.1), *optimal* at every turn, from what the fleet did since the last one.
 */

import { planOptimal } from "./make-optimal-plan.ts";
import type { PlannedGroup, RecrawlPlan } from "./make-plan.ts";
import { emptyPlan, type PlanningPorts } from "./plan.ts";
import { isReassignmentDue, iteratedCapacity, iteratedInterval } from "./priority-groups.ts";
import type { RecrawlPolicies } from "./settings.ts";

const daySeconds = 86_400;

/** The new plan, saved; null: the last one stays. Call it in `store.alone`. */
export async function planRecrawls(ports: PlanningPorts): Promise<RecrawlPlan | null> {
  const last = await ports.store.latest();
  switch (ports.policies.strategy) {
    case "fixed":
      return last === null || last.strategy === "fixed" ? null : await backToFixed(last, ports);
    case "iir":
    case "icr":
      return isContinued(last, ports) ? await reassign(last, ports) : await firstGroups(ports);
    case "optimal":
      return await planOptimal(last, ports);
  }
}

async function backToFixed(last: RecrawlPlan, ports: PlanningPorts): Promise<RecrawlPlan> {
  const plan = {
    ...emptyPlan(ports, last),
    reason: "the strategy is fixed: every page after the same interval",
  };
  await ports.store.save(plan, new Map());
  return plan;
}

function isContinued(last: RecrawlPlan | null, { policies }: PlanningPorts): last is RecrawlPlan {
  return last !== null && last.strategy === policies.strategy && last.groups.length === policies.groups;
}

/** Half of the pages have to be known: a channel's first group is its first guess. */
const knownEnough = 0.5;

async function firstGroups(ports: PlanningPorts): Promise<RecrawlPlan | null> {
  const { store, policies } = ports;
  if ((await store.knownShare()) < knownEnough) return null;
  await store.refreshChannels(null);
  const groups = await groupedChannels(ports);
  if (groups.length < policies.groups) return null;
  const intervals = groups.map(({ initialSeconds }) => initialSeconds);
  const reason = `hosts and channels were divided into ${groups.length} groups by how often they change, with the intervals that follow from it`;
  return await saveGroups(ports, null, { groups, intervals, successRates: groups.map(() => 0), reason });
}

/** Null: it is not due. */
async function reassign(last: RecrawlPlan, ports: PlanningPorts): Promise<RecrawlPlan | null> {
  const { store, policies, now } = ports;
  const { records, withEnoughUpdates } = await store.groupRecords(last, now);
  const first = records.findIndex(({ channels }) => channels > 0);
  if (first < 0 || !isReassignmentDue(records[first]!.channels, withEnoughUpdates[first]!)) return null;
  const input = {
    groups: records,
    lastSuccessRates: last.groups.map(({ successRate }) => successRate),
    encourageRate: policies.encourageRate,
    limits: policies,
    intervalSeconds: last.groupIntervalSeconds,
    initialIntervalSeconds: last.groups.map(({ initialSeconds }) => initialSeconds),
  };
  const made = policies.strategy === "iir" ? iteratedInterval(input) : iteratedCapacity(input);
  await store.keepRecords(last, now);
  await store.refreshChannels(last.madeAt);
  const groups = await groupedChannels(ports);
  const reason = `${withEnoughUpdates[first]} of the ${records[first]!.channels} hosts and channels that change most had more than five updates since the last plan`;
  const successRates = made.successRates;
  return await saveGroups(ports, last, { groups, intervals: made.intervalSeconds, successRates, reason });
}

type ChannelGroup = Pick<PlannedGroup, "channels" | "pages" | "changesPerDay" | "initialSeconds">;

async function groupedChannels({ store, policies }: PlanningPorts): Promise<ChannelGroup[]> {
  const groups = await store.groupChannels(policies.groups);
  return groups.map((group) => ({
    ...group,
    initialSeconds: bounded(daySeconds / group.changesPerDay, policies),
  }));
}

interface NewGroups {
  readonly groups: readonly ChannelGroup[];
  readonly intervals: readonly number[];
  readonly successRates: readonly number[];
  readonly reason: string;
}

async function saveGroups(
  ports: PlanningPorts,
  last: RecrawlPlan | null,
  made: NewGroups,
): Promise<RecrawlPlan> {
  const { store, policies } = ports;
  const intervals = made.intervals.map((seconds) => bounded(seconds, policies));
  const achieved = last && (await measuredSince(last, ports));
  const plan: RecrawlPlan = {
    ...emptyPlan(ports, last),
    reason: made.reason,
    groupIntervalSeconds: intervals,
    groups: made.groups.map((group, index) => ({
      ...group,
      intervalSeconds: intervals[index]!,
      successRate: made.successRates[index]!,
    })),
    pages: made.groups.reduce((sum, { pages }) => sum + pages, 0),
    totalPerDay: made.groups.reduce(
      (sum, { pages }, index) => sum + (pages * daySeconds) / intervals[index]!,
      0,
    ),
    allowedPerDay: await store.allowedPerDay(),
    achievedPerDay: achieved,
    lastLeaseId: await store.lastLeaseId(),
  };
  await store.save(plan, new Map());
  return plan;
}

async function measuredSince(
  last: RecrawlPlan,
  { store, policies, now }: PlanningPorts,
): Promise<number | null> {
  const from = last.madeAt;
  const { again, windowDays } = await store.measured({
    from,
    last: from,
    now,
    lateSeconds: policies.everySeconds,
  });
  return windowDays > 0 ? again / windowDays : null;
}

function bounded(seconds: number, { shortestHours, longestDays }: RecrawlPolicies): number {
  return Math.min(longestDays * daySeconds, Math.max(shortestHours * 3600, seconds));
}
