/**
 * Crawls one leased host slice: its URLs one after the other over one connection, at the host's pace, as
 * long as the lease, the limits and the spool allow. Every URL that is dealt with gives one result; the
 * rest is left to be given back, with the reason.
 */
import type { Lease } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import { type FetchedPage, fetchPage, outcomeOfFailure } from "./fetch/fetch-page.ts";
import type { RobotsCache } from "./fetch/robots.ts";
import { SiteClient, type Timeouts } from "./fetch/site-client.ts";
import type { Governor } from "./limits/governor.ts";
import type { HostGates } from "./limits/host-gate.ts";
import type { Connector } from "./net/connector.ts";
import { Failure } from "./net/failure.ts";

export interface SliceTools {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly governor: Governor;
  readonly gates: HostGates;
  readonly robots: RobotsCache;
  readonly userAgent: () => string;
  readonly quiet: () => Promise<void>;
  /** Keeps a result; false when there is no room for it. */
  readonly keep: (leaseId: string, result: FetchResult) => boolean;
  readonly now: () => Date;
}

/** Null: every URL has its result. Otherwise why the rest is given back, in words. */
export type SliceEnding = string | null;

/** A lease is left alone this long before it runs out, so that results arrive in its time. */
const leaseMarginMs = 2000;
/** Pages of one host lie on few origins (http, https); more clients are not kept open. */
const maxClients = 4;

export async function crawlSlice(lease: Lease, tools: SliceTools, signal: AbortSignal): Promise<SliceEnding> {
  if (!tools.gates.enter(lease.host)) return "the host is still being crawled under an earlier lease";
  const clients = new Map<string, SiteClient>();
  const slice = {
    lease,
    tools,
    signal,
    clients,
    endsAtMs: Date.now() + lease.expiresInSeconds * 1000 - leaseMarginMs,
  };
  tools.gates.notBefore(lease.host, Date.now() + lease.waitMs);
  try {
    for (const task of lease.urls) {
      const ending = await crawlOne(slice, task);
      if (ending !== null) return ending;
    }
    return null;
  } finally {
    tools.gates.leave(lease.host);
    await Promise.all([...clients.values()].map((client) => client.close()));
  }
}

interface Slice {
  readonly lease: Lease;
  readonly tools: SliceTools;
  readonly signal: AbortSignal;
  readonly clients: Map<string, SiteClient>;
  readonly endsAtMs: number;
}

async function crawlOne(slice: Slice, task: Lease["urls"][number]): Promise<SliceEnding> {
  const { lease, tools } = slice;
  if (!belongsTo(task.url, lease.host)) return keep(slice, strayResult(task.url, tools.now()));
  const held = await waitForTurn(slice);
  if (held !== null) return held;
  const client = clientFor(slice, new URL(task.url).origin);
  const robots = await tools.robots.of(client);
  if (robots.type === "known") tools.gates.crawlDelay(lease.host, robots.crawlDelaySeconds);
  if (robots.askedMs !== null) {
    const answer = { status: null, tookMs: robots.askedMs, retryAfterSeconds: null };
    tools.gates.answered(lease.host, answer, Date.now());
    const heldAgain = robots.type === "known" ? await waitForTurn(slice) : null;
    if (heldAgain !== null) return heldAgain;
  }
  const { quiet, now } = tools;
  const take = (bytes: number) => tools.governor.takeBytes(bytes);
  const fetched = await fetchPage(task, { client, robots, userAgent: tools.userAgent(), take, quiet, now });
  if (slice.signal.aborted && fetched.result.outcome.type === "failed") return String(slice.signal.reason);
  return keep(slice, { ...fetched.result, hostDelayMs: delayAfter(slice, fetched) });
}

function delayAfter(slice: Slice, fetched: FetchedPage): number {
  const { gates, governor } = slice.tools;
  const { host } = slice.lease;
  if (!fetched.contacted) return gates.waitMs(host, Date.now());
  governor.countPage();
  return Math.min(86_400_000, Math.max(0, gates.answered(host, fetched, Date.now())));
}

/** Null when it is our turn; else why the slice ends here. */
async function waitForTurn(slice: Slice): Promise<SliceEnding> {
  const { lease, tools, signal, endsAtMs } = slice;
  if (signal.aborted) return String(signal.reason);
  if (!tools.governor.mayFetch()) return "the day's limit is reached";
  const waitMs = tools.gates.waitMs(lease.host, Date.now());
  if (Date.now() + waitMs >= endsAtMs) return "the lease ends before the host may be asked again";
  if (waitMs > 0) await pause(waitMs, signal);
  return signal.aborted ? String(signal.reason) : null;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

function clientFor(slice: Slice, origin: string): SiteClient {
  const known = slice.clients.get(origin);
  if (known) return known;
  if (slice.clients.size >= maxClients) {
    const [oldest, client] = slice.clients.entries().next().value!;
    slice.clients.delete(oldest);
    void client.close();
  }
  const { connector, timeouts } = slice.tools;
  const client = new SiteClient({ origin, connector, timeouts });
  slice.clients.set(origin, client);
  return client;
}

function keep(slice: Slice, result: FetchResult): SliceEnding {
  return slice.tools.keep(slice.lease.leaseId, result) ? null : "the spool is full";
}

function belongsTo(url: string, host: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return /^https?:$/.test(protocol) && hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "") === host;
}

function strayResult(url: string, now: Date): FetchResult {
  return {
    url,
    fetchedAt: now.toISOString(),
    outcome: outcomeOfFailure(new Failure("internal", "the URL is not one of the lease's host")),
    address: null,
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
    wireBytes: 0,
    bodyBytes: 0,
    etag: null,
    lastModified: null,
    hostDelayMs: 0,
    page: null,
  };
}
