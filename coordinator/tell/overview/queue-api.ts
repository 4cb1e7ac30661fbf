/** The API of the queue: hosts that wait, hosts in progress, and the figures of a span of time. */
import { z } from "zod";
import { dateTime, orNull, record, type ToldOf } from "../../web/api-operation.ts";
import { chartHistorySchema } from "../../web/chart-history.ts";

/** Why a due host is not being fetched. The first that applies is given (queue-words). */
export const waitReasons = [
  ...(["no-address", "no-delegation", "no-ipv6", "crawler-offline", "crawler-draining", "budget"] as const),
  ...(["politeness", "crawler-full", "in-line"] as const),
] as const;
export type WaitReason = (typeof waitReasons)[number];

/** What slows down a host that is being crawled, or that rests between two leases (queue-words). */
const paceLimits = [
  ...(["back-off", "site-cap", "crawl-delay", "tolerated-rate", "slow-answers", "usual-pace"] as const),
] as const;
export type PaceLimit = (typeof paceLimits)[number];

/** What limits the crawl: the reasons of waiting hosts, with `politeness` split up. Those that people can change come first. */
export const limitCodes = [
  ...(["nothing-due", "no-delegation", "no-ipv6", "crawler-offline", "crawler-draining", "budget"] as const),
  ...(["crawler-full", ...paceLimits, "in-line", "no-address"] as const),
] as const satisfies readonly ("nothing-due" | WaitReason | PaceLimit)[];
/** While a coordinator's clock is wrong, nothing is handed out, whatever other limits there are. */
export const clockLimit = "coordinator-clock";
export type LimitCode = (typeof limitCodes)[number];

/** A list for one reason covers only this many of the longest waiting hosts. */
export const queueFront = 5000;

export const inHandSorts = ["rate", "open", "since", "host"] as const;
export type InHandSort = (typeof inHandSorts)[number];

export const waitReason = z.enum(waitReasons).meta({
  id: "WaitReason",
  description: "What a due host waits for first; in-line: nothing, its crawler will ask for it.",
});

const verdict = record("Verdict", {
  limitedBy: z
    .enum([...limitCodes, clockLimit])
    .describe("What is in the way of the most hosts, including those in progress."),
  hosts: z.int(),
  words: z.string().describe("The same in plain words."),
});

const ages = {
  hosts: z.int(),
  medianSeconds: z.int().nullable(),
  p95Seconds: z.int().nullable(),
  oldestSeconds: z.int().nullable(),
};

export const queueAges = record("QueueAges", {
  ...ages,
  isEstimate: z.boolean().describe("Estimated from a part of the hosts, since there are many."),
  reasons: z.array(z.strictObject({ reason: waitReason, ...ages })),
  verdict,
});

export const spanFigures = record("SpanFigures", {
  minutes: z.int(),
  fetches: z.int(),
  pages: z.int(),
  fetchedBytes: z.int().describe("Decoded bodies of the pages."),
  shippedBytes: z.int().describe("Bytes of all results on the wire to the coordinator."),
  rounds: z.int(),
  probes: z.int(),
  failures: z
    .strictObject({ target: z.int(), network: z.int(), crawler: z.int(), us: z.int() })
    .describe("Failed fetches by cause."),
});

const waitingHost = record("WaitingHost", {
  host: z.string(),
  reason: waitReason,
  dueAt: dateTime(),
  range: z.string().nullable().describe("Null: no registered subnet contains its address."),
  crawler: z.string().nullable(),
  notBefore: dateTime().nullable().describe("Politeness: the earliest time; null: any time."),
  slowBecause: z.array(z.string()).describe("Politeness: why its pace is slow, in part sentences."),
  holdingBack: z.array(z.string()).describe("Why its crawler holds back, in its own words."),
});

const leftOutUrls = record(
  "LeftOutUrls",
  {
    urls: z.int().describe("Total number of skipped URLs."),
    hosts: z.int(),
    more: z.boolean().describe("There are more than the 10,000 hosts checked."),
    most: z.array(z.strictObject({ host: z.string(), urls: z.int() })).describe("Most first, at most 10."),
    domains: z
      .array(
        z.strictObject({
          domain: z.string(),
          waiting: z.int().describe("URLs on new hosts that wait for a later day."),
          leftOut: z.int().describe("URLs on new hosts that came when no more could wait."),
        }),
      )
      .describe(
        "Registrable domains with more new hosts, or links to more, than are admitted per day; at most 10.",
      ),
  },
  "URLs beyond the limits of their hosts or domains.",
);

const gatedHosts = record(
  "GatedHosts",
  {
    asked: z.int().describe("Hosts that were ever asked for a page; estimated when there are many."),
    hosts: z.int(),
    providers: z
      .array(
        z.strictObject({
          provider: z.string(),
          hosts: z.int(),
          newHosts: z.int().describe("Within the last day."),
        }),
      )
      .describe("Most first."),
    longest: z
      .array(
        z.strictObject({
          host: z.string(),
          provider: z
            .string()
            .describe("Short name, such as cloudflare; unknown: recognised by its words or shape."),
          since: dateTime(),
          tries: z.int().describe("Consecutive tries, one after each rest."),
          nextTryAt: dateTime().nullable().describe("Null when nothing of it is due."),
        }),
      )
      .describe("Those gated longest, at most 10."),
  },
  "Hosts behind bot gates. They rest, and do not count as waiting.",
);

export const queueView = record("QueueView", {
  at: dateTime(),
  reason: waitReason.nullable(),
  ages: queueAges,
  hosts: z.array(waitingHost).describe("Longest waiting first, at most 100."),
  leftOut: leftOutUrls,
  gated: gatedHosts,
  history: chartHistorySchema,
});

export const hostsInHand = record("HostsInHand", {
  at: dateTime(),
  hosts: z.int().describe("All hosts in progress."),
  shown: z.array(
    z.strictObject({
      host: z.string(),
      crawler: z.string(),
      since: dateTime().describe("The start of its lease."),
      expiresAt: dateTime(),
      urls: z.int().describe("URLs handed out."),
      openUrls: z.int().describe("URLs without a result yet."),
      urlsPerMinute: z.number().describe("Results since the lease began."),
      limit: z.enum(paceLimits).describe("What keeps it from being asked more often."),
      delayMs: orNull(
        z.int(),
        "Least time between two requests that robots.txt or a cap asks for; null: neither does.",
      ),
      backOffUntil: dateTime().nullable(),
    }),
  ),
});

export const csvFormat = z
  .enum(["csv"])
  .optional()
  .meta({ description: "csv: as a table, with up to 1,000 rows.", example: "csv" });

export type SpanFigures = ToldOf<typeof spanFigures>;
export type QueueAges = ToldOf<typeof queueAges>;
export type QueueAge = Pick<QueueAges, "hosts" | "medianSeconds" | "p95Seconds" | "oldestSeconds">;
export type Verdict = ToldOf<typeof verdict>;
export type HostsInHand = ToldOf<typeof hostsInHand>;
export type HostInHand = HostsInHand["shown"][number];
export type WaitingHost = ToldOf<typeof waitingHost>;
export type GatedHosts = ToldOf<typeof gatedHosts>;
export type LeftOutUrls = ToldOf<typeof leftOutUrls>;
