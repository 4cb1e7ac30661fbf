/**
 * The coordinator's settings: checked once, all faults listed together, unknown names refused, frozen.
 * Defaults carry their unit in the name and their origin in the comment. The values come from a JSON file
 * and from flags; the environment is read by the command, not here.
 */
import { isIPv4, isIPv6 } from "node:net";
import { z } from "zod";
import { balancePolicyNames } from "#core/balance/policies";
import { policyNames } from "#core/delegation/round";
import { ConfigError } from "#core/errors";
import { defaultTrustRule } from "#core/trust/evidence";
import { defaultSamplingRule } from "#core/trust/sampling";
import { probeMethod } from "#protocol/messages";

const seconds = (most: number) => z.number().positive().max(most);

const listen = z.strictObject({
  host: z.string().min(1).max(253).default("127.0.0.1"),
  /** 0 takes any free port. */
  port: z.int().min(0).max(65_535).default(7411),
});

const tls = z.strictObject({ certificateFile: z.string().min(1), keyFile: z.string().min(1) });

const delegation = z.strictObject({
  policy: z.enum(policyNames).default("nearest"),
  /** IPMicra section 4.5: 50 ms gave a good ratio of accuracy over probes. */
  thresholdMs: z.number().min(0).max(10_000).default(50),
  /** λ of `nearest`, ms: what a probe has to be expected to save (core/delegation/expected-gain). */
  lambdaMs: z.number().min(0).max(1000).default(2),
  /** Seeds the policy `random`. */
  seed: z.int().min(0).max(0xffff_ffff).default(1),
  /** Probe rounds at once, at most; a fleet that knows little yet runs fewer. */
  concurrentRounds: z.int().min(1).max(5000).default(256),
  /** A new subnet with so many URLs waiting is crawled while it is being probed (get-first); 0: none is. */
  getFirstFromUrls: z.int().min(0).max(1000).default(20),
  /** How long a new fleet may take to assemble and measure itself before the first round starts. */
  settleSeconds: z.number().min(0).max(600).default(10),
  /** Rounds wait (at most settleSeconds) until so many crawlers are connected. */
  expectedCrawlers: z.int().min(1).max(10_000).default(1),
});

/** Considerate by default: what one target, one network and one partner's machine see of the whole fleet. */
const pace = z.strictObject({
  perCrawlerAtOnce: z.int().min(1).max(1000).default(8),
  perCrawlerPerSecond: z.int().min(1).max(10_000).default(20),
  /** Crawlers that probe the same address in any one second. */
  perTargetPerSecond: z.int().min(1).max(1000).default(3),
  /** Towards one /24 (IPv4) or /48 (IPv6). */
  perNetworkPerSecond: z.int().min(1).max(1000).default(5),
  atOnce: z.int().min(1).max(100_000).default(256),
  perSecond: z.int().min(1).max(100_000).default(500),
});

const probe = z.strictObject({
  /**
   * A TCP connect measures the round trip alone and is comparable with the crawlers' distances to each other;
   * HEAD adds the server's own time (paper section 4.2 found HEAD and ping about equally good).
   */
  method: probeMethod.default("connect"),
  /** At most so many, fewer when two agree; the smallest is taken. */
  tries: z.int().min(1).max(20).default(6),
  deadlineMs: z.int().min(10).max(60_000).default(3000),
  pace: pace.prefault({}),
});

const scope = z.strictObject({
  /** At most; a host starts with 50 and earns the rest by the pages it has (core/frontier/host-budget). */
  pagesPerHost: z.int().min(1).max(10_000_000).default(100),
  maxDepth: z.int().min(0).max(1000).default(8),
  admitNewHosts: z.boolean().default(false),
  /** Hosts that nobody knew and that one crawler's results may bring in, a day: a page of a new crawl names one or two. */
  newHostsPerCrawlerAndDay: z.int().min(0).max(100_000_000).default(50_000),
  /** Links with rel=nofollow are in the web graph either way. */
  followNofollow: z.boolean().default(false),
});

const lease = z.strictObject({
  seconds: seconds(86_400).default(300),
  urlsPerHost: z.int().min(1).max(1000).default(20),
  hostsPerRequest: z.int().min(1).max(1000).default(20),
  /**
   * An address is left alone for so long before another crawler asks it than the last one, six times that after a
   * lease that ran out: the longest rest that a crawler keeps for an address, and the longest request.
   */
  addressRestSeconds: z.number().min(0).max(3600).default(10),
});

const balance = z.strictObject({
  policy: z.enum([...balancePolicyNames, "none"]).default("min-cost-flow"),
  everySeconds: seconds(86_400).default(60),
  /** Probe a predicted target before its subnet moves (design section 6). */
  movesPerPass: z.int().min(1).max(100_000).default(500),
});

const recalibration = z.strictObject({
  /** "Sufficiently larger" of paper section 4.4: slower than so many times the host's usual time. */
  slowerThanFactor: z.number().min(1.05).max(100).default(1.5),
  /** Slow so often in a row before the subnet is probed again. */
  timesInARow: z.int().min(2).max(100).default(2),
  everySeconds: seconds(86_400).default(30),
  /** A decision so old is probed again, for a crawler that became nearer meanwhile shows in no fetch time. */
  refreshDays: z.number().min(1).max(3650).default(30),
});

/** Hosts that resolve differently by place, and parts of subnets that measure apart. */
const finer = z.strictObject({
  /** How often they are looked for and looked at; what is found is probed a few at a time. */
  everySeconds: seconds(86_400).default(30),
});

/** What is believed of crawlers: a share of their pages is fetched by another one as well, and compared. */
const trust = z.strictObject({
  /** Of an established crawler's pages; 0: none are. */
  share: z.number().min(0).max(1).default(defaultSamplingRule.share),
  /** Of a newcomer's first pages. */
  newcomerShare: z.number().min(0).max(1).default(defaultSamplingRule.newcomerShare),
  newcomerPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.newcomerPages),
  /** Of the next pages of a crawler whose page stood alone. */
  watchedShare: z.number().min(0).max(1).default(defaultSamplingRule.watchedShare),
  watchedPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.watchedPages),
  /** The second fetch follows the first within so long; later, a page has changed too often by itself. */
  slotSeconds: seconds(86_400).default(600),
  /** Of a liar's pages, the altered ones: what is looked for. */
  alteredShare: z.number().min(0.001).max(1).default(defaultTrustRule.alteredShare),
  /** Evidence (a logarithm of likelihoods) above which a crawler is not trusted (test/bench/results/trust.md). */
  threshold: z.number().min(1).max(100).default(defaultTrustRule.threshold),
  /** `drain`: its subnets go to others, and its latest pages are fetched again; `keep`: it gets no new ones. */
  onDistrust: z.enum(["drain", "keep"]).default("drain"),
  /** Of its latest pages so many are fetched again at most. */
  refetchPages: z.int().min(0).max(1_000_000).default(10_000),
});

const recrawl = z.strictObject({
  intervalHours: z
    .number()
    .positive()
    .max(24 * 3650)
    .default(24 * 7),
});

const resolver = z
  .string()
  .max(60)
  .refine(isResolver, {
    error: ({ input }) => `"${input}" is not an address with an optional port, such as 192.0.2.1:53`,
  });

const configSchema = z.strictObject({
  listen: listen.prefault({}),
  tls: tls.nullable().default(null),
  /** Listening beyond loopback needs TLS, or a proxy in front that does it. */
  behindProxy: z.boolean().default(false),
  /** Where partners and sites reach the coordinator, when that is not where it listens: https://search.example. */
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .max(300)
    .nullable()
    .default(null),
  /** DNS servers as `address:port`; empty: the system's. */
  resolvers: z.array(resolver).max(8).default([]),
  /** Networks that may be crawled although they are special-purpose (a partner's own, tests). */
  allowSpecialPurpose: z.boolean().default(false),
  delegation: delegation.prefault({}),
  probe: probe.prefault({}),
  scope: scope.prefault({}),
  lease: lease.prefault({}),
  balance: balance.prefault({}),
  recalibration: recalibration.prefault({}),
  finer: finer.prefault({}),
  trust: trust.prefault({}),
  recrawl: recrawl.prefault({}),
  heartbeatSeconds: seconds(600).default(10),
  /** A crawler that is gone so long hands its subnets to the runners-up. */
  departureSeconds: seconds(86_400).default(120),
  /** What every crawler says to sites; left out, it names the contact page at publicUrl. */
  userAgent: z
    .string()
    .regex(
      /^Nearcrawl\/\S+ \(\+https?:\/\/\S+\)$/,
      "must look like: Nearcrawl/0.1 (+https://example.org/crawler)",
    )
    .max(200)
    .optional(),
  /** Whom webmasters may write to: an e-mail address or a URL, shown on the contact page. */
  contact: z.string().min(3).max(200).nullable().default(null),
  /**
   * Crawlers with an identity sign their requests to sites (Web Bot Auth, RFC 9421), naming the origin of the
   * User-Agent's page as the place of their public keys, where this coordinator must be reached.
   */
  signRequests: z.boolean().default(false),
  logLevel: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
});

export type CoordinatorConfig = DeepReadonly<z.infer<typeof configSchema> & { userAgent: string }>;

type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value;

/** Checks the settings; throws one ConfigError that lists every fault. */
export function readCoordinatorConfig(values: unknown): CoordinatorConfig {
  const checked = configSchema.safeParse(values);
  const faults = [...(checked.error?.issues.flatMap(faultsOf) ?? []), ...exposureFaults(values)];
  if (!checked.success || faults.length > 0) throw new ConfigError(faults);
  const { publicUrl, userAgent = defaultUserAgent(publicUrl) } = checked.data;
  return frozen({ ...checked.data, userAgent });
}

function defaultUserAgent(publicUrl: string | null): string {
  return `Nearcrawl/0.1 (+${(publicUrl ?? "http://127.0.0.1:7411").replace(/\/+$/, "")}/about-crawler)`;
}

function faultsOf(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${path ? `${path}.` : ""}${key}: there is no such setting`);
  }
  return [`${path || "settings"}: ${issue.message}`];
}

/** What exposure depends on, read by itself: whatever else is wrong, this is told too. */
const exposureSchema = z.object({
  listen: z.object({ host: listen.shape.host }).prefault({}),
  tls: z.unknown().optional(),
  behindProxy: z.unknown().optional(),
});

function exposureFaults(values: unknown): string[] {
  const { data } = exposureSchema.safeParse(values);
  if (!data) return [];
  const { host } = data.listen;
  const onLoopback = host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
  if (onLoopback || (data.tls ?? null) !== null || data.behindProxy === true) return [];
  return [
    `listen.host: ${host} is reachable from outside, so tls must be set (or behindProxy, when something in front does TLS)`,
  ];
}

function isResolver(text: string): boolean {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(text);
  const [, v6, v4, portText = "53"] = match ?? [];
  const port = Number(portText);
  return (isIPv6(v6 ?? "") || isIPv4(v4 ?? "")) && port >= 1 && port <= 65_535;
}

function frozen<Value>(value: Value): DeepReadonly<Value> {
  if (typeof value === "object" && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value) as DeepReadonly<Value>;
}
