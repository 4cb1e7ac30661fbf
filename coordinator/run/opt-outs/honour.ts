/**
 * Applies opt-outs in the running fleet. When one is recorded, by any coordinator or command, connected crawlers are
 * told first, then the frontier is brought in line. A site proves that a request is its own by a DNS record:
 *
 *   _nearcrawl.www.example.org.  TXT  "opt-out=TOKEN"
 *
 * This takes no request to a site that wants none, and only the holder of the domain can make the record.
 * Alternatively the same words are in a file (`readProofFile`), which is requested only if somebody says that it is
 * there. A file proves its host and what is on it, but no hosts below it.
 */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { Agent } from "undici";
import type { Change } from "#core/audit";
import { arrivalLingerMs, Gathered } from "#core/coalesce";
import type { CrawlerId } from "#core/ids";
import { hostInUrl, isHostName } from "#core/ip/url-host";
import { growingTo } from "#core/small-collections";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { ToldOf } from "../../web/api-operation.ts";
import { connectorTo, firstWords, type OutsideRules, outsideAddress } from "../../web/outside-client.ts";
import type { OptOutMarks } from "./mark-writes.ts";
import { readOptOut, type SiteWishes, type StoppedPart, scopeWords, type Unproven } from "./opt-out.ts";
import type { erasedPage } from "./opt-outs-api.ts";
import type { OptOutStore } from "./store.ts";

/** Crawlers are told of opt-outs at least this recent, and as far back as one can be offline and keep its leases. */
const leastStopMs = 15 * 60_000;
/** Erasures are announced for this long, since a crawler may be offline for days with results in its spool. */
const erasedMs = 30 * 86_400_000;
/** Maximum number of sites, and of parts of sites, that are announced. */
const mostSites = 10_000;
const sitesPerMessage = 200;
const partsPerMessage = 50;
/** Maximum sites checked for their proof in one pass. */
const confirmationsPerPass = 50;
/** How long the answer for a site's file is cached, however often somebody says that it is there. */
const fileKeptMs = 600_000;
const filesKept = 10_000;
/** A host and its `www.`. If more hosts are affected, proof needs the DNS record. */
const mostHostsOfFile = 2;

const stopWords = "the site has opted out";

interface OptOutPorts {
  readonly optOuts: OptOutStore;
  readonly marks: OptOutMarks;
  readonly online: () => readonly CrawlerId[];
  /** Returns false if the crawler is gone or too old for the message. */
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  /** Returns TXT records; none if the look-up fails. */
  readonly texts: (name: string) => Promise<readonly string[]>;
  /** Returns the words of a site's proof file, or none. Never rejects. */
  readonly proofFile: (site: string) => Promise<readonly string[]>;
  /** How long an offline crawler may work on its leases. */
  readonly departureMs: number;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly now: () => Date;
}
/** Maximum crawlers that are notified together. */
const mostTogether = 1000;

export class OptOutHonours {
  readonly #ports: OptOutPorts;
  readonly #stopMs: number;
  /** What connected crawlers were told, and when. */
  readonly #told = new Map<string, number>();

  readonly #files = new LRUCache<
    string,
    { readonly atMs: number; readonly words: Promise<readonly string[]> }
  >({ ...growingTo(filesKept) });

  /** One query serves all crawlers that are welcomed at the same time. */
  readonly #stops = new Gathered(
    async (crawlerIds: readonly CrawlerId[]) => {
      const stops = await this.#stopsOfLate();
      return crawlerIds.map(() => stops);
    },
    mostTogether,
    arrivalLingerMs,
  );

  constructor(ports: OptOutPorts) {
    this.#ports = ports;
    this.#stopMs = leastStopMs + ports.departureMs;
  }

  /** Runs after a notice and periodically. */
  async pass(): Promise<void> {
    const { optOuts, marks, log, now } = this.#ports;
    await this.#tellNews();
    const lapsed = await optOuts.lapse(now());
    if (lapsed > 0) log.info({ optOuts: lapsed }, "opt-outs lapsed, for nobody confirmed them");
    const { hosts, leases, pages, erased } = await marks.apply(now());
    if (Object.keys(erased).length > 0) log.info({ erased }, "pages that are to be erased are");
    if (hosts + pages > 0) {
      log.info({ hosts, leases: leases.length, pages }, "the frontier is in line with the opt-outs");
    }
    // Hosts of a network are known by name only after they are marked.
    await this.#tellNews();
  }

  /** Tells a newly welcomed crawler what opted out while it was offline. */
  async tell(crawlerId: CrawlerId): Promise<void> {
    this.#send([crawlerId], await this.#stops.ask(crawlerId));
  }

  /** Looks for the proofs that sites have published. Returns how many it found. */
  async confirm(): Promise<number> {
    const { optOuts, texts, log, now } = this.#ports;
    const open = await optOuts.toConfirm(confirmationsPerPass, now());
    const found = await Promise.all(
      open.map(async (one) => {
        const { optOutId, site } = one;
        const records = await texts(confirmationName(site));
        const isInDns = records.some((record) => record.trim() === confirmationText(one.token));
        if (!isInDns && !(await this.#isInFile(one))) return false;
        await optOuts.confirm(optOutId, "site", now());
        log.info({ optOutId, site, by: isInDns ? "dns" : "file" }, "a site has proved that it opted out");
        return true;
      }),
    );
    return found.filter(Boolean).length;
  }

  async #isInFile({ optOutId, site, scope, token, hasFile }: Unproven): Promise<boolean> {
    if (!hasFile) return false;
    const { optOuts, proofFile, now } = this.#ports;
    const atMs = now().getTime();
    const known = this.#files.get(site);
    const isFresh = known !== undefined && atMs - known.atMs < fileKeptMs && atMs >= known.atMs;
    const { words } = isFresh ? known : { words: proofFile(site) };
    if (!isFresh) this.#files.set(site, { atMs, words });
    if (!(await words).includes(confirmationText(token))) return false;
    return scope !== "subdomains" || (await optOuts.preview(optOutId, now()))!.hosts <= mostHostsOfFile;
  }

  async #tellNews(): Promise<void> {
    const nowMs = this.#ports.now().getTime();
    for (const [name, atMs] of this.#told) if (nowMs - atMs > erasedMs) this.#told.delete(name);
    const { sites, parts } = await this.#stopsOfLate();
    const isNews = (name: string) => {
      const toldMs = this.#told.get(name);
      return toldMs === undefined || nowMs - toldMs > this.#stopMs;
    };
    const news = {
      sites: sites.filter(isNews),
      parts: parts.filter((part) => (part.erases ? !this.#told.has(nameOf(part)) : isNews(nameOf(part)))),
    };
    this.#send(this.#ports.online(), news);
    for (const name of [...news.sites, ...news.parts.map(nameOf)]) this.#told.set(name, nowMs);
  }

  async #stopsOfLate(): Promise<Stops> {
    const { optOuts, now } = this.#ports;
    const [nowMs, most] = [now().getTime(), mostSites];
    const since = new Date(nowMs - this.#stopMs);
    const sites = await optOuts.sitesSince(since, most);
    const parts = await optOuts.partsSince(since, new Date(nowMs - erasedMs), most);
    // No crawler can have a lease of an invalid host name, and sending one would only end sessions.
    return { sites: sites.filter(isHostName), parts };
  }

  #send(crawlers: readonly CrawlerId[], { sites, parts }: Stops): void {
    const reason = stopWords;
    for (let at = 0; at < sites.length; at += sitesPerMessage) {
      const domains = sites.slice(at, at + sitesPerMessage);
      for (const crawlerId of crawlers)
        this.#ports.send(crawlerId, { type: "coordinator:stop-hosts", domains, reason });
    }
    for (let at = 0; at < parts.length; at += partsPerMessage) {
      const some = parts.slice(at, at + partsPerMessage);
      for (const crawlerId of crawlers)
        this.#ports.send(crawlerId, { type: "coordinator:stop-parts", parts: some, reason });
    }
  }
}

interface Stops {
  /** The sites, each with everything below it. */
  readonly sites: readonly string[];
  readonly parts: readonly StoppedPart[];
}

const nameOf = ({ scope, of, erases }: StoppedPart) => `${erases ? "erase" : "stop"} ${scope} ${of}`;

// Erases one page by an opt-out. Crawlers are told of it as of any other opt-out.

type ErasedPage = ToldOf<typeof erasedPage>;

/** Returns what was erased, or why the text names no page. Can be repeated. */
export async function erasePageOf(
  { optOuts, marks }: Pick<OptOutPorts, "marks"> & { readonly optOuts: Pick<OptOutStore, "request"> },
  asked: { readonly url: string; readonly words: string },
  now: Date,
): Promise<ErasedPage | string> {
  // Elsewhere a bare name means a whole site. Here it would silently mean the site's front page.
  const isUrl = /^https?:\/\//i.test(asked.url.trim());
  const target = readOptOut(asked.url, "networks", "url");
  if (typeof target === "string") return target;
  if (!isUrl || target.part?.scope !== "url")
    return "That is no URL of a page, such as https://www.example.org/a.";
  const made = { source: "operator", replyTo: null, requester: null, confirmed: true, erases: true } as const;
  const { optOutId } = await optOuts.request({ ...made, target, words: asked.words }, now);
  const rows = await marks.erase(optOutId, now);
  const urlDigest = createHash("sha256").update(`https:${target.part.of}`).digest("hex");
  return { optOutId, host: target.site ?? "", urlDigest, rows };
}

/** The audit log's proof of the erasure. It names the page by host and digest, and repeats none of its content. */
export function changeOfErasure({ host, rows, ...page }: ErasedPage): Change {
  const places = Object.entries(rows).map(([table, count]) => `${table} ${count}`);
  const gone =
    places.length === 0 ? "nothing was kept of it" : `rows that went or were cleared: ${places.join(", ")}`;
  const words = `A page of ${host} was erased (SHA-256 of its URL: ${page.urlDigest}); ${gone}. Exports delete it with the change feed; crawlers were told.`;
  return { action: "page-erased", target: host, words, after: { ...page, rows } };
}

/** The DNS name at which a site publishes its proof. */
export const confirmationName = (site: string): string => `_nearcrawl.${site}`;
export const confirmationText = (token: string): string => `opt-out=${token}`;

/** Explains the opt-out to people who look the site up. */
export function optOutWords(optOut: NonNullable<SiteWishes["optOut"]>): string {
  const { target, scope, state, lapsesAt } = optOut;
  const until =
    state === "unconfirmed" && lapsesAt !== null ? ` (unconfirmed, so until ${lapsesAt.slice(0, 10)})` : "";
  const what =
    scope === "url"
      ? "no crawler requests it, and no search finds it"
      : "no crawler requests anything from it, and no search finds its pages";
  return `The ${scopeWords[scope]} ${target} has opted out${until}: ${what}.`;
}

// Reads the file by which a site proves its opt-out. Strangers choose the name, so it is resolved here,
// special-purpose addresses are refused unless the settings allow them, only https is used, time and bytes are
// limited, and redirects are not followed, because another host proves nothing.

export const proofFileOf = (site: string): string =>
  `https://${hostInUrl(site)}/.well-known/nearcrawl-opt-out.txt`;

interface ProofFileRules extends OutsideRules {
  readonly userAgent: string;
  /** Certificate authorities in PEM form. Default: the public ones. */
  readonly authorities?: string;
}

const timeoutMs = 10_000;

/** Returns at most 200 characters of the file; nothing if it is unavailable. Never rejects. */
export async function readProofFile(fileUrl: string, rules: ProofFileRules): Promise<readonly string[]> {
  const url = new URL(fileUrl);
  const address = await outsideAddress(url, rules);
  if (typeof address !== "string") return [];
  const agent = new Agent({ connections: 1, connect: connectorTo(address, { ...rules, timeoutMs }) });
  try {
    const { statusCode, body } = await agent.request({
      ...{ origin: url.origin, path: url.pathname, method: "GET" },
      headers: { "user-agent": rules.userAgent, accept: "text/plain" },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return statusCode === 200 ? (await firstWords(body)).split(" ") : [];
  } catch {
    return [];
  } finally {
    await agent.destroy();
  }
}
