/** What is due and what is being fetched, as it is told: hosts that wait, hosts in crawlers' hands, and figures of a span of time. */
import { z } from "zod";
import { dateTime, orNull, record, type ToldOf } from "../../web/api-operation.ts";
import { chartHistorySchema } from "../../web/chart-history.ts";

/**
 * Why a host that is due is not being fetched, the first that applies.
 *
 *   no-address        DNS was not asked yet, or has given none
 *   no-delegation     no crawler was found for its subnet yet
 *   no-ipv6           it has only IPv6 addresses, and no crawler that is online speaks IPv6, whoever has its subnet
 *   crawler-offline   its crawler is not connected
 *   crawler-draining  its crawler is being emptied
 *   budget            its crawler has fetched today what its partner allows
 *   politeness        the host, or its address, is to be left alone for now
 *   crawler-full      its crawler has as many hosts as it takes, or holds back by itself
 *   in-line           nothing is in the way: its crawler will ask for it
 */
export const waitReasons = [
  "no-address",
  "no-delegation",
  "no-ipv6",
  "crawler-offline",
  "crawler-draining",
  "budget",
  "politeness",
  "crawler-full",
  "in-line",
] as const;
export type WaitReason = (typeof waitReasons)[number];

/**
 * Why a host that is being crawled, or that rests between two leases, goes no faster.
 *
 * back-off      it answered 429 or 503, or not at all
 * site-cap      an operator's cap on its site
 * crawl-delay   its robots.txt asks for it
 * tolerated-rate  it was found to tolerate no more
 * slow-answers  it answers slowly, and our rest is a multiple of the time that it takes
 * usual-pace    none of these: the rest that every host gets
 */
export const paceLimits = [
  "back-off",
  "site-cap",
  "crawl-delay",
  "tolerated-rate",
  "slow-answers",
  "usual-pace",
] as const;
export type PaceLimit = (typeof paceLimits)[number];

/** What the crawl as a whole is limited by; the reasons of waiting hosts, with `politeness` in its kinds. */
export const limitCodes = [
  "nothing-due",
  "no-delegation",
  "no-ipv6",
  "crawler-offline",
  "crawler-draining",
  "budget",
  "crawler-full",
  ...paceLimits,
  "in-line",
  "no-address",
] as const satisfies readonly ("nothing-due" | WaitReason | PaceLimit)[];
/** Nothing is handed out while a coordinator's clock is wrong, whatever else is in the way. */
export const clockLimit = "coordinator-clock";
export type LimitCode = (typeof limitCodes)[number];

/** The longest due hosts that are looked through for those of one reason. */
export const queueFront = 5000;

/** `rate` the fastest first, `open` those with the most to do, `since` the longest held. */
export const inHandSorts = ["rate", "open", "since", "host"] as const;
export type InHandSort = (typeof inHandSorts)[number];

export const waitReason = z.enum(waitReasons).meta({
  id: "WaitReason",
  description:
    "The first thing in the way of a host that is due; in-line: nothing, its crawler will ask for it.",
});

const verdict = record("Verdict", {
  limitedBy: z
    .enum([...limitCodes, clockLimit])
    .describe("What is in the way of the most hosts, those in crawlers' hands among them."),
  hosts: z.int(),
  words: z.string().describe("The same in plain words."),
});

export const queueAges = record("QueueAges", {
  hosts: z.int(),
  medianSeconds: z.int().nullable(),
  p95Seconds: z.int().nullable(),
  oldestSeconds: z.int().nullable(),
  isEstimate: z.boolean().describe("Told from a part of the hosts, since there are many."),
  reasons: z.array(
    z.strictObject({
      reason: waitReason,
      hosts: z.int(),
      medianSeconds: z.int().nullable(),
      p95Seconds: z.int().nullable(),
      oldestSeconds: z.int().nullable(),
    }),
  ),
  verdict,
});

export const spanFigures = record("SpanFigures", {
  minutes: z.int(),
  fetches: z.int(),
  pages: z.int(),
  fetchedBytes: z.int().describe("Decoded bodies of the pages."),
  shippedBytes: z.int().describe("What all results took on the wire to the coordinator."),
  rounds: z.int(),
  probes: z.int(),
  failures: z
    .strictObject({ target: z.int(), network: z.int(), crawler: z.int(), us: z.int() })
    .describe("Failed fetches by who is to blame."),
});

const waitingHost = record("WaitingHost", {
  host: z.string(),
  reason: waitReason,
  dueAt: dateTime(),
  range: z.string().nullable().describe("Null: its address lies in no registered subnet."),
  crawler: z.string().nullable(),
  notBefore: dateTime().nullable().describe("Politeness: not before; null: at any time."),
  slowBecause: z.array(z.string()).describe("Politeness: why it is asked slowly, in part sentences."),
  holdingBack: z.array(z.string()).describe("Why its crawler holds back, in its own words."),
});

const leftOutUrls = record(
  "LeftOutUrls",
  {
    urls: z.int().describe("Times that one was left out, in all."),
    hosts: z.int(),
    more: z.boolean().describe("There are more hosts than were looked at, which are 10,000."),
    most: z
      .array(z.strictObject({ host: z.string(), urls: z.int() }))
      .describe("The most first, 10 at most."),
    domains: z
      .array(
        z.strictObject({
          domain: z.string(),
          waiting: z.int().describe("URLs on new hosts that wait for a later day."),
          leftOut: z.int().describe("URLs on new hosts that came when no more could wait."),
        }),
      )
      .describe(
        "Registrable domains with more new hosts, or links to more, than are let in a day: 10 at most.",
      ),
  },
  "URLs that were named beyond what their hosts, or domains, may have and hold.",
);

const gatedHosts = record(
  "GatedHosts",
  {
    asked: z.int().describe("Hosts that were ever asked for a page; about, where there are many."),
    hosts: z.int(),
    providers: z
      .array(
        z.strictObject({
          provider: z.string(),
          hosts: z.int(),
          newHosts: z.int().describe("Since a day or less."),
        }),
      )
      .describe("The most first."),
    longest: z
      .array(
        z.strictObject({
          host: z.string(),
          provider: z
            .string()
            .describe("Short name, such as cloudflare; unknown: told by its words or shape."),
          since: dateTime(),
          tries: z.int().describe("In a row, one after each rest."),
          nextTryAt: dateTime().nullable().describe("Null: nothing of it is due."),
        }),
      )
      .describe("Those that have been for longest, 10 at most."),
  },
  "Hosts in whose place a bot gate answers. They rest, and are not among those that wait.",
);

export const queueView = record("QueueView", {
  at: dateTime(),
  reason: waitReason.nullable(),
  ages: queueAges,
  hosts: z.array(waitingHost).describe("The longest waiting first, 100 at most."),
  leftOut: leftOutUrls,
  gated: gatedHosts,
  history: chartHistorySchema,
});

export const hostsInHand = record("HostsInHand", {
  at: dateTime(),
  hosts: z.int().describe("In all."),
  shown: z.array(
    z.strictObject({
      host: z.string(),
      crawler: z.string(),
      since: dateTime().describe("When its lease began."),
      expiresAt: dateTime(),
      urls: z.int().describe("That were handed out."),
      openUrls: z.int().describe("Without a result yet."),
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
