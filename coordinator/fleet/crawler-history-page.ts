/** A crawler's past, for operators and its partner: keys, releases, trust, incidents, moves, absences, and all by time. */
import { mayDo } from "#core/actor";
import { bytesText, howMany, spanWords } from "#core/format";
import type { Absence } from "../crawlers/crawler.ts";
import type { MoveLine } from "../crawlers/move-store.ts";
import type { MoveStep } from "../crawlers/moves.ts";
import { incidentTable } from "../overview/incidents-page.ts";
import { standingWords, type TrustEvidence, type TrustReport, unprovenWords } from "../trust/trust-api.ts";
import {
  askFor,
  crawlerFor,
  crawlerPath,
  dateOr,
  empty,
  fact,
  pager,
  small,
  tableOf,
  titleRow,
} from "../web/components.ts";
import { ago, countText, instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import type { CrawlerLogPage, Inside, Operation } from "./crawler-api.ts";
import type { CrawlerView } from "./crawler-view.ts";

export interface CrawlerInside {
  readonly crawler: CrawlerView["crawler"];
  readonly inside: Inside;
  readonly at: string;
}

export function insideSections(of: CrawlerInside, viewer: PageViewer): Html {
  const { crawler, inside, at } = of;
  return html`${identitySection(inside)}
${keySection(inside)}
${releaseSection(inside)}
${trustSection(inside.trust, viewer)}
<section id="incidents"><h2>Incidents of the last week</h2>${
    inside.incidents.length === 0
      ? empty("None.", "Nothing that it sent was refused.")
      : html`${incidentTable(inside.incidents, { withCrawler: false })}${
          mayDo(viewer.actor, "fleet-read") &&
          html`<p class="small"><a href="${pathWith("/fleet/incidents", { crawler: crawler.name })}">All kept</a></p>`
        }`
  }</section>
${inside.moves.length > 0 && html`<section><h2>Moves</h2>${moveTable(inside.moves, viewer)}</section>`}
${logSection(inside.log, crawler.name, at)}
${
  mayDo(viewer.actor, "audit-read") &&
  html`<p class="small"><a href="${pathWith("/audit", { target: crawler.name })}">Changes in full, with before and after</a></p>`
}`;
}

function identitySection({ identity }: Inside): Html {
  const { publicKey, signingKey, seenAddress, addressBefore, addressChangedAt, copiedAt, lastEnd } = identity;
  const { contact, isListed } = identity;
  const moved =
    addressBefore !== null &&
    addressChangedAt !== null &&
    html` ${small(html`${addressBefore} until ${instant(addressChangedAt)}`)}`;
  const signs =
    signingKey &&
    html`<code class="break">${signingKey.publicKey}</code> <span class="small">since ${instant(signingKey.since)},
until ${instant(signingKey.until)} at the latest; keyid ${signingKey.keyId}</span>`;
  const key = publicKey && html`<code class="break">${publicKey}</code>`;
  return html`<section><h2>Identity</h2>
${
  copiedAt &&
  html`<p class="fault" role="alert">Its folder was copied: two machines showed it, last at ${instant(copiedAt)}. Have one of them
stopped, or reissue its credentials.</p>`
}
<dl class="facts">
${fact("Public key (Ed25519)", key ?? "none: it shows only its key")}
${signs && fact("Signs requests with", signs)}
${fact("Connects from", seenAddress === null ? "never seen" : html`${seenAddress}${moved}`)}
${fact("Its address is", isListed ? "in the public list of the fleet" : "in no public list, as its partner wishes")}
${fact("Contact of its partner", contact ?? "not told")}
${lastEnd && fact("Last words of its process", html`${lastEnd.reason} ${small(instant(lastEnd.at))}`)}
</dl></section>`;
}

function keySection({ keys }: Inside): Html {
  if (keys.length === 0) return nothing;
  const heads = ["Key .number", "Issued", "Arrived", "Last used", "Ends", "For"];
  return html`<section><h2>Keys</h2><p class="small">Kept as hashes; each is replaced by itself after 90 days.</p>${tableOf(
    "Keys",
    heads,
    keys,
    (key) => [
      key.keyId,
      instant(key.issuedAt),
      dateOr(key.keptAt, "not yet known"),
      dateOr(key.lastUsedAt, "never"),
      key.revokedAt === null
        ? dateOr(key.expiresAt, "when it is replaced")
        : html`revoked ${instant(key.revokedAt)}`,
      key.scopes.includes("crawl") ? "crawling" : "measuring only",
    ],
  )}</section>`;
}

function releaseSection({ offers }: Inside): Html {
  if (offers.length === 0) return nothing;
  const heads = ["Release", "Offered", "What came of it"];
  return html`<section><h2>Releases that it was offered</h2>${tableOf("Releases", heads, offers, (offer) => [
    offer.version,
    instant(offer.offeredAt),
    html`${offer.state ?? "no report yet"}${offer.reportedAt && html` ${small(instant(offer.reportedAt))}`}${offer.reason && small(offer.reason)}`,
  ])}</section>`;
}

const evidenceShown = 20;

function trustSection(trust: TrustReport | null, viewer: PageViewer): Html {
  if (trust === null) return nothing;
  const doubts = [trust.distrusted, trust.probesDoubted].filter((one) => one !== null);
  return html`<section id="trust"><h2>Trust: ${standingWords[trust.standing]}</h2>
${doubts.map((one) => html`<p class="fault">Since ${instant(one.since)}: ${one.words}.</p>`)}
${trust.standing === "unproven" ? html`<p class="fault">${unprovenWords(trust.comparisons)}</p>` : nothing}
<p>${comparisonWords(trust)}</p>
${
  trust.evidence.length === 0
    ? nothing
    : html`<details><summary>${howMany(trust.evidence.length, "page")} of evidence, the latest first</summary>
<ol class="plain">${trust.evidence.slice(0, evidenceShown).map((one) => evidence(one, viewer))}</ol></details>`
}</section>`;
}

function comparisonWords({ pages, comparisons, restoredAt, connected }: TrustReport): Html {
  const { agreed, alone, once } = comparisons;
  const all = agreed + alone + once;
  const counted =
    all === 0
      ? "None of its pages has been compared yet."
      : html`Of ${howMany(pages, "page")} ${howMany(all, "comparison")} count: ${countText(agreed)} agree with another crawler's,
${countText(alone)} differ from everybody's each time, ${countText(once)} differed once.`;
  return html`${counted}${restoredAt && html` An operator restored it ${instant(restoredAt)}.`}${
    connected < 3 && " Fewer than three crawlers are connected: nobody can say which of two is right."
  }`;
}

function evidence(one: TrustEvidence, viewer: PageViewer): Html {
  const differs = one.verdict === "alone" ? "differs each time" : "differed once";
  const counts = `${one.counts ? "counts" : "does not count"}: ${one.why}`;
  const said = one.opinions.map(
    (opinion) => html`<li>${opinion.crawler} found ${opinion.said}, ${instant(opinion.at)}</li>`,
  );
  return html`<li>${askFor(viewer, one.url)} ${small(html`${instant(one.at)}: ${differs}, ${one.words}; ${counts}.`)}<ul
class="plain small">${said}</ul></li>`;
}

const absencesShown = 10;

/** Everybody sees when and why; last words come from the crawler, for operators and its partner alike. */
export function absenceSection({ absences }: Operation): Html {
  if (absences.length === 0) return nothing;
  const [latest, older] = [absences.slice(0, absencesShown), absences.slice(absencesShown)];
  return html`<section id="absences"><h2>Absences</h2>${absenceTable(latest, "Absences")}${
    older.length === 0
      ? nothing
      : html`<details><summary>${howMany(older.length, "absence")} before that</summary>${absenceTable(
          older,
          "Absences before that",
        )}</details>`
  }</section>`;
}

function absenceTable(absences: readonly Absence[], label: string): Html {
  return tableOf(
    label,
    ["From", "To", "For .number", "Why .why"],
    absences,
    ({ since, until, reason, lastWords }) => [
      instant(since),
      instant(until),
      spanWords((until.getTime() - since.getTime()) / 1000),
      html`${reason}${lastWords !== null && small(`last words: ${lastWords}`)}`,
    ],
  );
}

const logLinesShown = 15;

function logSection({ lines, more }: CrawlerLogPage, name: string, at: string): Html {
  if (lines.length === 0) return nothing;
  const isMore = more || lines.length > logLinesShown;
  return html`<section id="log"><h2>Log</h2>${logTable({ lines: lines.slice(0, logLinesShown) }, at)}
${isMore ? html`<p class="small"><a href="${crawlerPath(name, "/log")}">The whole log</a></p>` : nothing}</section>`;
}

// Everything that was noted of one crawler, by time; on its own page, since it may be long.

export function crawlerLogBody(name: string, log: CrawlerLogPage, at: string): Html {
  return html`<h1>Log of <a href="${crawlerPath(name)}">${name}</a></h1>
${
  log.lines.length === 0
    ? empty("No more entries.", html`<a href="${crawlerPath(name)}">Back to ${name}</a>`)
    : logTable(log, at)
}
${pager({ path: crawlerPath(name, "/log"), query: {}, page: log.page, more: log.more })}`;
}

function logTable({ lines }: Pick<CrawlerLogPage, "lines">, at: string): Html {
  const cells = (line: (typeof lines)[number]) => [
    html`${instant(line.at)}${small(ago(line.at, at))}`,
    line.kind,
    line.words,
    line.by ?? "–",
  ];
  return tableOf("Log", ["When", "Kind", "What .break", "By, or from"], lines, cells, "log");
}

// Moves of crawlers to other hosts: where each stands.

const stepWords: Readonly<Record<MoveStep, string>> = {
  asked: "waiting for the coordinator",
  emptying: "the other host finishes and ships its own work",
  packing: "the crawler finishes its requests and ships its results",
  sending: "its data is being sent",
  moved: "moved; waiting for it to connect from the new host",
  running: "done: it runs on the other host",
  failed: "not moved: both continue as before",
};

export function movesBody(moves: readonly MoveLine[], viewer: PageViewer): Html {
  return html`${titleRow("Moves")}
<p class="lead">A move takes a crawler to another host of its partner, with its name, subnets and waiting results. Start one on the
crawler's page, or with <code>nearcrawl fleet move NAME --to OTHER</code>.</p>
${moves.length === 0 ? empty("No moves yet.", "") : moveTable(moves, viewer)}`;
}

function moveTable(moves: readonly MoveLine[], viewer: PageViewer): Html {
  const heads = ["Asked for", "Crawler", "To the host of", "State .why", "Since"];
  return tableOf(
    "Moves",
    heads,
    moves,
    ({ askedAt, name, otherName, step, sentBytes, bytes, words, changedAt }) => [
      instant(askedAt),
      crawlerFor(viewer, name),
      crawlerFor(viewer, otherName),
      html`${stepWords[step]}${step === "sending" && small(`${bytesText(sentBytes)} of ${bytesText(bytes)}`)}${words && small(words)}`,
      instant(changedAt),
    ],
  );
}
