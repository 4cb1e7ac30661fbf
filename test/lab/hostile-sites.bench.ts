/**
 * What hostile sites get of a crawl: a made-up web in the real frontier (outbox, hosts, leases, results in Postgres), in which one
 * site in a hundred has a wildcard in DNS, or links to a farm of domains, 2,000 new hosts a page. Half of the honest sites have one
 * host, a few have hundreds. Every budget is a 25th of the default's, but for the 20 hosts that a domain begins with.
 * Then what it costs to let in hosts and URLs, of sites that are all honest.
 * Run: npm run bench -- hostile-sites [short | admission]
 */

import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { inTransaction } from "#coordinator/database/transaction";
import { createDelegationStore } from "#coordinator/delegation/store";
import { NewHostBudget } from "#coordinator/frontier/budgets";
import { effectsOf } from "#coordinator/frontier/link-outbox";
import { postEffects } from "#coordinator/frontier/link-outbox-store";
import { createResultStore } from "#coordinator/results/result-store";
import type { SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { formatTable } from "#ops/cli/output";
import {
  arrivedResult,
  emptyOutbox,
  keyOf,
  noon,
  scope as openScope,
  seeds,
  spoolId,
  subnet,
} from "../support/store-world.ts";
import { leaseWorld } from "./leases/lease-world.ts";

const [part = ""] = process.argv.slice(2);
const isShort = part === "short";
const size = {
  honest: isShort ? 300 : 1500,
  hostileShare: 0.01,
  days: isShort ? 2 : 4,
  roundsADay: isShort ? 6 : 12,
  hostsARound: isShort ? 60 : 100,
};
const scope = { ...openScope, newHostsPerDomainAndDay: 40, newHostsPerLinkingSiteAndDay: 200 };
const hostsADay = 2000;
const linksAPage = 2000;

interface Site {
  readonly domain: string;
  readonly kind: "honest" | "wildcard" | "farm";
  readonly hosts: number;
}

const random = seededRandom(7);
const pick = <One>(of: readonly One[]): One => of[Math.floor(random() * of.length)]!;
const isHostile = (host: string) => /(evil|farm)\d/.test(host);
const hostOf = ({ domain, hosts }: Site) => {
  const n = Math.floor(random() * hosts);
  return n === 0 ? domain : `h${n}.${domain}`;
};

const sites = webOf();
const world = await leaseWorld();
const { pool, frontier } = world;
const results = createResultStore(pool);
const north = await createCrawlerStore(pool).register({ name: "north", keyHash: "key of north" });
if (part !== "admission") await crawl();
await admission();
await world.close();
process.exit();

function webOf(): readonly Site[] {
  const honest = Array.from({ length: size.honest }, (_, n): Site => {
    const kind = random();
    const hosts =
      kind < 0.5 ? 1 : kind < 0.95 ? 2 + Math.floor(random() * 4) : 10 + Math.floor(random() ** 3 * 300);
    return { domain: `s${n}.example`, kind: "honest", hosts };
  });
  const hostile = Array.from(
    { length: Math.round((size.honest * size.hostileShare) / (1 - size.hostileShare)) },
    (_, n): Site => {
      return { domain: `evil${n}.example`, kind: n % 2 === 0 ? "wildcard" : "farm", hosts: 1 };
    },
  );
  return [...honest, ...hostile];
}

/** URLs that the page links to, and the registrable domain that it is of. */
function linksOf(host: string): { readonly from: string; readonly urls: readonly string[] } {
  const from = host.split(".").slice(-2).join(".");
  const site = sites.find(({ domain }) => domain === from);
  const own = [1, 2].map((n) => `http://${host}/${n}`);
  const made = () => Math.floor(random() * 1e9);
  if (isHostile(host)) {
    const isWildcard = site === undefined ? false : site.kind === "wildcard";
    const urls = Array.from({ length: linksAPage }, () =>
      isWildcard ? `http://h${made()}.${from}/` : `http://farm${made()}.example/`,
    );
    return { from, urls: [...own, ...urls] };
  }
  const others = Array.from({ length: 6 }, () => `http://${hostOf(pick(sites))}/`);
  return { from, urls: [...own, ...(site === undefined ? [] : [`http://${hostOf(site)}/`]), ...others] };
}

async function ownSubnets(): Promise<readonly SubnetId[]> {
  const subnets: SubnetId[] = [];
  for (let n = 0; n < 40; n++) {
    const subnetId = await subnet(pool, `198.51.${n}.0`, `198.51.${n}.255`);
    await createDelegationStore(pool).delegateOwnSubnet(subnetId, north, noon);
    subnets.push(subnetId);
  }
  return subnets;
}

async function resolveAll(subnets: readonly SubnetId[], now: Date): Promise<void> {
  const { rows: hosts } = await pool.query<{ host: string }>(
    "select host from frontier_host where state = 'unresolved'",
  );
  const resolutions = hosts.map(({ host }) => {
    const n = Math.floor(random() * subnets.length);
    const addresses = [`198.51.${n}.${Math.floor(random() * 256)}`];
    return { type: "resolved", host, addresses, subnetId: subnets[n]!, ttlSeconds: 86_400 } as const;
  });
  for (let start = 0; start < resolutions.length; start += 500)
    await frontier.saveResolutions(resolutions.slice(start, start + 500), now);
}

async function crawl(): Promise<void> {
  const subnets = await ownSubnets();
  const newHosts = new NewHostBudget(hostsADay);
  await frontier.admit(seeds(...sites.slice(0, 20).map(({ domain }) => `http://${domain}/`)), scope, noon);
  const fetched = { honest: 0, hostile: 0 };
  let sequence = 0;
  const rows: string[][] = [];
  for (let round = 0; round < size.days * size.roundsADay; round++) {
    const now = new Date(noon.getTime() + (round * 86_400_000) / size.roundsADay);
    await resolveAll(subnets, now);
    const request = {
      crawlerId: north,
      hosts: size.hostsARound,
      urlsPerHost: 3,
      leaseSeconds: 3600,
      addressRestSeconds: 0,
      now,
    };
    for (const { leaseId, host, urls } of await frontier.leaseHosts(request)) {
      fetched[isHostile(host) ? "hostile" : "honest"] += urls.length;
      const fetches = urls.map(({ url }) => arrivedResult({ sequence: ++sequence, leaseId, url }));
      await results.take({
        ...{ crawlerId: north, spoolId, results: fetches, scope, now, lastSequence: sequence },
      });
      for (const _ of urls) {
        const { from: linkedFrom, urls: named } = linksOf(host);
        const effects = effectsOf(
          named.map((url) => ({ key: keyOf(url), depth: 1, linkedFrom })),
          [],
        );
        await inTransaction(pool, async (client) => void (await postEffects(client, north, effects)));
      }
    }
    await emptyOutbox(pool, now, { scope, newHosts });
    if ((round + 1) % size.roundsADay === 0) rows.push(await dayRow((round + 1) / size.roundsADay, fetched));
  }
  const right = (title: string) => ({ title, align: "right" as const });
  console.log(
    formatTable(
      [
        right("day"),
        ...["hosts", "of these hostile", "honest found", "fetches", "of these hostile"].map(right),
      ],
      rows,
    ),
  );
}

async function dayRow(
  day: number,
  { honest, hostile }: { readonly honest: number; readonly hostile: number },
): Promise<string[]> {
  const known = (await pool.query<{ host: string }>("select host from frontier_host")).rows.map(
    ({ host }) => host,
  );
  const bad = known.filter(isHostile).length;
  const all = sites.reduce((sum, site) => sum + (site.kind === "honest" ? site.hosts : 0), 0);
  const percent = (part: number, whole: number) => `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`;
  return [
    ...[String(day), String(known.length), percent(bad, known.length), percent(known.length - bad, all)],
    ...[String(honest + hostile), percent(hostile, honest + hostile)],
  ];
}

/** Hosts of honest sites, two a domain, ten URLs each, of which a third is known when it is named again. */
async function admission(): Promise<void> {
  await pool.query("delete from link_outbox; delete from frontier_url; delete from frontier_host");
  const domains = isShort ? 1000 : 4000;
  const scopeAtDefaults = { ...openScope, newHostsPerDomainAndDay: 1000, newHostsPerLinkingSiteAndDay: 5000 };
  const named = Array.from(
    { length: domains * 20 },
    (_, n) => `http://h${n % 2}.d${Math.floor(n / 20)}.example/${n % 10}`,
  );
  const posted = [...named, ...named.filter((_, n) => n % 2 === 0)];
  for (let start = 0; start < posted.length; start += 200) {
    const urls = posted
      .slice(start, start + 200)
      .map((url, n) => ({ key: keyOf(url), depth: 1, linkedFrom: `from${(start + n) % 997}.example` }));
    await inTransaction(pool, async (client) => void (await postEffects(client, north, effectsOf(urls, []))));
  }
  const startMs = performance.now();
  await emptyOutbox(pool, noon, { scope: scopeAtDefaults, newHosts: new NewHostBudget(50_000) });
  const tookMs = performance.now() - startMs;
  console.log(
    `admission: ${posted.length} URLs on ${2 * domains} new hosts of ${domains} domains in ${Math.round(tookMs)} ms, ${Math.round((1000 * tookMs) / posted.length)} µs a URL`,
  );
}
