/** One host, /sites/HOST: its state and one of its parts. People who may submit URLs can have it fetched again. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import { howMany, msText, spanWords, whenWords } from "#core/format";
import type { HostHash, UrlHash } from "#core/ids";
import { timeRange } from "#core/time-range";
import { hostHashOf } from "#core/url-key";
import {
  actions,
  facts,
  group,
  lead,
  note,
  picture,
  plain,
  present,
  section,
  tabs,
} from "../../ask/document.ts";
import { type Document, Fault, operationsOf, type Seen } from "../../ask/operation.ts";
import { changesCsv } from "../../crawl/changes/changes-ask.ts";
import type { PageChange } from "../../crawl/changes/page-change.ts";
import { delayWords } from "../../crawl/frontier/host-pace.ts";
import { handIn } from "../../crawl/submissions/submissions-ask.ts";
import type { Visit } from "../../web/access.ts";
import { answer, openRecord, typedConfirmation } from "../../web/api-operation.ts";
import { rangeParameters } from "../../web/chart-history.ts";
import { crawlerFor, onlyOperators, small } from "../../web/components.ts";
import { askAbout, country, countText, instant, sentence, stateBadge } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import { standingList } from "../who/who-ask.ts";
import { answerSite, firstUrlOf, type SitePorts, siteNamed } from "./site.ts";
import {
  type Site,
  type SiteAnswer,
  type SitePart,
  siteAnswer,
  siteParameters,
  siteParts,
} from "./site-api.ts";
import {
  changesPart,
  linksPart,
  overviewPart,
  type PartSeen,
  pagesPart,
  robotsPart,
  sitePath,
  speedPart,
  toCaps,
} from "./site-parts-ask.ts";
import { stateNames } from "./sites-api.ts";

export interface SiteAskPorts extends SitePorts {
  readonly scheduled: (
    hostHash: HostHash,
    asked: { readonly now: Date; readonly most: number },
  ) => Promise<UrlHash[]>;
  readonly fetchAgain: (
    keys: readonly { readonly hostHash: HostHash; readonly urlHash: UrlHash }[],
    now: Date,
  ) => Promise<number>;
}

const { get, post } = operationsOf<SiteAskPorts>();

const mostFetchedAgain = 1000;

const hostField = z
  .string()
  .max(2100)
  .meta({ description: "Its name in any spelling, or its address.", example: "www.example.org" });

const input = z.object({ host: hostField, ...siteParameters, ...rangeParameters });

type Asked = z.output<typeof input>;

const rangeAsked = (asked: Asked, now: Date) => timeRange(asked, now, asked.part === "speed" ? "30d" : "7d");

const site = get({
  ...{ path: "/api/sites/{host}", needs: "read" },
  summary: "A host: its crawler, pages, changes, preferences, speed and links",
  description:
    "What is known of the host as a whole comes with every part. Counts of hosts with very many URLs are of a part of them, and say so.",
  input,
  output: siteAnswer,
  answers: { 404: answer(siteAnswer, "The frontier does not hold the host") },
  command: {
    ...{ name: "site", says: "one host, a part at a time; or the hosts that the crawl knows (site list)" },
    help: `

The web page: /sites/HOST.

Examples:
  nearcrawl site www.example.org
  nearcrawl site www.example.org --part pages --filter failing
  nearcrawl site list --under example.org --state blocked`,
  },
  run: async ({ input: asked, ports, now }) =>
    await answerSite({ ...asked, range: rangeAsked(asked, now) }, ports, now),
  status: ({ found }) => (found ? 200 : 404),
  view: siteDocument,
});

const fetchSiteAgain = post({
  ...{ path: "/api/sites/{host}/fetch-again", needs: "url-write" },
  summary: "Make a host's scheduled pages due now",
  description:
    `Its pages that are scheduled for later, the next ${mostFetchedAgain} of them; each keeps the pace of the host. ` +
    `A single URL: POST /api/urls with deed recrawl.`,
  input: z.object({ host: hostField, confirmation: typedConfirmation("The host's name once more") }),
  output: openRecord("FetchedSiteAgain", { host: z.string(), urls: z.int() }),
  example: { confirmation: "www.example.org" },
  answer: { description: "So many are due now" },
  faults: {
    404: "The frontier does not hold the host",
    409: "Nothing of it is scheduled for later",
    422: "The confirmation is not the host's name",
  },
  run: async ({ input: asked, ports, now }) => {
    const host = siteNamed(asked.host);
    const hostHash = host === null ? null : hostHashOf(host);
    if (host === null || hostHash === null || (await ports.sites.siteRow(hostHash, now)) === null)
      throw new Fault(404, `The crawl does not know ${(host ?? asked.host).slice(0, 100)}.`);
    const keys = await ports.scheduled(hostHash, { now, most: mostFetchedAgain });
    const urls = await ports.fetchAgain(
      keys.map((urlHash) => ({ hostHash, urlHash })),
      now,
    );
    if (urls > 0) return { host, urls };
    const words = `Nothing of ${host} is scheduled for later: what there is of it is due already, or not fetched any more.`;
    throw new Fault(409, words, "Nothing to fetch again");
  },
  change: ({ host, urls }) => ({
    ...{ action: "site-recrawled", target: host, after: { urls } },
    words: `${howMany(urls, "page")} of ${host} ${urls === 1 ? "is" : "are"} due now, at the host's pace.`,
  }),
  goTo: ({ host }) => sitePath(host),
});

export const siteOperations = { site, fetchSiteAgain };

const partNames: Readonly<Record<SitePart, string>> = {
  overview: "Overview",
  pages: "Pages",
  changes: "Changes",
  robots: "Robots and preferences",
  speed: "Speed and pace",
  links: "Links",
};

const partPath = (host: string, part: SitePart) =>
  pathWith(sitePath(host), { part: part === "overview" ? null : part });

const crumbs = html`<p class="crumbs"><a href="/sites">Sites</a></p>`;

function siteDocument(told: SiteAnswer, { input: asked, viewer, now }: Seen<Asked>): Document {
  const { site: of, host, part } = told;
  if (of === null) return unknownDocument(told, viewer);
  const heading = html`${crumbs}
<div class="title-row"><h1 class="break"><bdi>${of.name}</bdi></h1>${stateBadge(of.state, stateNames[of.state])}</div>
${of.name !== host && html`<p class="mono small break">${host}</p>`}`;
  const notes = of.standing.filter(
    ({ words, code }) => words !== of.words && !["ready", "not-due"].includes(code),
  );
  const { overview, pages, changes, robots, speed, links } = told;
  const seen: PartSeen = { host, viewer, now, range: rangeAsked(asked, now) };
  return {
    ...{ title: of.name, hasOwnHeading: true },
    ...(changes && { csv: changesCsv(changes.changes as readonly PageChange[]) }),
    nodes: present([
      picture(heading, `${host}: ${stateNames[of.state]}`),
      lead(sentence(of.words)),
      notes.length > 0 && standingList(notes),
      siteFacts(of, { viewer, now }),
      tabs(
        "Parts of this host",
        siteParts.map((one) => ({
          ...{ title: partNames[one], href: partPath(host, one), isCurrent: one === part },
        })),
      ),
      ...(overview ? [...overviewPart(overview, of, seen), againSection(of, viewer)] : []),
      ...(pages ? pagesPart(pages, seen) : []),
      ...(changes ? changesPart(changes, seen) : []),
      ...(robots ? robotsPart(robots, seen) : []),
      ...(speed ? speedPart(speed, seen) : []),
      ...(links ? [linksPart(links)] : []),
    ]),
  };
}

function unknownDocument({ host, words }: SiteAnswer, viewer: Visit): Document {
  const submit = mayDo(viewer.actor, "url-write") && html` · <a href="/submit">Submit URLs of it</a>`;
  const isHost = siteNamed(host) !== null;
  return {
    ...{ title: "Unknown host", hasOwnHeading: true },
    nodes: present([
      picture(html`${crumbs}<h1 class="break"><bdi>${host}</bdi></h1>`),
      group("empty", [
        plain(
          html`<strong>${words}</strong> ${
            isHost
              ? html`<a href="${pathWith("/who", { q: host })}">Who would crawl it</a>${submit}`
              : html`<a href="/sites">All hosts</a>`
          }`,
        ),
        isHost && actions(handIn(firstUrlOf(host))),
      ]),
    ]),
  };
}

function siteFacts(of: Site, { viewer, now }: Pick<PartSeen, "viewer" | "now">) {
  const { organisation, complaints, optOut, nextAt, capDelayMs } = of;
  const open = complaints.open === 0 ? "all closed" : `${countText(complaints.open)} open`;
  const cap = capDelayMs === null ? "none" : `one request every ${delayWords(capDelayMs)}`;
  const next = nextAt && html`${whenWords(nextAt, now)} ${small(instant(nextAt))}`;
  const q = organisation?.handle ?? organisation?.name;
  return facts(
    ["Crawler", crawlerFact(of, viewer)],
    ["Subnet", subnetFact(of)],
    ["Addresses", addressesFact(of)],
    organisation && [
      "Organisation",
      html`<a href="${pathWith("/who", { q })}"><bdi>${organisation.name}</bdi></a>`,
    ],
    ["Language", of.language ?? "not known yet"],
    ["Channels", channelsFact(of)],
    ["Cap", html`${cap} ${toCaps}`],
    [
      "Opt-out",
      optOut === null
        ? html`none <a class="small" href="/about-crawler">for webmasters</a>`
        : sentence(optOut),
    ],
    complaints.all > 0 && ["Complaints", html`${countText(complaints.all)} ${small(open)}`],
    ["Next fetch", next ?? "none scheduled"],
    ["Known since", instant(of.knownSince)],
  );
}

function crawlerFact({ crawler, host }: Site, viewer: Visit) {
  const why = html`<a class="small" href="${pathWith("/who", { q: host })}">why in full</a>`;
  if (crawler === null) return html`nobody ${why}`;
  const rtt = crawler.rttMs === null ? "" : `${msText(crawler.rttMs)}; `;
  return html`<strong>${crawlerFor(viewer, crawler.name)}</strong> ${small(rtt + crawler.words)} ${why}`;
}

const subnetFact = ({ subnet, country: code }: Site) =>
  subnet === null
    ? "not registered"
    : html`${askAbout(subnet.range)} ${small(html`<bdi>${subnet.name}</bdi> ${country(code)}`)}`;

function addressesFact({ addresses }: Site) {
  if (addresses.length === 0) return "not looked up yet";
  const more = addresses.length > 4 && html` ${small(`and ${countText(addresses.length - 4)} more`)}`;
  const shown = addresses.slice(0, 4).map((address, at) => html`${at > 0 && ", "}${askAbout(address)}`);
  return html`${shown}${more}`;
}

function channelsFact({ channels }: Site) {
  const directories = channels.flatMap((channel) => channel.directories).slice(0, 5);
  const words = channels.length === 0 ? "none: crawled as the scope says" : directories.join(", ");
  return html`${words} <a class="small" href="/channels">channels</a>`;
}

function againSection({ host, urls, capDelayMs }: Site, viewer: Visit) {
  const paceSeconds = Math.max(1, (capDelayMs ?? 0) / 1000);
  const took = spanWords(Math.min(urls, mostFetchedAgain) * paceSeconds);
  return section(
    "Fetch it again",
    [
      note(html`Its pages that are scheduled for later become due now, the next ${countText(mostFetchedAgain)} of them. The host keeps its
pace: it takes ${took} or more. Single URLs: by their button under <a href="${partPath(host, "pages")}">Pages</a>.`),
      actions({ operation: fetchSiteAgain, path: { host }, typed: host, label: "Fetch its pages again" }),
      picture(onlyOperators(viewer.actor, "url-write", "Fetching it again")),
    ],
    { id: "again" },
  );
}
