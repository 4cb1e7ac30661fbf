/** What the answer to `who` is read from: the outside, as the flow knows it. */

import type { HostHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { PeerDistance } from "../delegation/denied-targets.ts";
import type { OwnerReads } from "../federation/owner-reads.ts";
import type { HostReport, UrlReport, WaitingReport } from "../frontier/frontier-reports.ts";
import type { FrontierOrder, OrderName } from "../frontier/order/strategies.ts";
import type { CrawlScope, NameResolver } from "../frontier/ports.ts";
import type { FinerReport } from "./explain-delegation.ts";
import type {
  ChainSubnet,
  CrawlerReport,
  DelegationChange,
  NearMatch,
  Neighbours,
  OrganisationReport,
  RecordedRound,
  SubnetList,
} from "./who-answer.ts";
import type { LeavingChannel } from "./who-channel.ts";
import type { FleetSets } from "./who-domain-sets.ts";
import type { PlacedUrl } from "./who-order.ts";
import type { SiteWishes } from "./who-wishes.ts";

/** What the answer is read from; every method is bounded and takes untrusted text as parameters only. */
export interface WhoReads extends OwnerReads {
  chainOf(first: string, last: string): Promise<ChainSubnet[]>;
  /** At most `each` on either side. */
  neighboursOf(subnetId: number, each: number): Promise<Neighbours | null>;
  subnetsInside(range: { first: string; last: string }, limit: number): Promise<SubnetList>;
  subnetsOfCrawler(crawlerId: number, limit: number): Promise<SubnetList>;
  organisationNamed(text: string, subnetLimit: number): Promise<OrganisationReport | null>;
  namesLike(text: string, limit: number): Promise<NearMatch[]>;
  crawlerNamed(name: string): Promise<CrawlerReport | null>;
  allCrawlers(): Promise<CrawlerReport[]>;
  crawlerRtts(): Promise<PeerDistance[]>;
  roundById(roundId: number): Promise<RecordedRound | null>;
  latestRoundOf(subnetId: number): Promise<RecordedRound | null>;
  /** What is in force for a host in place of its subnet's delegation. */
  finerOfHost(hostHash: HostHash): Promise<FinerReport | null>;
  /** The fleet's domain sets, with the host's language. */
  fleetSets(hostHash: HostHash): Promise<FleetSets>;
  /** In the order of their addresses. */
  partsOf(subnetId: number): Promise<FinerReport[]>;
  historyOf(subnetId: number, limit: number): Promise<DelegationChange[]>;
  urlReport(key: UrlKey): Promise<UrlReport | null>;
  /** Where it stands among the due URLs of its host; null: the frontier does not hold it. */
  urlPlace(key: UrlKey, as: { readonly strategy: OrderName; readonly now: Date }): Promise<PlacedUrl | null>;
  hostReport(hostHash: HostHash): Promise<HostReport | null>;
  waitingIn(subnetId: number): Promise<WaitingReport>;
  rejectionOf(url: string): Promise<string | null>;
  /** Of a URL that the frontier does not hold; null: no channel leaves it out. */
  leavingChannel(key: UrlKey): Promise<LeavingChannel | null>;
  /** Of a host (null: none was asked for) and of addresses. */
  wishesOf(host: string | null, addresses: readonly string[]): Promise<SiteWishes>;
}

export interface WhoPorts {
  readonly reads: WhoReads;
  readonly resolver: NameResolver;
  /** How far the crawl goes; null where the coordinator's settings are not at hand. */
  readonly scope: CrawlScope | null;
  /** In what order URLs are fetched; left out where the coordinator's settings are not at hand. */
  readonly order?: FrontierOrder;
  /** The coordinator's own domain sets; left out where its settings are not at hand. */
  readonly domainSets?: readonly string[];
}
