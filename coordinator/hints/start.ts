/** What is done about hints by the clock, and the pages' part about them. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import { oneSlice, type Slices } from "../database/slices.ts";
import type { Metrics } from "../overview/metrics.ts";
import type { WebPart } from "../web/actions.ts";
import { randomSecrets } from "../web/secrets.ts";
import { hintSources } from "./hint.ts";
import { createHintReads } from "./hint-reads.ts";
import { checkKeys, createHintStore, forgetHints, judgeHints, takeWaiting } from "./hint-store.ts";
import { createHubClient, type HubClient } from "./hub-client.ts";
import { type CountHints, hintRoutes } from "./routes.ts";
import {
  createSubscriptionStore,
  type DueSubscription,
  dueSubscriptions,
  endSubscriptions,
  noteAsked,
  noteRefusal,
  withoutStoppedHubs,
} from "./subscription-store.ts";
import { callbackPath } from "./web-sub.ts";

type HintConfig = Pick<
  CoordinatorConfig,
  "hints" | "scope" | "publicUrl" | "allowSpecialPurpose" | "userAgent"
>;

export interface HintDuty {
  readonly pool: Pool;
  /** Left out, the pool has all hosts. */
  readonly slices?: Slices;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly resolver: NameResolver;
  readonly metrics: Pick<Metrics, "hints">;
  /** These hosts may have something due now. */
  readonly onDue: (hosts: readonly HostHash[]) => void;
  readonly log: Log;
  readonly now: () => Date;
}

const takeMs = 5000;
const judgeMs = 30_000;
const subscribeMs = 30_000;
const forgetMs = 3_600_000;

export function scheduleHints(duty: HintDuty, config: HintConfig): void {
  const { pool, slices = oneSlice(pool), timekeeper, log, now } = duty;
  const count = countingHints(duty.metrics);
  const hubs = createHubClient({ ...config, resolver: duty.resolver });
  const check = async (state: "pending" | "good") => {
    for (let more = true; more; ) {
      const keys = await checkKeys(pool, state, now());
      count("indexnow", "good-key", keys.good);
      count("indexnow", "wrong-key", keys.wrong);
      ({ more } = keys);
    }
  };
  timekeeper.every("take-hints", takeMs, async () => {
    await check("pending");
    for (let more = true; more; ) {
      const taken = await takeWaiting(pool, { policies: config.hints, scope: config.scope }, now());
      for (const source of hintSources) {
        count(source, "taken", taken.taken[source]);
        count(source, "dropped", taken.dropped[source]);
      }
      duty.onDue(taken.hosts);
      more = taken.more;
    }
  });
  timekeeper.every("judge-hints", judgeMs, async () => {
    for (let more = true; more; ) {
      const judged = await judgeHints(pool, now());
      for (const source of hintSources) {
        count(source, "right", judged[source].right);
        count(source, "wrong", judged[source].wrong);
      }
      ({ more } = judged);
    }
  });
  timekeeper.every("subscribe-to-feeds", subscribeMs, async () => {
    await subscribeToFeeds({ pool, slices, hubs, count, log, now }, config);
  });
  timekeeper.every("forget-hints", forgetMs, async () => {
    await check("good");
    await forgetHints(pool, now());
  });
}

const countingHints =
  ({ hints }: Pick<Metrics, "hints">): CountHints =>
  (source, what, many = 1) =>
    hints.inc({ source, what }, many);

/** Looked at in one turn, asked of these, and asked at one hub. */
const mostDue = 500;
const mostAsked = 10;
const mostOfHub = 2;

export interface Subscribing {
  /** Of the slice whose feeds are meant. */
  readonly pool: Pool;
  /** Of which hubs' hosts are; left out, there are no others. */
  readonly slices?: Slices;
  readonly hubs: HubClient;
  readonly count: CountHints;
  readonly log: Log;
  readonly now: () => Date;
}

/** Without a public URL no hub reaches us, and none is asked. */
export async function subscribeToFeeds(
  { pool, slices = oneSlice(pool), hubs, count, log, now }: Subscribing,
  config: Pick<HintConfig, "hints" | "publicUrl">,
): Promise<void> {
  const { publicUrl } = config;
  const isOn = config.hints.webSub && publicUrl !== null;
  await endSubscriptions(pool, isOn, now());
  if (!isOn) return;
  const { feedsPerHost } = config.hints;
  const ofHub = new Map<string, number>();
  const ofSlice = await dueSubscriptions(pool, { feedsPerHost, most: mostDue, now: now() });
  const due = await withoutStoppedHubs(slices, ofSlice);
  const chosen = due.filter(({ hub }) => {
    const { host } = new URL(hub);
    ofHub.set(host, (ofHub.get(host) ?? 0) + 1);
    return ofHub.get(host)! <= mostOfHub;
  });
  for (const one of chosen.slice(0, mostAsked)) await ask(one, publicUrl);

  async function ask(one: DueSubscription, base: string): Promise<void> {
    const token = one.token ?? randomSecrets.make().secret;
    const secret = one.secret ?? randomSecrets.make().secret;
    if (!(await noteAsked(pool, one, { token, secret, now: now() }))) return;
    const callback = `${base.replace(/\/+$/, "")}${callbackPath(token)}`;
    count("websub", "asked");
    const reply = await hubs.subscribe({ hub: one.hub, callback, topic: one.topic, secret });
    if (reply.type === "accepted") return;
    count("websub", "refused-by-hub");
    log.info({ feed: one.feed, hub: one.hub, words: reply.words }, "a hub takes no subscription");
    await noteRefusal(pool, one, { words: reply.words, now: now() });
  }
}

/** Over the pages' own connections, few and impatient: what anybody may send starves no flow. */
export function hintPart(options: {
  readonly pool: Pool;
  /** Left out, the pool has all hosts. */
  readonly slices?: Slices;
  readonly metrics: Pick<Metrics, "hints">;
  readonly config: Pick<HintConfig, "hints" | "scope">;
  readonly log: Log;
  readonly now?: () => Date;
}): WebPart {
  const { pool, slices = oneSlice(pool), metrics, config, log, now = () => new Date() } = options;
  return hintRoutes({
    hints: createHintStore(slices),
    subscriptions: createSubscriptionStore(slices),
    reads: createHintReads(slices),
    rules: () => ({ policies: config.hints, scope: config.scope }),
    count: countingHints(metrics),
    log,
    now,
  });
}

/** For `doctor`: what is switched on and cannot work. */
export function hintWarnings({ hints, publicUrl }: Pick<CoordinatorConfig, "hints" | "publicUrl">): string[] {
  if (!hints.webSub || publicUrl !== null) return [];
  return [
    "hints.webSub is on, but no publicUrl is set, where hubs would call: no feed is subscribed until there is one",
  ];
}
